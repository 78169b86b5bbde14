// Worker: runs the kernels of one executable, used by one thread at a time. It owns what a kernel is given
// and points it at new bytes for each dispatch: a warm dispatch allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/work_scope.h"
#include "status.h"

namespace halyard::local {

// A function of an executable.
struct Kernel {
  std::string_view name;  // the executable's
  uint32_t binding_count = 0;
  uint32_t constant_count = 0;
  uint64_t local_memory = 0;                    // bytes
  std::array<uint32_t, 3> workgroup_size = {};  // 0: it does not say
  bool sequential = false;                      // its workgroups run one after the other
};

using WorkgroupCount = std::array<uint32_t, 3>;  // x, y, z

// All of them; the largest number where they are more.
inline uint64_t total(const WorkgroupCount& count) {
  uint64_t product = 0;
  return __builtin_mul_overflow(uint64_t{count[0]} * count[1], count[2], &product) ? UINT64_MAX : product;
}

// Where a workgroup stands.
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

// Workgroups from `first` to before `last`, counted with x innermost and z outermost.
struct Tile {
  uint64_t first;
  uint64_t last;
};

inline Result<> go_on_unless_stopped(const uint32_t* stop) {
  if (const Code code = stop_code(stop); code != Code::OK) [[unlikely]]
    return std::unexpected(stopped_work(code));
  return {};
}

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;

  // What the next run gives to the kernel: first the constants, then the bindings in order. Those that are
  // not `writable` are constant data of a device that validates: a kernel that writes to one fails with
  // PERMISSION_DENIED, naming it, and the bytes stay as they are.
  virtual Result<> begin(const Kernel& kernel, std::span<const uint32_t> constants,
                         uint32_t binding_count) = 0;
  virtual Result<> bind(uint32_t index, std::span<uint8_t> bytes, bool writable) = 0;
  // One call for each workgroup of the tile that is before `end`, which others may bring forward. A failure
  // ends it, and then `tile.first` is the workgroup that failed. What `stop` (base/work_scope.h) says fails
  // the next workgroup, and in bytecode the one that runs.
  virtual Result<> run(uint32_t function, const WorkgroupCount& count, Tile& tile,
                       const std::atomic<uint64_t>& end, const uint32_t* stop) = 0;
  // After begin(), whatever came of it: nothing points at the dispatch's bytes any more.
  virtual void end() = 0;

  Worker* next_idle = nullptr;  // Executable's
};

}  // namespace halyard::local
