// Executable: loaded device code, with kernels by number and a cache of kernel runners. Each kind of code has
// a subclass, which an ExecutableKind creates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/free_list.h"
#include "dispatch_accesses.h"
#include "estimate.h"
#include "halyard/driver/trace.hpp"
#include "kernel_runner.h"
#include "status.h"

namespace halyard::local {

struct Device;
struct ExecutableKind;

class Executable {
 public:
  static Result<std::unique_ptr<halyard_driver_executable>> create(const ExecutableKind& kind,
                                                                   const Device& device,
                                                                   const halyard_executable_args_t& args);
  // Allocations of the kernels are charged to `memory`, which may be null.
  Executable(const Services& services, Ref<Budget> memory)
      : services_(services), memory_(std::move(memory)) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable();

  const Services& services() const { return services_; }
  uint32_t function_count() const { return static_cast<uint32_t>(kernels_.size()); }
  Result<halyard_function_info_t> function_info(uint32_t function) const;
  const Kernel& kernel(uint32_t function) const { return kernels_[function]; }
  // Facts about a dispatch, for a trace. Their texts live as long as the executable. Any thread.
  virtual kit::TraceDispatch describe(const halyard_command_dispatch_t& dispatch,
                                      const WorkgroupCount& count) = 0;
  // Called for the dispatches of a list before the first of them runs, if their workgroups are known. May
  // begin to compile their kernels. Any thread.
  virtual void foresee(const halyard_command_dispatch_t&) {}
  // Called before a dispatch of this function runs. Returns when its code is ready, or `stop` is set. Any
  // thread.
  virtual void settle(uint32_t, const uint32_t*) {}
  // The accesses of a dispatch that is not indirect, or null if they are not known. They live as long as the
  // executable. Takes up to some milliseconds for a dispatch that was not asked for before. Any thread.
  virtual const DispatchAccesses* accesses(const halyard_command_dispatch_t&) { return nullptr; }
  // The cost of a workgroup, the mean of all.
  Cost& workgroup_cost(uint32_t function) const { return costs_[function]; }
  // Null: only the mean is known for grids with this number of workgroups.
  WorkgroupCosts* workgroup_costs(uint32_t function, uint64_t workgroups) const {
    WorkgroupCosts& costs = workgroup_costs_[function];
    return costs.are_for(workgroups) ? &costs : nullptr;
  }

  // A kernel runner, owned by this thread until it is returned.
  class Lease {
   public:
    Lease(Executable& executable, std::unique_ptr<KernelRunner> runner)
        : executable_(executable), runner_(std::move(runner)) {}
    Lease(Lease&&) = default;
    ~Lease() {
      if (runner_) executable_.give_back(std::move(runner_));
    }
    KernelRunner* operator->() const { return runner_.get(); }
    KernelRunner& operator*() const { return *runner_; }

   private:
    Executable& executable_;
    std::unique_ptr<KernelRunner> runner_;
  };
  Result<Lease> lease();

 protected:
  const Ref<Budget>& memory() const { return memory_; }
  virtual Result<std::unique_ptr<KernelRunner>> create_runner() const = 0;
  void give_back(std::unique_ptr<KernelRunner> runner);

  std::vector<Kernel> kernels_;  // by function number; complete before the first runner is created

 private:
  const Services& services_;
  const Ref<Budget> memory_;
  std::unique_ptr<Cost[]> costs_;                          // by function number
  std::unique_ptr<WorkgroupCosts[]> workgroup_costs_;      // likewise
  FreeList<KernelRunner, &KernelRunner::next_idle> idle_;  // owned
};

// The host's budget as a Budget of this library; null if the host gave none. Valid until the executable is
// destroyed.
Ref<Budget> budget_of(const halyard_executable_args_t& args);
// The word that stops the loading of the executable [R97]; may be null.
const uint32_t* stop_of(const halyard_executable_args_t& args);

// One kind of device code.
struct ExecutableKind {
  // The formats that this kind accepts, for messages.
  std::string (*formats)();
  bool (*accepts)(std::string_view format);
  // Judges only the format if `data` is null. INCOMPATIBLE and NOT_FOUND mean that another build of the same
  // program could run here.
  Result<> (*judge)(const Device& device, std::string_view format, std::span<const uint8_t> data);
  Result<std::unique_ptr<halyard_driver_executable>> (*create)(const Device& device,
                                                               const halyard_executable_args_t& args);
};

}  // namespace halyard::local

struct halyard_driver_executable : halyard::local::Executable {
  using Executable::Executable;
};
