// --trace_tensors: writes the buffers of dispatches as npy files.
#pragma once

#include <string>

#include "common/flags.h"
#include "common/program.h"

namespace halyard::tools {

// The files in one folder, which is created. Must outlive the program that reports the tensors.
class TensorFiles {
 public:
  // Sets the options in `program` that the flags request, and creates the folder; fails if that fails. Does
  // nothing without the flag.
  Result<> begin(const Flags& flags, Program& program);

 private:
  Result<> write(const halyard_traced_tensor_t& tensor) const;

  std::string folder_;
};

}  // namespace halyard::tools
