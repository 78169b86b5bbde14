#include "emit/kernels.h"

#include <algorithm>

#include "aot/kernels.h"
#include "base/plugin.h"
#include "vm/decode/code.h"
#include "vm/decode/jit_description.h"
#include "vm/decode/words.h"
#include "vm/object/buffer.h"
#include "vm/verify/verifier.h"

namespace halyard::aot {

namespace {

constexpr uint32_t kLocalMemoryPage = 4096;
constexpr uint32_t kMaxCount = 64;  // of bindings, and of constants, in native executables
constexpr size_t kEmitReasonBytes = 1024;
constexpr std::string_view kTileQuery = "vmvx.query_tile_sizes.2d";

}  // namespace

struct PortableExecutable::DecodedKernel {
  std::string name;
  std::unique_ptr<vm::FunctionCode> code;
  uint32_t binding_count;
  uint32_t constant_count;
  uint32_t local_memory;
};

Result<std::vector<PortableExecutable>> PortableExecutable::find(const vm::BytecodeModule& host) {
  std::vector<PortableExecutable> all;
  for (uint32_t ordinal = 0; ordinal < host.rodata().size(); ++ordinal) {
    const std::span<const uint8_t> bytes = host.rodata()[ordinal]->span();
    Result<Ref<vm::BytecodeModule>> module =
        vm::BytecodeModule::load(Bytes::borrow(bytes, {}), known_types());
    if (!module || (*module)->exports().empty()) continue;
    bool has_kernel = false;
    for (const vm::Export& each : (*module)->exports()) has_kernel |= each.convention == kKernelConvention;
    if (!has_kernel) continue;
    PortableExecutable& executable = all.emplace_back();
    executable.constant_ = ordinal;
    executable.module_ = *std::move(module);
    HALYARD_TRY(
        with_note(executable.add_kernels(), fmt::format("in the executable of constant {}", ordinal)));
  }
  return all;
}

Result<> PortableExecutable::add_kernels() {
  if (module_->global_bytes() != 0 || module_->global_refs() != 0) refusal_ = "it has globals";
  for (const vm::Export& each : module_->exports()) {
    if (each.name.starts_with("__") || each.convention != kKernelConvention) {
      refusal_ = fmt::format("it exports '{}', which is no kernel", each.name);
      continue;
    }
    HALYARD_TRY(vm::verify_function(*module_, each.function));
    auto kernel = std::make_shared<DecodedKernel>();
    kernel->name = each.name;
    kernel->code = HALYARD_TRY(
        vm::decode_function(*module_, each.function, {.fuse = false, .entries = vm::Entries::calls}));
    kernel->binding_count = attribute_number(each, "binding_count");
    kernel->constant_count = attribute_number(each, "constant_count");
    kernel->local_memory = attribute_number(each, "local_memory") / kLocalMemoryPage * kLocalMemoryPage;
    if (kernel->binding_count > kMaxCount || kernel->constant_count > kMaxCount)
      refusal_ = fmt::format(
          "kernel '{}' has {} bindings and {} constants; native executables have at most {} of each",
          each.name, kernel->binding_count, kernel->constant_count, kMaxCount);
    kernels_.push_back(std::move(kernel));
  }
  return {};
}

bool PortableExecutable::asks_for_tiles() const {
  return std::ranges::any_of(module_->imports(),
                             [](const vm::Import& each) { return each.name == kTileQuery; });
}

Result<std::vector<uint8_t>> PortableExecutable::compile(halyard_emit_fn emit, const Processor& processor,
                                                         uint64_t dynamic_memory) const {
  if (!refusal_.empty()) return fail(Code::UNIMPLEMENTED, "{}", refusal_);
  std::vector<halyard_emit_kernel_t> kernels;
  for (const std::shared_ptr<const DecodedKernel>& kernel : kernels_) {
    halyard_jit_function_t function = vm::described(*kernel->code, kernel->name.c_str());
    function.frame_bytes = 0;  // kernels have no frame of the interpreter
    kernels.push_back({.name = kernel->name.c_str(),
                       .function = function,
                       .binding_count = kernel->binding_count,
                       .constant_count = kernel->constant_count,
                       .local_memory = kernel->local_memory});
  }
  std::vector<halyard_emit_constant_t> constants;
  for (const Ref<vm::Buffer>& each : module_->rodata())
    constants.push_back({static_cast<Object*>(each.get()), each->span().data(), each->span().size()});
  std::vector<std::pair<std::string, std::string>> import_texts;
  for (const vm::Import& each : module_->imports()) import_texts.emplace_back(each.name, each.convention);
  std::vector<halyard_emit_import_t> imports;
  for (const auto& [import, convention] : import_texts)
    imports.push_back({import.c_str(), convention.c_str()});
  const std::string name(module_->name());
  const halyard_emit_request_t request = {.struct_size = sizeof request,
                                          .code_format = vm::kCodeFormat,
                                          .name = name.c_str(),
                                          .triple = processor.triple.c_str(),
                                          .processor = processor.llvm_name.c_str(),
                                          .features = processor.llvm_features.c_str(),
                                          .kernels = kernels.data(),
                                          .kernel_count = kernels.size(),
                                          .constants = constants.data(),
                                          .constant_count = constants.size(),
                                          .imports = imports.data(),
                                          .import_count = imports.size(),
                                          .buffer_type = &vm::Buffer::kType,
                                          .dynamic_memory = dynamic_memory};
  std::vector<uint8_t> library;
  const auto take = [](void* user, const char* bytes, size_t size) {
    static_cast<std::vector<uint8_t>*>(user)->assign(bytes, bytes + size);
  };
  char reason[kEmitReasonBytes] = {};
  if (emit(&request, &library, take, reason, sizeof reason) == 0)
    return fail(Code::UNIMPLEMENTED, "{}", padded_text(reason));
  return library;
}

}  // namespace halyard::aot
