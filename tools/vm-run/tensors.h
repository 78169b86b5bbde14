// --trace_tensors: writes the buffers of dispatches as npy files.
#pragma once

#include <string>

#include "common/flags.h"
#include "common/program.h"

namespace halyard::tools {

// Files in one folder, which is created. It must outlive the program that reports the tensors.
class TensorFiles {
 public:
  // Sets in `program` what the flags ask for, and makes the folder; fails if that fails. Does nothing without
  // the flag.
  Result<> begin(const Flags& flags, Program& program);

 private:
  static halyard_status_t write(void* self, const halyard_traced_tensor_t* tensor);
  Result<> write(const halyard_traced_tensor_t& tensor) const;

  std::string folder_;
};

}  // namespace halyard::tools
