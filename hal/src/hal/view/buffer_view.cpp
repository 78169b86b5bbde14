// Buffer views: checks, and contents as text.
#include "hal/view/buffer_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "hal/device/pooled.h"
#include "hal/view/element_text.h"

namespace halyard::hal {

const ObjectType BufferView::kType = pooled_object_type<BufferView>("hal.buffer_view");

namespace {

// Integers and booleans of the same width are compatible, with any signedness.
bool is_integer(ElementType type) { return (numerical_type(type) & kInteger) != 0; }

bool accepts(ElementType expected, ElementType actual) {
  if (expected == actual || numerical_type(actual) == kOpaque) return true;
  return is_integer(expected) && is_integer(actual) && bit_count(expected) == bit_count(actual);
}

}  // namespace

Result<Ref<BufferView>> BufferView::create(Ref<Buffer> buffer, std::span<const int64_t> shape,
                                           ElementType type, uint32_t encoding, Budget* memory) {
  if (shape.size() > kMaxRank)
    return fail(Code::OUT_OF_RANGE, "expected at most {} dimensions for a buffer view, found {}", kMaxRank,
                shape.size());
  Device& device = buffer->device();
  Ref<BufferView> view = make_pooled<BufferView>(device, std::move(buffer), shape, type, encoding);
  HALYARD_TRY(view->charge_.start(
      memory, NodePool::footprint(sizeof(BufferView)) + block_bytes(shape.size_bytes()), "a buffer view"));
  return view;
}

Result<> BufferView::check(std::string_view message, ElementType type, uint32_t encoding,
                           std::span<const int64_t> shape) const {
  if (encoding_ != kEncodingOpaque && encoding_ != encoding)
    return fail(Code::INVALID_ARGUMENT, "{}: expected encoding {:08X}, found {:08X}", message, encoding,
                encoding_);
  if (!accepts(type, type_))
    return fail(Code::INVALID_ARGUMENT, "{}: expected element type {} ({:08X}), found {} ({:08X})", message,
                element_type_text(type), type, element_type_text(type_), type_);
  const auto shapes = [&] {
    return fmt::format("expected shape '{}', found '{}'", shape_text(shape), shape_text(shape_));
  };
  if (shape.size() != shape_.size())
    return fail(Code::INVALID_ARGUMENT, "{}: {}: rank {} instead of {}", message, shapes(), shape_.size(),
                shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != shape_[i])
      return fail(Code::INVALID_ARGUMENT, "{}: {}: dimension {} is {} instead of {}", message, shapes(), i,
                  shape_[i], shape[i]);
  }
  return {};
}

std::string BufferView::type_text() const {
  return shape_text(shape_) + (shape_.empty() ? "" : "x") + element_type_text(type_);
}

Result<uint64_t> BufferView::byte_count() const {
  const uint64_t size = HALYARD_TRY(dense_byte_count(shape_, type_));
  if (size > buffer_->length()) [[unlikely]]
    return fail(Code::OUT_OF_RANGE, "a view of {} needs {} bytes, but its buffer has {}", type_text(), size,
                buffer_->length());
  return size;
}

Result<std::span<uint8_t>> BufferView::map() const {
  const uint64_t size = HALYARD_TRY(byte_count());
  return HALYARD_TRY(buffer_->map()).first(size);
}

Result<uint64_t> BufferView::text_byte_count(uint64_t max_elements) const {
  const uint64_t size = HALYARD_TRY(byte_count());
  const uint64_t element_size = std::max<uint64_t>(bit_count(type_) / 8, 1);
  return size / element_size <= max_elements ? size : max_elements * element_size;
}

Result<std::string> BufferView::text_of(std::span<const uint8_t> leading, uint64_t max_elements) const {
  return format_leading(shape_, type_, leading, max_elements);
}

Result<std::string> BufferView::text(uint64_t max_elements) const {
  std::vector<uint8_t> bytes(HALYARD_TRY(text_byte_count(max_elements)));
  HALYARD_TRY(buffer_->read(0, bytes.data(), bytes.size()));
  return text_of(bytes, max_elements);
}

}  // namespace halyard::hal
