// The kernels of a module's executables: their names, and which bindings they write.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/count/kernel_counts.h"
#include "vm/text/module_view.h"

namespace halyard::analysis {

struct Kernel {
  std::string name;
  struct Binding {
    bool reads = false;
    bool writes = false;
  };
  std::optional<std::vector<Binding>> bindings;  // none: not known
};

class Kernels {
 public:
  explicit Kernels(const vm::ModuleView& view) : view_(view) {}

  // Null if the constant is no executable of a known format, or has no such kernel.
  const Kernel* find(uint32_t constant, uint64_t entry);
  // The index of the kernel with this name; kernels of unknown formats are numbered as they are asked for.
  uint64_t index_of(uint32_t constant, std::string_view name);
  const std::vector<Kernel>& of(uint32_t constant);
  // The ranges of bindings that a dispatch of a bytecode kernel accesses; null: not known. The kernel is not
  // run, but followed (vm/count), for a limited number of different dispatches.
  const std::vector<vm::KernelCounts::Range>* ranges(uint32_t constant, uint64_t entry,
                                                     const std::vector<uint32_t>& constants,
                                                     const std::vector<uint64_t>& binding_lengths,
                                                     const std::array<uint32_t, 3>& workgroups);

 private:
  const vm::ModuleView& view_;
  struct Dispatch {
    uint32_t constant;
    uint64_t entry;
    std::vector<uint32_t> constants;
    std::vector<uint64_t> binding_lengths;
    std::array<uint32_t, 3> workgroups;
    auto operator<=>(const Dispatch&) const = default;
  };
  std::map<uint32_t, std::vector<Kernel>> known_;
  std::map<uint32_t, std::optional<vm::ModuleView>> modules_;  // of executables with bytecode
  std::map<Dispatch, std::optional<std::vector<vm::KernelCounts::Range>>> ranges_;
};

// The bindings of a bytecode kernel, from its accesses in the order of its bytes.
std::vector<Kernel::Binding> bindings_of(const vm::BytecodeModule& module, uint32_t function);

}  // namespace halyard::analysis
