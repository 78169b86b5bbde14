// Converts between handles of the C ABI and objects, and checks texts and structs: shared by this folder.
#pragma once

#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/c_boundary.h"
#include "base/loop.h"
#include "base/object.h"
#include "base/status.h"
#include "base/tracer.h"
#include "hal/registry/driver_registry.h"
#include "halyard/halyard.h"
#include "vm/object/type_registry.h"
#include "vm/object/value.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"

namespace halyard::vm {
class CompileQueue;
class Compiler;
}  // namespace halyard::vm

namespace halyard::c {

// A handle is the address of the object's Object base.
template <typename Handle>
Handle to_handle(Object* object) {
  return reinterpret_cast<Handle>(object);
}
template <typename Handle, typename T>
Handle give(Ref<T> object) {
  return to_handle<Handle>(object.detach());
}
template <typename T, typename Handle>
T* from_handle(Handle handle) {
  return static_cast<T*>(reinterpret_cast<Object*>(handle));
}

// The kind of a handle for messages, from the type of the object.
std::string kind_of(const Object* object);
// INVALID_ARGUMENT: null, or a handle of another kind than `expected`.
[[gnu::cold]] std::unexpected<Status> wrong_handle(const Object* found, const ObjectType& expected);

// The object behind a handle. The handle is checked, because a C program may confuse handles or pass null.
template <typename T, typename Handle>
Result<T*> checked(Handle handle) {
  auto* const object = reinterpret_cast<Object*>(handle);
  if (object && object->type() == &T::kType) [[likely]]
    return static_cast<T*>(object);
  return wrong_handle(object, T::kType);
}
// Modules have two object types.
Result<vm::Module*> module_of(halyard_module_t handle);

// More than any address space has.
inline constexpr uint64_t kMaxArray = uint64_t{1} << 56;
// INVALID_ARGUMENT: `count` elements at a null pointer, or more than fit in memory. `name` is the name of the
// parameter or field.
[[gnu::cold]] std::unexpected<Status> wrong_array(const void* elements, size_t count, const char* what,
                                                  const char* name);
template <typename T>
Result<> check_array(const T* elements, size_t count, const char* what, const char* name) {
  size_t size = 1;
  if constexpr (!std::is_void_v<T>) size = sizeof(T);
  if (count == 0 || (elements && count <= kMaxArray / size)) [[likely]]
    return {};
  return wrong_array(elements, count, what, name);
}
// Does the same for a shape, which has few dimensions.
Result<> check_dimensions(const int64_t* shape, size_t rank);
// A text from the caller. INVALID_ARGUMENT: null. `name` is the name of the parameter.
inline Result<std::string_view> given_text(const char* text, const char* name) {
  if (text) [[likely]]
    return text;
  return fail(Code::INVALID_ARGUMENT, "expected a text for `{}`, found a null pointer", name);
}
// INVALID_ARGUMENT: a text in an array is null: "settings[2].key is null".
inline Result<> check_text(const char* text, std::string_view array, size_t index,
                           std::string_view field = "") {
  if (text) return {};
  return fail(Code::INVALID_ARGUMENT, "{}[{}]{} is null; expected a text", array, index, field);
}
// INVALID_ARGUMENT: bits that are not in `known`, the bits of `of`.
inline Result<> check_flags(uint32_t flags, uint32_t known, const char* of) {
  if ((flags & ~known) == 0) return {};
  return fail(Code::INVALID_ARGUMENT, "expected flags of {}, found unknown ones: {:#x}", of, flags & ~known);
}
// INVALID_ARGUMENT: a reserved field is not 0. A later version may use it.
inline Result<> check_reserved(uint32_t reserved, const char* of) {
  if (reserved == 0) return {};
  return fail(Code::INVALID_ARGUMENT,
              "expected 0 in the field `reserved` of {}, found {}; clear the struct first", of, reserved);
}

inline std::string_view view(halyard_text_t text) {
  return {text.data ? text.data : "", text.data ? text.size : 0};
}
inline std::string_view view(const char* text) { return text ? text : ""; }
inline halyard_text_t to_text(std::string_view text) { return {text.data(), text.size()}; }

// "a,b"
inline std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ","));
}

