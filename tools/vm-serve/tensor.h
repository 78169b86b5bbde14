// Tensors of requests and responses: inputs and outputs of a model, and bytes that devices can use in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datatype.h"

namespace halyard::tools::serve {

inline constexpr int64_t kAnySize = -1;
inline constexpr size_t kMaxDimensions = 32;

// An argument or a result of a model.
struct TensorSpec {
  std::string name;
  const DataType* type = nullptr;
  uint32_t element_type = 0;   // as declared by the program
  std::vector<int64_t> shape;  // kAnySize for a dynamic dimension; {1} for a number
  bool any_shape = false;      // the number of dimensions is unknown
  bool is_number = false;      // passed by value, not as a tensor; requests may give it the shape [] or [1]

  // Whether a tensor of this shape can be passed.
  bool matches(std::span<const int64_t> given) const;
};

struct ModelSpec {
  std::string name;
  std::string version;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
};

// The number of elements. Nothing if a dimension is negative, there are too many dimensions, or the size of
// the tensor in bytes exceeds 63 bits.
std::optional<uint64_t> element_count(std::span<const int64_t> shape, uint32_t element_size);

// Makes each byte of a BOOL tensor 0 or 1; no effect on other types.
void make_truth_values(std::span<std::byte> bytes, const DataType& type);

// "[2,-1]"
std::string shape_text(std::span<const int64_t> shape);

// Growing, uninitialized memory, aligned to 64 bytes so that local devices use it without a copy.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  // False: out of memory. Keeps the contents; additional bytes are uninitialized.
  [[nodiscard]] bool resize(size_t size);
  [[nodiscard]] bool reserve(size_t capacity);
  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> span() const { return {data_.get(), size_}; }
  // Gives the memory to the caller, who must call std::free.
  std::byte* release() {
    size_ = capacity_ = 0;
    return data_.release();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace halyard::tools::serve
