// Modules in the C ABI: loading, assembling, listing exports.
#include <algorithm>
#include <optional>

#include "base/foreign_file.h"
#include "declaration.h"
#include "export.h"
#include "handles.h"
#include "module_warnings.h"
#include "vm/compile/loaded_module.h"
#include "vm/text/assembler.h"
#include "vm/verify/verifier.h"

namespace halyard::c {

bool uses_module(const vm::Module& module, std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(module.dependencies(), [&](const auto& entry) { return entry.name == name; }) ||
         std::ranges::any_of(module.imports(),
                             [&](const auto& entry) { return entry.name.starts_with(prefix); });
}

Result<const vm::Export*> find_export(const vm::Module& module, uint32_t index) {
  const auto& exports = module.exports();
  if (index < exports.size()) return &exports[index];
  return fail(Code::OUT_OF_RANGE, "function {} does not exist; module '{}' exports {} functions", index,
              module.name(), exports.size());
}

bool is_asynchronous(const vm::Export& function) {
  return function.attribute("iree.abi.model") == "coarse-fences";
}

Result<halyard_function_description_t> describe(const vm::Export& function) {
  const vm::Convention convention = HALYARD_TRY(vm::Convention::parse(function.convention));
  return halyard_function_description_t{.struct_size = 0,
                                        .argument_count = static_cast<uint32_t>(convention.arguments.size()),
                                        .result_count = static_cast<uint32_t>(convention.results.size()),
                                        .is_async = is_asynchronous(function),
                                        .name = to_text(function.name),
                                        .convention = to_text(function.convention),
                                        .declaration = to_text(function.attribute(kDeclarationAttribute))};
}

}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

namespace {

constexpr uint32_t kLoadFlags =
    HALYARD_MODULE_VERIFY_EAGERLY | HALYARD_MODULE_PRELOAD | HALYARD_MODULE_NATIVE;

Result<> give_module(halyard_instance_t instance, Ref<Bytes> bytes, uint32_t flags, halyard_module_t* out) {
  const Instance& owner = *HALYARD_TRY(checked<Instance>(instance));
  const vm::LoadOptions options{.verify_eagerly = (flags & HALYARD_MODULE_VERIFY_EAGERLY) != 0,
                                .compiler = owner.compiler,
                                .queue = owner.compile_queue,
                                .cache = owner.compile_cache,
                                .fast_math = owner.fast_math,
                                .tracer = owner.tracer};
  *out = give<halyard_module_t>(HALYARD_TRY(vm::LoadedModule::load(std::move(bytes), owner.types, options)));
  return {};
}

uint32_t bytecode_version(const vm::Module& module) {
  return module.kind() == vm::ModuleKind::bytecode
             ? static_cast<const vm::BytecodeModule&>(module).bytecode_version()
             : 0;
}

Result<Ref<Bytes>> assembled(std::string_view text, const vm::AssembleOptions& options) {
  return Bytes::copy(HALYARD_TRY(vm::assemble(text, options)));
}

}  // namespace

halyard_status_t halyard_module_load_file(halyard_instance_t instance, const char* path, uint32_t flags,
                                          halyard_module_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const std::string name(HALYARD_TRY(given_text(path, "path")));
    Instance& owner = *HALYARD_TRY(checked<Instance>(instance));
    HALYARD_TRY(check_flags(flags, kLoadFlags, "HALYARD_MODULE_*"));
    if (auto shared = shared_path(name)) {
      if (!(flags & HALYARD_MODULE_NATIVE))
        return fail(
            Code::PERMISSION_DENIED,
            "'{}' is a shared library, whose code would run in this process; if you trust it, allow it with "
            "HALYARD_MODULE_NATIVE",
            name);
      return give_shared(owner, *std::move(shared), out);
    }
    Ref<Bytes> bytes = HALYARD_TRY(Bytes::map_file(name));
    if (is_shared_library(bytes->span()))
      return fail(
          Code::INVALID_ARGUMENT,
          "'{}' is a shared library (ELF); expected a module, or a native module with a name that ends in "
          ".so",
          name);
    const Ref<Bytes> file = bytes;
    const auto load = [&]() -> Result<> {
      if (name.ends_with(".vmasm")) {
        const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        bytes = HALYARD_TRY(assembled(text, {.file = name}));
      } else if (flags & HALYARD_MODULE_PRELOAD) {
        bytes = Bytes::copy(bytes->span());
      }
      return with_note(give_module(instance, std::move(bytes), flags, out), "loading module '" + name + "'");
    };
    Result<> loaded = load();
    if (loaded) return loaded;
    const std::optional<ForeignFile> foreign = foreign_file(file->span(), "");
    if (!foreign || !foreign->holds_for_all) return loaded;
    return fail(Code::INVALID_ARGUMENT, "'{}' is {}, not a module; {}", name, foreign->is, foreign->advice);
  });
}

