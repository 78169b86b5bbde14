// Names of handles for messages, and checks of structs.
#include "handles.h"

#include "hal/device/device.h"
#include "hal/view/element_type.h"
#include "vm/compile/loaded_module.h"
#include "vm/module/native_module.h"

namespace halyard::c {

std::string kind_of(const Object* object) {
  if (!object) return "null";
  std::string_view name = object->type()->name;
  if (name == "vm.native_module") name = "vm.module";
  // Objects of programs keep the names that programs use; the others get the names of this header.
  for (const std::string_view prefix : {"halyard.", "vm.context", "vm.module", "hal.device"})
    if (name.starts_with(prefix)) {
      name.remove_prefix(name.find('.') + 1);
      break;
    }
  const bool has_vowel = std::string_view("aeiou").contains(name.front());
  return fmt::format("{} {}", has_vowel ? "an" : "a", name);
}

std::unexpected<Status> wrong_handle(const Object* found, const ObjectType& expected) {
  struct Named : Object {
    explicit Named(const ObjectType* type) : Object(type) {}
  };
  const Named wanted(&expected);
  return fail(Code::INVALID_ARGUMENT, "expected {}, found {}", kind_of(&wanted), kind_of(found));
}

Result<vm::Module*> module_of(halyard_module_t handle) {
  auto* const object = reinterpret_cast<Object*>(handle);
  if (object && (object->type() == &vm::LoadedModule::kType || object->type() == &vm::NativeModule::kType))
    return static_cast<vm::Module*>(object);
  return wrong_handle(object, vm::LoadedModule::kType);
}

std::unexpected<Status> wrong_array(const void* elements, size_t count, const char* what, const char* name) {
  if (!elements)
    return fail(Code::INVALID_ARGUMENT, "expected an array of {} {} at `{}`, found a null pointer", count,
                what, name);
  return fail(Code::INVALID_ARGUMENT, "`{}` has {} {} by its count, more than fit in memory", name, count,
              what);
}

Result<> check_dimensions(const int64_t* shape, size_t rank) {
  if (rank > hal::kMaxRank)
    return fail(Code::INVALID_ARGUMENT, "expected a shape of at most {1} dimensions, found rank {0}", rank,
                hal::kMaxRank);
  return check_array(shape, rank, "dimensions", "shape");
}

Result<> check_struct_size(uint32_t struct_size) {
  if (struct_size >= sizeof struct_size && struct_size <= kMaxStruct) [[likely]]
    return {};
  return fail(Code::INVALID_ARGUMENT, "struct_size is {}; set it to sizeof(the struct)", struct_size);
}

Result<> check_unknown_fields(const void* options, uint32_t struct_size, size_t known) {
  const auto* const bytes = static_cast<const uint8_t*>(options);
  for (size_t at = known; at < struct_size; ++at)
    if (bytes[at] != 0)
      return fail(
          Code::UNIMPLEMENTED,
          "byte {} of the options struct is not 0, but the struct has only {} bytes in this libhalyard ({}); "
          "use a libhalyard of the version of the program's headers, or leave the later fields 0",
          at, known, halyard_version());
  return {};
}

}  // namespace halyard::c
