// Worker: one instantiation of an executable, with globals of its own, used by one thread at a time. It owns
// the objects that a kernel is given (local memory, constants, the list of bindings) and points them at new
// bytes for each dispatch: a warm dispatch allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "status.h"
#include "vm/buffer.h"
#include "vm/bytecode_module.h"
#include "vm/context.h"
#include "vm/invocation.h"
#include "vm/list.h"

namespace halyard::local {

// A function of an executable.
struct Kernel {
  const vm::Export* function = nullptr;
  uint32_t binding_count = 0;
  uint32_t constant_count = 0;
  uint64_t local_memory = 0;  // bytes
};

using WorkgroupCount = std::array<uint32_t, 3>;  // x, y, z

// Workgroups from `first` to before `last`, counted with x innermost and z outermost.
struct Tile {
  uint64_t first;
  uint64_t last;
};

class Worker {
 public:
  // Links the module in a context of its own.
  static Result<std::unique_ptr<Worker>> create(const Ref<vm::BytecodeModule>& module,
                                                std::span<const Kernel> kernels);
  explicit Worker(Ref<vm::Context> context) : context_(std::move(context)), invocation_(context_) {}

  // What the next run gives to the kernel: first the constants, then the bindings in order.
  Result<> begin(const Kernel& kernel, std::span<const uint32_t> constants, uint32_t binding_count);
  Result<> bind(uint32_t index, std::span<uint8_t> bytes, bool writable);
  // One call for each workgroup of the tile that is before `end`, which others may bring forward. A failure
  // ends it, and then `tile.first` is the workgroup that failed.
  Result<> run(uint32_t function, const WorkgroupCount& count, Tile& tile, const std::atomic<uint64_t>& end);
  // After begin(), whatever came of it: nothing points at the dispatch's bytes any more.
  void end();

  std::unique_ptr<Worker> next_idle;  // Executable's

 private:
  struct FreeBytes {
    void operator()(uint8_t* bytes) const;
  };
  Result<> call(uint32_t function);

  Ref<vm::Context> context_;
  vm::Invocation invocation_;
  std::vector<vm::Callable> callables_;  // by function number
  std::unique_ptr<uint8_t[], FreeBytes> local_memory_;
  uint64_t local_memory_size_ = 0;
  std::vector<Ref<vm::Buffer>> bindings_;  // may be more than in use
  // Local memory, constants, bindings; workgroup id, size and count.
  std::array<vm::Variant, 12> arguments_;
};

}  // namespace halyard::local
