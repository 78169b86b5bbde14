// --trace_tensors: what is in the buffers of dispatches, each as an npy file.
#pragma once

#include <string>

#include "common/flags.h"
#include "common/program.h"

namespace halyard::tools {

// Files in one folder, which is made. It must live as long as the program that tells it.
class TensorFiles {
 public:
  // What the flags ask for is set in `program`; nothing where they ask for nothing. As what making the folder
  // gives.
  Result<> begin(const Flags& flags, Program& program);

 private:
  static halyard_status_t write(void* self, const halyard_traced_tensor_t* tensor);
  Result<> write(const halyard_traced_tensor_t& tensor) const;

  std::string folder_;
};

}  // namespace halyard::tools