// A copy from malloc, for halyard_free.
inline char* to_c_string(std::string_view text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

// A copy of the result of `make`; null without memory.
template <typename Make>
char* text_or_null(Make&& make) noexcept {
  try {
    return to_c_string(make());
  } catch (const std::exception&) {
    return nullptr;
  }
}

// INVALID_ARGUMENT: the address of an output is null. `name` is the name of the parameter.
inline Result<> check_output(const void* output, const char* name) {
  if (output) [[likely]]
    return {};
  return fail(Code::INVALID_ARGUMENT, "expected an address for the output `{}`, found a null pointer", name);
}

// A larger struct_size has certainly not been set.
inline constexpr uint32_t kMaxStruct = 4096;
// INVALID_ARGUMENT: struct_size has not been set.
Result<> check_struct_size(uint32_t struct_size);
// UNIMPLEMENTED: a byte from `known` on is not 0, so the caller uses a field that this library does not have.
Result<> check_unknown_fields(const void* options, uint32_t struct_size, size_t known);

// Copies the fields that the caller's options struct has; the rest is zero.
template <typename Options>
Result<Options> known_fields(const Options* options) {
  Options known = {};
  if (!options) return known;
  HALYARD_TRY(check_struct_size(options->struct_size));
  HALYARD_TRY(check_unknown_fields(options, options->struct_size, sizeof known));
  std::memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
  return known;
}
// Fills the caller's info struct up to its size; fields that this library does not have become 0. `name` is
// the name of the parameter.
template <typename Info>
Result<> fill_info(Info* target, Info source, const char* name) {
  HALYARD_TRY(check_output(target, name));
  HALYARD_TRY(check_struct_size(target->struct_size));
  source.struct_size = target->struct_size;
  const size_t known = target->struct_size < sizeof source ? target->struct_size : sizeof source;
  std::memcpy(target, &source, known);
  std::memset(reinterpret_cast<char*>(target) + known, 0, source.struct_size - known);
  return {};
}

// An array of entries and their texts, in one block for halyard_free.
template <typename Entry>
class EntryBlock {
 public:
  Entry& add() { return entries_.emplace_back(); }
  void text(const char* Entry::* member, std::string text) {
    texts_.push_back({entries_.size() - 1, member, std::move(text)});
  }
  void give(Entry** out, size_t* count) const {
    size_t size = entries_.size() * sizeof(Entry) + 1;
    for (const Text& text : texts_) size += text.text.size() + 1;
    char* block = static_cast<char*>(std::malloc(size));
    if (!block) throw std::bad_alloc();
    Entry* entries = reinterpret_cast<Entry*>(block);
    if (!entries_.empty()) std::memcpy(block, entries_.data(), entries_.size() * sizeof(Entry));
    char* end = block + entries_.size() * sizeof(Entry);
    for (const Text& text : texts_) {
      entries[text.entry].*text.member = end;
      std::memcpy(end, text.text.c_str(), text.text.size() + 1);
      end += text.text.size() + 1;
    }
    *out = entries;
    *count = entries_.size();
  }

 private:
  struct Text {
    size_t entry;
    const char* Entry::* member;
    std::string text;
  };
  std::vector<Entry> entries_;
  std::vector<Text> texts_;
};

struct Instance final : ObjectOf<Instance> {
  static const ObjectType kType;
  vm::TypeRegistry types;
  Ref<Tracer> tracer;                    // may be null
  std::shared_ptr<LiveObjects> objects;  // objects of programs; null: not counted
  Ref<Loop> loop;
  Ref<hal::DriverRegistry> drivers;
  // For modules: a compiler that compiles functions on their first call, or a queue that compiles hot
  // functions. Both may be null.
  const vm::Compiler* compiler = nullptr;
  std::shared_ptr<vm::CompileQueue> compile_queue;
  std::string compile_cache;  // folder; empty: none
  bool fast_math = false;     // for compiled functions
};

// An export in a context.
struct Function final : ObjectOf<Function> {
  static const ObjectType kType;
  Ref<vm::Context> context;
  vm::Callable callable;
};

struct Call final : ObjectOf<Call> {
  static const ObjectType kType;
  explicit Call(Ref<vm::Context> context) : invocation(std::move(context)) {}
  vm::Invocation invocation;
  std::vector<vm::Variant> arguments;
  std::vector<vm::Variant> results;
  bool is_invoked = false;  // halyard_call_invoke uses the vectors
};

// The path of a native module: "x.so" and "x.so@argument". Shared libraries are recognised by this name or by
// their first bytes.
struct SharedPath {
  std::string library;
  std::string argument;
};
std::optional<SharedPath> shared_path(const std::string& path);
bool is_shared_library(std::span<const uint8_t> bytes);
// Loads the native module of a shared library.
Result<> give_shared(Instance& instance, SharedPath path, halyard_module_t* out);

// Whether a module depends on, or imports from, the module of that name (ruling 23).
bool uses_module(const vm::Module& module, std::string_view name);

// Copies a text for halyard_free; `out_size` may be null.
inline void give_text(const std::string& text, char** out, size_t* out_size) {
  *out = to_c_string(text);
  if (out_size) *out_size = text.size();
}
// INVALID_ARGUMENT: not a HALYARD_DESCRIBE_* value.
inline Result<> check_form(uint32_t form) {
  if (form == HALYARD_DESCRIBE_TEXT || form == HALYARD_DESCRIBE_JSON) return {};
  return fail(
      Code::INVALID_ARGUMENT,
      "form {} of a description does not exist; choose HALYARD_DESCRIBE_TEXT or HALYARD_DESCRIBE_JSON", form);
}

using vm::to_value;
using vm::to_variant;

}  // namespace halyard::c
