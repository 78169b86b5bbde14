// KernelRunner: runs the kernels of one executable, on one thread at a time. It owns the arguments of the
// kernel and changes only their addresses for each dispatch, so a warm dispatch allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/work_scope.h"
#include "status.h"

struct halyard_jit_sharing_t;

namespace halyard::local {

// A function of an executable.
struct Kernel {
  std::string_view name;    // owned by the executable
  std::string source = {};  // where it is in the source: "model.mlir:12:5"; may be empty
  uint32_t binding_count = 0;
  uint32_t constant_count = 0;
  uint64_t local_memory = 0;                    // bytes
  std::array<uint32_t, 3> workgroup_size = {};  // 0: unknown
  bool sequential = false;                      // its workgroups must run one after the other
};

using WorkgroupCount = std::array<uint32_t, 3>;  // x, y, z

// For direct dispatches only.
inline WorkgroupCount workgroups_of(const halyard_command_dispatch_t& command) {
  return {command.workgroups[0], command.workgroups[1], command.workgroups[2]};
}
// The number of workgroups; UINT64_MAX if it does not fit.
inline uint64_t total(const WorkgroupCount& count) {
  uint64_t product = 0;
  return __builtin_mul_overflow(uint64_t{count[0]} * count[1], count[2], &product) ? UINT64_MAX : product;
}

// The coordinates of a workgroup.
struct GridPosition {
  uint32_t x;
  uint32_t y;
  uint32_t z;

  GridPosition(uint64_t workgroup, const WorkgroupCount& count)
      : x(static_cast<uint32_t>(workgroup % count[0])),
        y(static_cast<uint32_t>(workgroup / count[0] % count[1])),
        z(static_cast<uint32_t>(workgroup / count[0] / count[1])) {}
  void next(const WorkgroupCount& count) {
    if (++x < count[0]) return;
    x = 0;
    if (++y < count[1]) return;
    y = 0;
    ++z;
  }
};

// Workgroups [first, last), counted with x innermost and z outermost.
struct Tile {
  uint64_t first;
  uint64_t last;
};

inline Result<> go_on_unless_stopped(const uint32_t* stop) {
  if (const Code code = stop_code(stop); code != Code::OK) [[unlikely]]
    return std::unexpected(stopped_work(code));
  return {};
}

class KernelRunner {
 public:
  KernelRunner() = default;
  KernelRunner(const KernelRunner&) = delete;
  KernelRunner& operator=(const KernelRunner&) = delete;
  virtual ~KernelRunner() = default;

  // Set the arguments of the next run: first the constants, then the bindings in order. Bindings that are not
  // `writable` are constants on a validating device: a kernel that writes to one fails with
  // PERMISSION_DENIED, which names the binding, and the bytes keep their values.
  virtual Result<> begin(const Kernel& kernel, std::span<const uint32_t> constants,
                         uint32_t binding_count) = 0;
  virtual Result<> bind(uint32_t index, std::span<uint8_t> bytes, bool writable) = 0;
  // Calls the kernel once for each workgroup of the tile before `end`, which other threads may lower. Stops
  // at a failure and sets `tile.first` to the workgroup that failed. After a stop request (`stop`, see
  // base/work_scope.h) the next workgroup fails; bytecode also fails within a workgroup. Other threads may
  // run pieces of the kernel's loops, through `sharing`; null: none.
  virtual Result<> run(uint32_t function, const WorkgroupCount& count, Tile& tile,
                       const std::atomic<uint64_t>& end, const uint32_t* stop,
                       const halyard_jit_sharing_t* sharing) = 0;
  // The number of loop nests of compiled code that ran with all of their checks since the last call of this.
  virtual uint64_t take_checked_loops() { return 0; }
  // Must be called after begin(), even if begin() failed. Drops all pointers to the dispatch's bytes.
  virtual void end() = 0;

  KernelRunner* next_idle = nullptr;  // used by Executable
};

}  // namespace halyard::local
