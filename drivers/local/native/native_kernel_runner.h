// The kernel runner of a native executable: the records that the functions receive, allocated once and filled
// again for each dispatch.
#pragma once

#include <span>
#include <vector>

#include "base/budget.h"
#include "kernel_runner.h"
#include "library_abi.h"
#include "local_memory.h"

namespace halyard::local {

class NativeKernelRunner final : public KernelRunner {
 public:
  // The arguments must outlive this object. `concurrency`: the maximum number of workgroups that run in
  // parallel.
  NativeKernelRunner(const abi::Environment& environment, std::span<const abi::EntryFunction> functions,
                     std::span<const Kernel> kernels, uint8_t concurrency, const Ref<Budget>& memory)
      : environment_(environment),
        functions_(functions),
        kernels_(kernels),
        concurrency_(concurrency),
        local_memory_charge_(memory) {}

  Result<> begin(const Kernel& kernel, std::span<const uint32_t> constants, uint32_t binding_count) override;
  Result<> bind(uint32_t index, std::span<uint8_t> bytes, bool writable) override;
  Result<> run(uint32_t function, const WorkgroupCount& count, Tile& tile, const std::atomic<uint64_t>& end,
               const uint32_t* stop, const halyard_jit_sharing_t* sharing) override;
  void end() override;

 private:
  const abi::Environment& environment_;
  const std::span<const abi::EntryFunction> functions_;
  const std::span<const Kernel> kernels_;
  const uint8_t concurrency_;
  abi::DispatchState dispatch_ = {};
  abi::WorkgroupState workgroup_ = {};
  LocalMemory local_memory_;
  Charge local_memory_charge_;
  std::vector<void*> bindings_;  // may be longer than the dispatch needs, like binding_sizes_
  std::vector<size_t> binding_sizes_;

  // A binding that must not be written. The function receives a copy, which is compared with the original
  // afterwards.
  struct Guarded {
    uint32_t binding;
    std::span<const uint8_t> bytes;
    LocalMemory copy = {};
  };
  Result<> check_guarded(const Kernel& kernel, uint32_t function) const;
  std::vector<Guarded> guarded_;
};

// The name of a kernel in messages, because functions need not have names.
std::string kernel_label(const Kernel& kernel, uint32_t function);

}  // namespace halyard::local
