// Results of a call as bytes of a response: in place if the device's memory is host-visible, else a copy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "documents.h"
#include "halyard/halyard.hpp"
#include "infer_request.h"

namespace halyard::tools::serve {

// The bytes live as long as this object.
class Output {
 public:
  // INVALID_ARGUMENT, FAILED_PRECONDITION: the returned value does not match the declared result.
  static Result<Output> of(const TensorSpec& spec, const halyard::Value& value);

  OutputTensor tensor(const TensorSpec& spec, bool is_binary) const {
    return {.spec = &spec, .shape = shape_, .bytes = bytes_, .is_binary = is_binary};
  }

 private:
  std::vector<int64_t> shape_;
  std::span<const std::byte> bytes_;
  std::optional<halyard::Mapping<std::byte>> mapping_;
  AlignedBuffer copy_;
};

}  // namespace halyard::tools::serve
