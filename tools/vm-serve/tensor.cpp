// Shapes and memory.
#include "tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace halyard::tools::serve {

bool TensorSpec::matches(std::span<const int64_t> given) const {
  if (any_shape) return true;
  if (is_number) return given.empty() || (given.size() == 1 && given[0] == 1);
  return std::ranges::equal(shape, given,
                            [](int64_t own, int64_t size) { return own == kAnySize || own == size; });
}

std::optional<uint64_t> element_count(std::span<const int64_t> shape, uint32_t element_size) {
  constexpr uint64_t kMaxCount = std::numeric_limits<int64_t>::max();
  if (shape.size() > kMaxDimensions) return std::nullopt;
  // A dimension of 0 makes the others irrelevant only if their product can be counted, too.
  uint64_t product = element_size;
  bool is_empty = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      is_empty = true;
      continue;
    }
    if (product > kMaxCount / static_cast<uint64_t>(size)) return std::nullopt;
    product *= static_cast<uint64_t>(size);
  }
  return is_empty ? 0 : product / element_size;
}

void make_truth_values(std::span<std::byte> bytes, const DataType& type) {
  if (type.kind != NumberKind::boolean) return;
  for (std::byte& byte : bytes)
    if (byte != std::byte{0}) byte = std::byte{1};
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

bool AlignedBuffer::reserve(size_t capacity) {
  if (capacity <= capacity_) return true;
  if (capacity > std::numeric_limits<size_t>::max() - kAlignment) return false;
  const size_t rounded = (capacity + kAlignment - 1) / kAlignment * kAlignment;
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (!memory) return false;
  if (size_ > 0) std::memcpy(memory, data_.get(), size_);
  data_.reset(memory);
  capacity_ = rounded;
  return true;
}

bool AlignedBuffer::resize(size_t size) {
  if (size > capacity_ && !reserve(std::max(size, capacity_ == 0 ? size : 2 * capacity_))) return false;
  size_ = size;
  return true;
}

}  // namespace halyard::tools::serve
