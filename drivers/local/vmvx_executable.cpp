// Grades and loads VMVX executables: format, version, exports, imports, attributes.
#include "vmvx_executable.h"

#include <bytecode_module_generated.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device.h"
#include "dispatch_counts.h"
#include "early_compilation.h"
#include "vm/compile/compiler.h"
#include "vm/compile/loaded_module.h"
#include "vm/format/archive.h"
#include "vm/format/bytecode_reader.h"
#include "vm/module/source_location.h"
#include "vmvx/call_facts.h"
#include "vmvx/microkernels.h"
#include "vmvx_kernel_runner.h"

namespace halyard::local {

namespace {

constexpr std::string_view kFormat = "vmvx-bytecode-fb";
constexpr std::string_view kKernelConvention = "0rrriiiiiiiii_v";
// These exports would run when a context is created, or before any kernel. Executables that have them are
// refused: spec ruling 14.
constexpr std::string_view kSpecialExports[] = {"__init", "__deinit", "__notify", "__set_constants"};
constexpr uint64_t kPage = 4096;  // local memory is rounded down to whole pages
constexpr uint64_t kMaxLocalMemory = (uint64_t{1} << 28) - 1;

// A number with a prefix like in C; 0 if the attribute is absent.
Result<uint64_t> number_attribute(const vm::Export& kernel, std::string_view key, uint64_t most) {
  const std::string_view text = kernel.attribute(key);
  if (text.empty()) return 0;
  std::string_view digits = text;
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits.starts_with('0')) {
    base = 8;
    digits.remove_prefix(1);
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number, base);
  if (error != std::errc() || end != digits.end() || number > most)
    return fail(Code::INVALID_ARGUMENT, "kernel '{}' has attribute {} = '{}'; expected a number from 0 to {}",
                kernel.name, key, text, most);
  return number;
}

Result<> check_exports(const vm::BytecodeModule& module) {
  for (const vm::Export& function : module.exports()) {
    if (std::ranges::find(kSpecialExports, function.name) != std::end(kSpecialExports))
      return fail(
          Code::INVALID_ARGUMENT,
          "the executable exports '{}'; expected only kernels: other functions of an executable never run",
          function.name);
    if (function.convention != kKernelConvention)
      return fail(Code::INVALID_ARGUMENT,
                  "export '{}' has the calling convention '{}'; expected a kernel, '{}', as every export of "
                  "an executable",
                  function.name, function.convention, kKernelConvention);
  }
  return {};
}

Result<> check_imports(const vm::BytecodeModule& module) {
  std::string missing;
  for (const vm::Import& import : module.imports())
    if (!import.optional && !vmvx::has_function(import.name, import.convention))
      missing += fmt::format("{}'{}'", missing.empty() ? "" : ", ", import.name);
  if (missing.empty()) return {};
  return fail(Code::NOT_FOUND,
              "the executable imports {}, which this device does not have, or not with this signature; "
              "compile it without microkernels",
              missing);
}

bool has_unknown_version(const Ref<Bytes>& bytes) {
  const Result<vm::Archive> archive = vm::open_archive(bytes);
  if (!archive) return false;
  const uint32_t word = archive->module->bytecode_version();
  return (word & 0xFFFF) != 0 || word >> 16 < 15 || word >> 16 > 17;
}

// INCOMPATIBLE and NOT_FOUND: another build of the same program could run here. INVALID_ARGUMENT: not a valid
// executable.
Result<Ref<vm::LoadedModule>> load_module(const Ref<Bytes>& bytes, const vm::LoadOptions& options) {
  const vm::TypeRegistry types;
  auto loaded = vm::LoadedModule::load(bytes, types, options);
  if (!loaded) {
    if (has_unknown_version(bytes)) return fail(Code::INCOMPATIBLE, "{}", loaded.error().message());
    return loaded;
  }
  HALYARD_TRY(check_exports(**loaded));
  HALYARD_TRY(check_imports(**loaded));
  return loaded;
}

class VmvxExecutable final : public halyard_driver_executable {
 public:
  VmvxExecutable(const Device& device, Ref<vm::LoadedModule> module, Ref<Budget> memory)
      : halyard_driver_executable(device.services(), std::move(memory)),
        microkernels_(vmvx::create_module(*device.options.kernels)),
        module_(std::move(module)),
        counts_dispatches_(device.options.profile) {
    if (device.options.jit == Jit::hot) early_.emplace(*module_);
  }
  Result<> load_kernels();
  void foresee(const halyard_command_dispatch_t& dispatch) override {
    if (early_) early_->foresee(dispatch, kernels_[dispatch.function]);
  }
  void settle(uint32_t function, const uint32_t* stop) override {
    if (early_) early_->settle(function, stop);
  }
  kit::TraceDispatch describe(const halyard_command_dispatch_t& dispatch,
                              const WorkgroupCount& count) override;
  const DispatchAccesses* accesses(const halyard_command_dispatch_t& dispatch) override;

