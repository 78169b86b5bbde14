// Converts types in both directions, and computes the reach of strides.
#include "dlpack_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace halyard::dlpack {

namespace {

using Wide = __int128;
constexpr Wide kEnd = std::numeric_limits<int64_t>::max();  // no process has memory above this address

struct TypePair {
  uint32_t numerical;  // hal::NumericalType
  uint8_t code;
  uint8_t least_bits;  // valid widths are the powers of two from this one
  uint8_t most_bits;   // to this one
};
// If several types have the same DLPack code, a tensor gets the first of them.
constexpr TypePair kTypes[] = {
#define HALYARD_NUMERICAL_TYPE(name, value, prefix, dlpack, least, most) \
  {hal::k##name, k##dlpack, least, most},
#include "halyard/element_types.inc"
};

bool has_width(const TypePair& type, uint32_t bits) {
  return std::has_single_bit(bits) && bits >= type.least_bits && bits <= type.most_bits;
}

Result<hal::ElementType> element_type_of(const Tensor& tensor) {
  if (tensor.lanes != 1)
    return fail(Code::UNIMPLEMENTED, "expected a DLPack tensor of scalar elements, found vectors of {} lanes",
                tensor.lanes);
  for (const TypePair& type : kTypes)
    if (type.code == tensor.code && has_width(type, tensor.bits))
      return hal::element_type(static_cast<hal::NumericalType>(type.numerical), tensor.bits);
  return fail(Code::UNIMPLEMENTED,
              "found a DLPack tensor whose elements (code {}, {} bits) programs do not have", tensor.code,
              tensor.bits);
}

Result<> check_place(const Tensor& tensor) {
  if (tensor.device_type != kCpu && tensor.device_type != kCudaHost && tensor.device_type != kRocmHost)
    return fail(
        Code::UNIMPLEMENTED,
        "expected a DLPack tensor in CPU memory, found device type {}; copy the tensor to the CPU first",
        tensor.device_type);
  if (tensor.rank < 0 || static_cast<size_t>(tensor.rank) > hal::kMaxRank ||
      (tensor.rank > 0 && !tensor.shape))
    return fail(Code::INVALID_ARGUMENT, "found a DLPack tensor of rank {}{}; expected 0 to {}", tensor.rank,
                tensor.rank > 0 && !tensor.shape ? " without a shape" : "", hal::kMaxRank);
  return {};
}

// Precondition: the tensor has 1 to kEnd elements. The stride of a dimension with one element is irrelevant.
bool is_dense(const Tensor& tensor) {
  if (!tensor.strides) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.rank; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// Whether every element is between address 1 and kEnd, so that sums of strides fit into 64 bits.
bool is_within_memory(const Tensor& tensor, const Layout& layout) {
  const Wide element = tensor.bits / 8;
  Wide lowest = 0;
  Wide highest = static_cast<Wide>(layout.size);
  if (!layout.is_dense) {
    highest = element;
    for (int32_t i = 0; i < tensor.rank; ++i) {
      const Wide reach = static_cast<Wide>(tensor.shape[i] - 1) * tensor.strides[i];  // in elements
      if (reach < -kEnd || reach > kEnd) return false;
      (reach < 0 ? lowest : highest) += reach * element;
      if (highest - lowest > kEnd) return false;
    }
  }
  const Wide first = static_cast<Wide>(reinterpret_cast<uintptr_t>(tensor.data)) + tensor.byte_offset;
  return first + lowest > 0 && first + highest <= kEnd;
}

}  // namespace

Result<uint8_t> code_of(hal::ElementType element_type) {
  for (const TypePair& type : kTypes)
    if (type.numerical == hal::numerical_type(element_type) && has_width(type, hal::bit_count(element_type)))
      return type.code;
  return fail(Code::UNIMPLEMENTED, "DLPack has no element type for {}; read the bytes instead",
              hal::element_type_text(element_type));
}

Result<Layout> layout_of(const Tensor& tensor) {
  HALYARD_TRY(check_place(tensor));
  Layout layout;
  layout.type = HALYARD_TRY(element_type_of(tensor));
  layout.shape = std::span<const int64_t>(tensor.shape, static_cast<size_t>(tensor.rank));
  layout.size = HALYARD_TRY(hal::dense_byte_count(layout.shape, layout.type));
  if (layout.size == 0) return layout;
  if (!tensor.data)
    return fail(Code::INVALID_ARGUMENT, "found a DLPack tensor of {} bytes without data", layout.size);
  if (layout.size > kEnd)
    return fail(Code::INVALID_ARGUMENT,
                "found a DLPack tensor of shape {} with {} bytes; expected at most {}",
                hal::shape_text(layout.shape), layout.size, std::numeric_limits<int64_t>::max());
  layout.is_dense = is_dense(tensor);
  if (!is_within_memory(tensor, layout))
    return fail(
        Code::INVALID_ARGUMENT,
        "the elements of a DLPack tensor of shape {} lie outside of the address space, because of its "
        "strides or its byte_offset of {}",
        hal::shape_text(layout.shape), tensor.byte_offset);
  layout.first = static_cast<uint8_t*>(tensor.data) + tensor.byte_offset;
  return layout;
}

void gather(const Tensor& tensor, const Layout& layout, uint8_t* to) {
  const size_t element = tensor.bits / 8;
  std::vector<int64_t> index(layout.shape.size(), 0);
  for (const uint8_t* const end = to + layout.size; to != end; to += element) {
    int64_t offset = 0;  // in bytes
    for (size_t i = 0; i < index.size(); ++i)
      offset += index[i] * tensor.strides[i] * static_cast<int64_t>(element);
    std::memcpy(to, layout.first + offset, element);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < layout.shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace halyard::dlpack
