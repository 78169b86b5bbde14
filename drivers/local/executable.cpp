// Finding the kind of an executable, grading it, and lending its kernel runners.
#include "executable.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

#include "native/native_executable.h"
#include "vmvx_executable.h"

namespace halyard::local {

namespace {

constexpr const ExecutableKind* kKinds[] = {&kVmvxExecutables, &kNativeExecutables};

const ExecutableKind* find_kind(std::string_view format) {
  const auto* found =
      std::ranges::find_if(kKinds, [&](const ExecutableKind* kind) { return kind->accepts(format); });
  return found == std::end(kKinds) ? nullptr : *found;
}

Status unknown_format(std::string_view format) {
  std::string known;
  for (const ExecutableKind* kind : kKinds) known += (known.empty() ? "" : ", ") + kind->formats();
  return {Code::NOT_FOUND,
          fmt::format("executable format '{}' is unknown; this device runs {}", format, known)};
}

Result<> judge(const Device& device, std::string_view format, std::span<const uint8_t> data) {
  const ExecutableKind* kind = find_kind(format);
  return kind ? kind->judge(device, format, data) : std::unexpected(unknown_format(format));
}

}  // namespace

Result<std::unique_ptr<halyard_driver_executable>> Executable::create(const Device& device,
                                                                      const halyard_executable_args_t& args) {
  const ExecutableKind* kind = find_kind(view(args.format));
  if (!kind) return std::unexpected(unknown_format(view(args.format)));
  auto executable = HALYARD_TRY(kind->create(device, args));
  executable->costs_ = std::make_unique<Cost[]>(executable->kernels_.size());
  // Creating the first runner checks that the code links.
  executable->give_back(HALYARD_TRY(executable->create_runner()));
  return executable;
}

Executable::~Executable() {
  for (KernelRunner* runner = idle_.take_all(); runner;) delete std::exchange(runner, runner->next_idle);
}

Result<halyard_function_info_t> Executable::function_info(uint32_t function) const {
  if (function >= kernels_.size())
    return fail(Code::OUT_OF_RANGE, "no function {}; the executable has {}", function, kernels_.size());
  const Kernel& kernel = kernels_[function];
  halyard_function_info_t info = {};
  info.binding_count = kernel.binding_count;
  info.constant_count = kernel.constant_count;
  std::ranges::copy(kernel.workgroup_size, info.workgroup_size);
  info.local_memory = kernel.local_memory;
  info.name = {kernel.name.data(), kernel.name.size()};
  return info;
}

Result<Executable::Lease> Executable::lease() {
  if (KernelRunner* runner = idle_.take()) return Lease(*this, std::unique_ptr<KernelRunner>(runner));
  return Lease(*this, HALYARD_TRY(create_runner()));
}

void Executable::give_back(std::unique_ptr<KernelRunner> runner) {
  runner->end();
  idle_.give(runner.release());
}

Ref<Budget> budget_of(const halyard_executable_args_t& args) {
  if (!HALYARD_HAS_FIELD(&args, halyard_executable_args_t, memory) || !args.memory) return {};
  const halyard_memory_budget_t& given = *args.memory;
  return make<Budget>(given.limit, Budget::Source{given.user, given.take, given.give_back, given.used});
}

const uint32_t* stop_of(const halyard_executable_args_t& args) {
  return HALYARD_HAS_FIELD(&args, halyard_executable_args_t, stop) ? args.stop : nullptr;
}

uint32_t grade_executable(const Device& device, std::string_view format, std::span<const uint8_t> data,
                          std::string& reason) {
  const Result<> judged = judge(device, format, data);
  if (judged) return HALYARD_GRADE_NATIVE;
  reason = judged.error().message();
  const Code code = judged.error().code();
  const bool known = find_kind(format) != nullptr;
  return known && (code == Code::INCOMPATIBLE || code == Code::NOT_FOUND) ? HALYARD_GRADE_RECOMPILE
                                                                          : HALYARD_GRADE_NO;
}

}  // namespace halyard::local
