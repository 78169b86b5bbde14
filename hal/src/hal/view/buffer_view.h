// BufferView: a buffer with shape, element type and encoding; immutable. Specified by hal-module.md, "Buffer
// view".
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "base/object.h"
#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/view/element_type.h"

namespace halyard::hal {

inline constexpr uint32_t kEncodingOpaque = 0;
inline constexpr uint32_t kEncodingDenseRowMajor = 1;

class BufferView final : public ObjectOf<BufferView> {
 public:
  static const ObjectType kType;  // "hal.buffer_view"

  // The shape is stored as given. `memory` (may be null) is charged. OUT_OF_RANGE: more than 128 dimensions;
  // RESOURCE_EXHAUSTED.
  static Result<Ref<BufferView>> create(Ref<Buffer> buffer, std::span<const int64_t> shape, ElementType type,
                                        uint32_t encoding, Budget* memory = nullptr);

  Buffer& buffer() const { return *buffer_; }
  Device& device() const { return buffer_->device(); }
  Ref<Buffer> leave() { return std::move(buffer_); }
  std::span<const int64_t> shape() const { return shape_; }
  ElementType type() const { return type_; }
  uint32_t encoding() const { return encoding_; }

  // The number of bytes that shape and type need; the buffer may be larger. Programs create views of any
  // shape, so code that reads, writes, exports, prints, splits or sends a view must call this first and
  // access no byte beyond. OUT_OF_RANGE: the buffer is smaller. INVALID_ARGUMENT: a shape without a size.
  Result<uint64_t> byte_count() const;
  // Maps those bytes into this process, like Buffer::map.
  Result<std::span<uint8_t>> map() const;

  // Implements hal.buffer_view.assert; the error begins with `message`.
  Result<> check(std::string_view message, ElementType type, uint32_t encoding,
                 std::span<const int64_t> shape) const;
  std::string type_text() const;  // "4xf32"
  // "4xf32=1 2 3 4". Reads the buffer from the host. PERMISSION_DENIED: the host cannot map it.
  Result<std::string> text(uint64_t max_elements) const;
  // The same in two steps, for buffers that the host cannot map: the number of leading bytes to read, and the
  // text of these.
  Result<uint64_t> text_byte_count(uint64_t max_elements) const;
  Result<std::string> text_of(std::span<const uint8_t> leading, uint64_t max_elements) const;

  BufferView(Ref<Buffer> buffer, std::span<const int64_t> shape, ElementType type, uint32_t encoding)
      : buffer_(std::move(buffer)), type_(type), encoding_(encoding) {
    shape_.assign(shape.begin(), shape.end());
  }

 private:
  Ref<Buffer> buffer_;
  boost::container::small_vector<int64_t, 6> shape_;
  ElementType type_;
  uint32_t encoding_;
  Charge charge_;
};

}  // namespace halyard::hal
