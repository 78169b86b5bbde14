// Creates executables of a kind, and lends their kernel runners.
#include "executable.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace halyard::local {

Result<std::unique_ptr<halyard_driver_executable>> Executable::create(const ExecutableKind& kind,
                                                                      const Device& device,
                                                                      const halyard_executable_args_t& args) {
  auto executable = HALYARD_TRY(kind.create(device, args));
  executable->costs_ = std::make_unique<Cost[]>(executable->kernels_.size());
  executable->workgroup_costs_ = std::make_unique<WorkgroupCosts[]>(executable->kernels_.size());
  // The creation of the first runner checks that the code links.
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
  info.source = {kernel.source.data(), kernel.source.size()};
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

}  // namespace halyard::local
