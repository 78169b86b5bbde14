// Replaces the kernels with vector instructions in small builds (HALYARD_SMALL), which use the plain loops.
#include "kernels.h"

namespace halyard::local::vmvx {

std::vector<std::string_view> instruction_sets() { return {"scalar"}; }

const Kernels* find_kernels(std::string_view instructions) {
  static const Kernels scalar = scalar_kernels();
  const bool known = instructions == "best" || instructions == "baseline" || instructions == "scalar";
  return known ? &scalar : nullptr;
}

}  // namespace halyard::local::vmvx
