// InferTensorContents: the elements of a tensor as numbers of protocol buffers, in the field of their type.
#pragma once

#include <string>

#include "common/failure.h"
#include "tensor.h"
#include "wire.h"

namespace halyard::tools::serve {

// Whether the message has a field for elements of this type; FP16 and BF16 have none.
bool has_contents(const DataType& type);

// The number of elements in the `contents` of an input, all of which are of this type. INVALID_ARGUMENT: the
// elements are in the field of another type, the type has none, or the message is malformed.
Result<uint64_t> count_contents(const WireReader& input, const DataType& type, std::string_view name);
// Stores the elements, which have been counted, at `target`. INVALID_ARGUMENT: one is not of this type.
Result<> read_contents(const WireReader& input, const DataType& type, std::string_view name,
                       std::byte* target);

// The parts of a written message: text, then the elements' own bytes if `has_bytes`.
struct WrittenContents {
  std::string text;  // the message without those bytes
  bool has_bytes = false;
};
// An upper bound of the size of the text.
uint64_t contents_bound(const DataType& type, uint64_t bytes);
WrittenContents write_contents(const DataType& type, std::span<const std::byte> bytes);

}  // namespace halyard::tools::serve
