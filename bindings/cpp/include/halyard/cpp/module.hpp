// Modules: loading, inspection, assembler and disassembler.
#ifndef HALYARD_CPP_MODULE_HPP_
#define HALYARD_CPP_MODULE_HPP_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "halyard/cpp/instance.hpp"
#include "halyard/signature.h"

namespace halyard::inline HALYARD_CPP_FORM {

// Assembles .vmasm text to a module. INVALID_ARGUMENT names file and line. `bytecode_version` 0: the version
// stated in the text, else 17.
inline Result<Bytes> assemble(std::string_view text, CString file = nullptr, uint32_t bytecode_version = 0) {
  auto options = detail::sized<halyard_assemble_options_t>();
  options.bytecode_version = bytecode_version;
  options.file = file.get();
  void* bytes = nullptr;
  size_t size = 0;
  return detail::finish(halyard_assemble(text.data(), text.size(), &options, &bytes, &size),
                        [&] { return Bytes(adopt, static_cast<const std::byte*>(bytes), size); });
}
// Disassembles a module to text. `flags` is HALYARD_DISASSEMBLE_*.
inline Result<std::string> disassemble(std::span<const std::byte> module, uint32_t flags = 0) {
  auto options = detail::sized<halyard_disassemble_options_t>();
  options.flags = flags;
  char* text = nullptr;
  size_t size = 0;
  return detail::finish(halyard_disassemble(module.data(), module.size(), &options, &text, &size),
                        [&] { return detail::take_text(text, size); });
}
// Describes contents and requirements of the module, without loading it. `form` is HALYARD_DESCRIBE_*.
inline Result<std::string> describe(std::span<const std::byte> module,
                                    uint32_t form = HALYARD_DESCRIBE_TEXT) {
  char* text = nullptr;
  size_t size = 0;
  return detail::finish(halyard_module_describe(module.data(), module.size(), form, &text, &size),
                        [&] { return detail::take_text(text, size); });
}
// Computes what the functions do with devices, as JSON (docs/vm-dump.md). `options` may be null.
inline Result<std::string> analyze(std::span<const std::byte> module,
                                   const halyard_analyze_options_t* options = nullptr) {
  char* text = nullptr;
  size_t size = 0;
  return detail::finish(halyard_module_analyze(module.data(), module.size(), options, &text, &size),
                        [&] { return detail::take_text(text, size); });
}
// Explains as text what the compiler (docs/jit.md) does with the module's functions and kernels, or with
// those of the given name.
inline Result<std::string> explain_compilation(std::span<const std::byte> module,
                                               CString function = nullptr) {
  char* text = nullptr;
  size_t size = 0;
  return detail::finish(halyard_compiler_explain(module.data(), module.size(), function.get(), &text, &size),
                        [&] { return detail::take_text(text, size); });
}

// The arguments and results of a function (halyard/signature.h). Texts and shapes live as long as it. Any
// thread.
class Signature : public Handle<halyard_signature_t> {
 public:
  using Handle::Handle;

  // Name, counts and declaration.
  Result<halyard_function_description_t> describe() const {
    auto description = detail::sized<halyard_function_description_t>();
    return detail::finish(halyard_signature_describe(get(), &description), [&] { return description; });
  }
  // An argument by index from 0; OUT_OF_RANGE after the last.
  Result<halyard_value_description_t> argument(size_t index) const {
    auto description = detail::sized<halyard_value_description_t>();
    return detail::finish(halyard_signature_argument(get(), index, &description),
                          [&] { return description; });
  }
  Result<halyard_value_description_t> result(size_t index) const {
    auto description = detail::sized<halyard_value_description_t>();
    return detail::finish(halyard_signature_result(get(), index, &description), [&] { return description; });
  }
};

// A loaded module. Any thread.
class Module : public Handle<halyard_module_t> {
 public:
  using Handle::Handle;

  // Loads a .vmfb, a .vmasm or, with HALYARD_MODULE_NATIVE, a library (halyard_module_load_file).
  static Result<Module> load(const Instance& instance, CString path, uint32_t flags = 0) {
    halyard_module_t made = nullptr;
    return detail::finish(halyard_module_load_file(instance.get(), path.get(), flags, &made),
                          [&] { return Module(adopt, made); });
  }
  // Loads from memory; the bytes are copied.
  static Result<Module> load(const Instance& instance, std::span<const std::byte> bytes, uint32_t flags = 0) {
    halyard_module_t made = nullptr;
    return detail::finish(
        halyard_module_load_memory(instance.get(), bytes.data(), bytes.size(), flags, &made),
        [&] { return Module(adopt, made); });
  }
  // Assembles and loads .vmasm text.
  static Result<Module> from_text(const Instance& instance, std::string_view text, uint32_t flags = 0) {
    void* bytes = nullptr;
    size_t size = 0;
    halyard_module_t made = nullptr;
    halyard_status_t status = halyard_assemble(text.data(), text.size(), nullptr, &bytes, &size);
    const Bytes held(adopt, static_cast<const std::byte*>(bytes), size);
    if (!status) status = halyard_module_load_memory(instance.get(), bytes, size, flags, &made);
    return detail::finish(status, [&] { return Module(adopt, made); });
  }
  // Creates a module of this program's functions (halyard/module.h). halyard/cpp/native.hpp makes such a
  // definition.
  static Result<Module> create_native(const Instance& instance, const halyard_module_definition& definition) {
    halyard_module_t made = nullptr;
    return detail::finish(halyard_module_create_native(instance.get(), &definition, &made),
                          [&] { return Module(adopt, made); });
  }

  // Texts live as long as the module.
  Result<halyard_module_info_t> info() const {
    auto info = detail::sized<halyard_module_info_t>();
    return detail::finish(halyard_module_info(get(), &info), [&] { return info; });
  }
  // "" if there are none.
  Result<std::string> warnings() const {
    char* text = nullptr;
    size_t size = 0;
    return detail::finish(halyard_module_warnings(get(), &text, &size),
                          [&] { return detail::take_text(text, size); });
  }
  // An export by index. OUT_OF_RANGE: no such index. Texts live as long as the module.
  Result<halyard_function_description_t> function(uint32_t index) const {
    auto description = detail::sized<halyard_function_description_t>();
    return detail::finish(halyard_module_function(get(), index, &description), [&] { return description; });
  }
  Result<Signature> signature(uint32_t index) const {
    halyard_signature_t made = nullptr;
    return detail::finish(halyard_module_signature(get(), index, &made),
                          [&] { return Signature(adopt, made); });
  }
  // Empty if the export has no such attribute.
  Result<std::string_view> attribute(uint32_t index, CString key) const {
    halyard_text_t value = {};
    return detail::finish(halyard_module_function_attribute(get(), index, key.get(), &value),
                          [&] { return view(value); });
  }
  // Does work now that first calls would otherwise do: HALYARD_PREPARE_*.
  Result<void> prepare(uint32_t phase = HALYARD_PREPARE_DECODE) const {
    return detail::finish(halyard_module_prepare(get(), phase));
  }
};

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_MODULE_HPP_
