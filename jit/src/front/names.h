// Compiled functions by name in perf and gdb, for those who ask with HALYARD_JIT_NAMES=perf, gdb or both,
// separated by a comma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace halyard::jit {

// What gdb knows of one function, for as long as this lives.
class GdbName {
 public:
  // Any thread, one at a time.
  GdbName(const std::string& name, uintptr_t address, size_t size);
  GdbName(const GdbName&) = delete;
  GdbName& operator=(const GdbName&) = delete;
  ~GdbName();

 private:
  struct Entry;
  std::unique_ptr<Entry> entry_;
};

// Tells perf, by a line in /tmp/perf-PID.map, and gdb, as far as they are wanted. Null: gdb is not.
std::unique_ptr<GdbName> announce(const std::string& name, uintptr_t address, size_t size);

}  // namespace halyard::jit