halyard_status_t halyard_module_load_memory(halyard_instance_t instance, const void* data, size_t size,
                                            uint32_t flags, halyard_module_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_flags(flags, kLoadFlags, "HALYARD_MODULE_*"));
    HALYARD_TRY(check_array(data, size, "bytes", "data"));
    return give_module(instance, Bytes::copy({static_cast<const uint8_t*>(data), size}), flags, out);
  });
}

halyard_status_t halyard_module_info(halyard_module_t module, halyard_module_info_t* info) {
  return guarded([&]() -> Result<> {
    const auto* loaded = HALYARD_TRY(module_of(module));
    return fill_info(info,
                     {.struct_size = 0,
                      .version = loaded->version(),
                      .bytecode_version = bytecode_version(*loaded),
                      .function_count = static_cast<uint32_t>(loaded->exports().size()),
                      .needs_devices = uses_module(*loaded, "hal"),
                      .name = to_text(loaded->name())},
                     "info");
  });
}

halyard_status_t halyard_module_warnings(halyard_module_t module, char** out, size_t* out_size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const auto* loaded = HALYARD_TRY(module_of(module));
    std::string text;
    if (loaded->kind() == vm::ModuleKind::bytecode)
      for (const std::string& warning : warnings_about(static_cast<const vm::BytecodeModule&>(*loaded)))
        text += warning + '\n';
    give_text(text, out, out_size);
    return {};
  });
}

halyard_status_t halyard_module_function_attribute(halyard_module_t module, uint32_t index, const char* key,
                                                   halyard_text_t* value) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(value, "value"));
    const std::string_view name = HALYARD_TRY(given_text(key, "key"));
    *value = to_text(HALYARD_TRY(find_export(*HALYARD_TRY(module_of(module)), index))->attribute(name));
    return {};
  });
}

halyard_status_t halyard_module_prepare(halyard_module_t module, uint32_t phase) {
  return guarded([&]() -> Result<> {
    if (phase != HALYARD_PREPARE_VERIFY && phase != HALYARD_PREPARE_DECODE)
      return fail(Code::INVALID_ARGUMENT,
                  "phase {} does not exist; choose HALYARD_PREPARE_VERIFY or HALYARD_PREPARE_DECODE", phase);
    const auto* any = HALYARD_TRY(module_of(module));
    if (any->kind() != vm::ModuleKind::bytecode) return {};
    const auto& loaded = static_cast<const vm::LoadedModule&>(*any);
    for (uint32_t i = 0; i < loaded.functions().size(); ++i) {
      if (phase == HALYARD_PREPARE_VERIFY) {
        HALYARD_TRY(vm::verify_function(loaded, i));
      } else {
        HALYARD_TRY(loaded.code(i));
      }
    }
    return {};
  });
}

halyard_status_t halyard_module_function(halyard_module_t module, uint32_t index,
                                         halyard_function_description_t* description) {
  return guarded([&]() -> Result<> {
    const vm::Export& function = *HALYARD_TRY(find_export(*HALYARD_TRY(module_of(module)), index));
    return fill_info(description, HALYARD_TRY(describe(function)), "description");
  });
}

halyard_status_t halyard_assemble(const char* text, size_t size, const halyard_assemble_options_t* options,
                                  void** out, size_t* out_size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_output(out_size, "out_size"));
    const halyard_assemble_options_t known = HALYARD_TRY(known_fields(options));
    vm::AssembleOptions assemble;
    if (known.bytecode_version) assemble.bytecode_version = known.bytecode_version;
    if (known.file) assemble.file = known.file;
    HALYARD_TRY(check_array(text, size, "characters", "text"));
    const std::vector<uint8_t> bytes = HALYARD_TRY(vm::assemble({text, size}, assemble));
    *out = to_c_string({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    *out_size = bytes.size();
    return {};
  });
}
