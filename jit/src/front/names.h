// Announces names of compiled functions to perf and gdb. $HALYARD_JIT_NAMES selects perf, gdb, or both
// separated by a comma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace halyard::jit {

// The registration of one function in gdb, during the lifetime of this object.
class GdbName {
 public:
  // Any thread, but one at a time.
  GdbName(const std::string& name, uintptr_t address, size_t size);
  GdbName(const GdbName&) = delete;
  GdbName& operator=(const GdbName&) = delete;
  ~GdbName();

 private:
  struct Entry;
  std::unique_ptr<Entry> entry_;
};

// Announces the function to perf, by a line in /tmp/perf-PID.map, and to gdb, as $HALYARD_JIT_NAMES selects.
// Returns null if gdb is not selected.
std::unique_ptr<GdbName> announce(const std::string& name, uintptr_t address, size_t size);

}  // namespace halyard::jit