 private:
  // The counts of a dispatch, or why they are not known.
  struct Counted {
    vm::KernelCounts counts;
    std::string why;
  };
  const Counted& counts_of(const halyard_command_dispatch_t& dispatch, const WorkgroupCount& count);

  Result<std::unique_ptr<KernelRunner>> create_runner() const override {
    return VmvxKernelRunner::create(microkernels_, module_, memory());
  }

  Ref<vm::NativeModule> microkernels_;
  Ref<vm::LoadedModule> module_;
  std::optional<EarlyCompilation> early_;
  const bool counts_dispatches_;
  std::mutex counted_mutex_;
  // By function, workgroups, constants and lengths of bindings. Entries are never removed.
  std::map<std::vector<uint64_t>, Counted> counted_;
  const Counted too_many_ = {{}, "there are too many different dispatches"};
  std::map<std::vector<uint64_t>, std::optional<DispatchAccesses>> accesses_;  // likewise
};

// Different dispatches whose counts are kept.
constexpr size_t kMaxCounted = 4096;
constexpr uint64_t kStepsForAccesses = 200'000;  // take 10 ms

std::vector<uint64_t> key_of(const halyard_command_dispatch_t& dispatch, const WorkgroupCount& count) {
  std::vector<uint64_t> key = {dispatch.function, count[0], count[1], count[2]};
  key.insert(key.end(), dispatch.constants, dispatch.constants + dispatch.constant_count);
  for (uint32_t i = 0; i < dispatch.binding_count; ++i) key.push_back(dispatch.bindings[i].length);
  return key;
}

const VmvxExecutable::Counted& VmvxExecutable::counts_of(const halyard_command_dispatch_t& dispatch,
                                                         const WorkgroupCount& count) {
  std::vector<uint64_t> key = key_of(dispatch, count);
  const std::lock_guard lock(counted_mutex_);
  if (const auto known = counted_.find(key); known != counted_.end()) return known->second;
  if (counted_.size() == kMaxCounted) return too_many_;
  const std::optional<kit::TraceDispatch> facts = kit::TraceDispatch{.code = HALYARD_CODE_PROFILER};
  kit::TraceSpan span(services(), "counting operations");
  span.set_dispatch(facts);
  const Result<vm::KernelCounts> counts =
      counts_of_dispatch(*module_, kernels_[dispatch.function], dispatch, count, vmvx::operations_of);
  Counted counted;
  if (counts) {
    counted.counts = *counts;
  } else {
    counted.why = counts.error().message();
  }
  return counted_.try_emplace(std::move(key), std::move(counted)).first->second;
}

const DispatchAccesses* VmvxExecutable::accesses(const halyard_command_dispatch_t& dispatch) {
  const WorkgroupCount count = workgroups_of(dispatch);
  std::vector<uint64_t> key = key_of(dispatch, count);
  const std::lock_guard lock(counted_mutex_);
  auto known = accesses_.find(key);
  if (known == accesses_.end()) {
    if (accesses_.size() == kMaxCounted) return nullptr;
    const Result<vm::KernelCounts> counts = counts_of_dispatch(
        *module_, kernels_[dispatch.function], dispatch, count, vmvx::operations_of, kStepsForAccesses, true);
    std::optional<DispatchAccesses> found;
    if (counts && counts->bytes) {
      found.emplace();
      for (const vm::KernelCounts::Range& range : counts->inputs)
        found->reads.push_back({range.binding, {range.begin, range.end}});
      for (const vm::KernelCounts::Range& range : counts->overwritten)
        found->overwrites.push_back({range.binding, {range.begin, range.end}});
    }
    known = accesses_.try_emplace(std::move(key), std::move(found)).first;
  }
  return known->second ? &*known->second : nullptr;
}

kit::TraceDispatch VmvxExecutable::describe(const halyard_command_dispatch_t& dispatch,
                                            const WorkgroupCount& count) {
  const vm::CodeStore::Form form = module_->store().form(module_->exports()[dispatch.function].function);
  kit::TraceDispatch facts;
  facts.code = form.is_compiled ? HALYARD_CODE_COMPILED : HALYARD_CODE_INTERPRETED;
  facts.reason = form.reason;
  facts.source = kernels_[dispatch.function].source;
  if (!counts_dispatches_) return facts;
  const Counted& counted = counts_of(dispatch, count);
  facts.uncounted = counted.why;
  if (!counted.why.empty()) return facts;
  facts.known = HALYARD_SPAN_KNOWS_OPERATIONS;
  facts.operations = counted.counts.operations;
  if (!counted.counts.bytes) return facts;
  facts.known |= HALYARD_SPAN_KNOWS_BYTES;
  facts.bytes_read = counted.counts.bytes->read;
  facts.bytes_written = counted.counts.bytes->written;
  return facts;
}

Result<> VmvxExecutable::load_kernels() {
  kernels_.reserve(module_->exports().size());
  for (const vm::Export& function : module_->exports()) {
    Kernel kernel = {.name = function.name};
    kernel.binding_count =
        static_cast<uint32_t>(HALYARD_TRY(number_attribute(function, "binding_count", 255)));
    kernel.constant_count =
        static_cast<uint32_t>(HALYARD_TRY(number_attribute(function, "constant_count", 255)));
    kernel.local_memory =
        HALYARD_TRY(number_attribute(function, "local_memory", kMaxLocalMemory)) / kPage * kPage;
    kernel.source = vm::source_of(*module_, function.function);
    kernels_.push_back(std::move(kernel));
  }
  return {};
}

std::string formats() { return fmt::format("'{}'", kFormat); }
bool accepts(std::string_view format) { return format == kFormat; }

Result<> judge(const Device&, std::string_view, std::span<const uint8_t> data) {
  if (data.data()) HALYARD_TRY(load_module(Bytes::copy(data), {}));
  return {};
}

Result<std::unique_ptr<halyard_driver_executable>> create(const Device& device,
                                                          const halyard_executable_args_t& args) {
  if (args.constant_count != 0)
    return fail(Code::INVALID_ARGUMENT, "the executable takes no constants, but {} were given",
                args.constant_count);
  // Copied, because the module refers to the bytes, and those of the program may be unaligned and may change.
  const auto* data = static_cast<const uint8_t*>(args.data);
  const Ref<Bytes> bytes = Bytes::copy({data, static_cast<size_t>(args.data_size)});
  vm::LoadOptions options = {.verify_eagerly = true,
                             .queue = device.compile_queue(),
                             .cache = device.options.jit_cache,
                             .fast_math = device.options.fast_math,
                             .stop = stop_of(args),
                             .call_writes = vmvx::writes_of};
  if (device.options.jit == Jit::always) options.compiler = HALYARD_TRY(vm::Compiler::find());
  auto executable =
      std::make_unique<VmvxExecutable>(device, HALYARD_TRY(load_module(bytes, options)), budget_of(args));
  HALYARD_TRY(executable->load_kernels());
  return executable;
}

}  // namespace

constexpr ExecutableKind kVmvxExecutables = {formats, accepts, judge, create};

}  // namespace halyard::local
