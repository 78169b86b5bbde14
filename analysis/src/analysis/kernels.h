// The kernels of a module's executables: their names, and which bindings they write.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

 private:
  const vm::ModuleView& view_;
  std::map<uint32_t, std::vector<Kernel>> known_;
};

// The bindings of a bytecode kernel, from its accesses in the order of its bytes.
std::vector<Kernel::Binding> bindings_of(const vm::BytecodeModule& module, uint32_t function);

}  // namespace halyard::analysis
