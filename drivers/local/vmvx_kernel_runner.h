// The kernel runner of a VMVX executable: an instance of the module with its own globals. It owns the
// arguments of a kernel: local memory, constants and the list of bindings.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel_runner.h"
#include "local_memory.h"
#include "vm/compile/loaded_module.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"
#include "vmvx/microkernels.h"

namespace halyard::local {

class VmvxKernelRunner final : public KernelRunner {
 public:
  // Links the module in its own context, whose memory is charged to `memory`.
  static Result<std::unique_ptr<KernelRunner>> create(const Ref<vm::NativeModule>& microkernels,
                                                      const Ref<vm::LoadedModule>& module,
                                                      const Ref<Budget>& memory);
  VmvxKernelRunner(Ref<vm::Context> context, vmvx::State& microkernels)
      : context_(std::move(context)),
        microkernels_(microkernels),
        invocation_(context_),
        local_memory_charge_(context_->limits().memory) {}

  Result<> begin(const Kernel& kernel, std::span<const uint32_t> constants, uint32_t binding_count) override;
  Result<> bind(uint32_t index, std::span<uint8_t> bytes, bool writable) override;
  Result<> run(uint32_t function, const WorkgroupCount& count, Tile& tile, const std::atomic<uint64_t>& end,
               const uint32_t* stop, const halyard_jit_sharing_t* sharing) override;
  uint64_t take_checked_loops() override { return invocation_.take_checked_loops(); }
  void end() override;

 private:
  Result<> call(uint32_t function);
  Status explain(Status failure) const;

  Ref<vm::Context> context_;
  vmvx::State& microkernels_;  // owned by the context
  vm::Invocation invocation_;
  std::vector<vm::Callable> callables_;  // by function number
  LocalMemory local_memory_;
  Charge local_memory_charge_;
  std::vector<Ref<vm::Buffer>> bindings_;  // may have more elements than the dispatch has bindings
  std::vector<uint32_t> read_only_;        // the dispatch's bindings that must not be written
  // Local memory, constants, bindings; workgroup id, size and count.
  std::array<vm::Variant, 12> arguments_;
};

}  // namespace halyard::local
