// The sets of instructions that there are kernels for, and which of them this processor has.
#include <algorithm>

#include "kernels.h"

namespace halyard::local::vmvx {

namespace {

// Best first.
const std::vector<Kernels>& tables() {
  static const std::vector<Kernels> tables = [] {
    std::vector<Kernels> made;
    made.push_back(scalar_kernels());
    return made;
  }();
  return tables;
}

}  // namespace

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  for (const Kernels& kernels : tables()) names.push_back(kernels.instructions);
  return names;
}

const Kernels* find_kernels(std::string_view instructions) {
  if (instructions == "best") return &tables().front();
  if (instructions == "baseline") return &tables().back();
  const auto found = std::ranges::find(tables(), instructions, &Kernels::instructions);
  return found == tables().end() ? nullptr : &*found;
}

}  // namespace halyard::local::vmvx
