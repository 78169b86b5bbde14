#include "hal/device/external_memory.h"
// Views over the embedder's memory, and mappings (halyard/memory.h).
#include "hal/device/external_memory.h"
#include "halyard/memory.h"
#include "shared_memory.h"
using namespace halyard;
#include "hal/device/external_memory.h"
using namespace halyard::c;
#include "hal/device/external_memory.h"
namespace halyard::c {
#include "hal/device/external_memory.h"
Result<Ref<hal::Device>> device_or_host(halyard_device_t device) {
#include "hal/device/external_memory.h"
  if (device) return Ref<hal::Device>::share(HALYARD_TRY(checked<hal::Device>(device)));
#include "hal/device/external_memory.h"
  return hal::open_host_memory();
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
Result<hal::Buffer*> buffer_of(halyard_object_t handle) {
#include "hal/device/external_memory.h"
  Object* const object = from_handle<Object>(handle);
#include "hal/device/external_memory.h"
  if (auto* view = cast<hal::BufferView>(object)) return &view->buffer();
#include "hal/device/external_memory.h"
  if (auto* buffer = cast<hal::Buffer>(object)) return buffer;
#include "hal/device/external_memory.h"
  return fail(Code::INVALID_ARGUMENT, "expected a {} or a {}, found {}", hal::BufferView::kType.name,
#include "hal/device/external_memory.h"
              hal::Buffer::kType.name, object ? object->type()->name : "null");
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
Result<> check_shape_of(Object* object) {
#include "hal/device/external_memory.h"
  if (const auto* view = cast<hal::BufferView>(object)) HALYARD_TRY(view->byte_count());
#include "hal/device/external_memory.h"
  return {};
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
Result<> check_view_size(std::span<const int64_t> shape, uint32_t element_type, size_t size) {
#include "hal/device/external_memory.h"
  const uint64_t expected = HALYARD_TRY(hal::dense_byte_count(shape, element_type));
#include "hal/device/external_memory.h"
  if (expected == size) return {};
#include "hal/device/external_memory.h"
  return fail(Code::INVALID_ARGUMENT, "a view of {}{}{} takes {} bytes; {} were given",
#include "hal/device/external_memory.h"
              hal::shape_text(shape), shape.empty() ? "" : "x", hal::element_type_text(element_type),
#include "hal/device/external_memory.h"
              expected, size);
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
namespace {
#include "hal/device/external_memory.h"
Result<> clear(hal::Buffer& buffer) {
#include "hal/device/external_memory.h"
  constexpr size_t kPiece = size_t{64} << 10;  // fits into a processor's cache
#include "hal/device/external_memory.h"
  const std::vector<uint8_t> zeros(std::min<size_t>(buffer.length(), kPiece));
#include "hal/device/external_memory.h"
  for (uint64_t at = 0; at < buffer.length(); at += kPiece)
#include "hal/device/external_memory.h"
    HALYARD_TRY(buffer.write(at, zeros.data(), std::min<uint64_t>(kPiece, buffer.length() - at)));
#include "hal/device/external_memory.h"
  return {};
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
}  // namespace
#include "hal/device/external_memory.h"
Result<Ref<hal::BufferView>> copied_view(halyard_device_t device, std::span<const int64_t> shape,
#include "hal/device/external_memory.h"
                                         uint32_t element_type, const void* data, size_t size) {
#include "hal/device/external_memory.h"
  HALYARD_TRY(check_view_size(shape, element_type, size));
#include "hal/device/external_memory.h"
  const Ref<hal::Device> owner = HALYARD_TRY(device_or_host(device));
#include "hal/device/external_memory.h"
  Ref<hal::Buffer> buffer =
#include "hal/device/external_memory.h"
      HALYARD_TRY(hal::Buffer::allocate(*owner, hal::kAnyQueue,
                                        HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_VISIBLE,
#include "hal/device/external_memory.h"
                                        kUsage, size, nullptr, HALYARD_OWNER_WRITES_ALL));
#include "hal/device/external_memory.h"
  if (data) {
#include "hal/device/external_memory.h"
    HALYARD_TRY(buffer->write(0, data, size));
#include "hal/device/external_memory.h"
  } else {
#include "hal/device/external_memory.h"
    HALYARD_TRY(clear(*buffer));
#include "hal/device/external_memory.h"
  }
#include "hal/device/external_memory.h"
  return hal::BufferView::create(std::move(buffer), shape, element_type, hal::kEncodingDenseRowMajor);
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
Result<Imported> import_view(halyard_device_t device, std::span<const int64_t> shape, uint32_t element_type,
#include "hal/device/external_memory.h"
                             void* data, size_t size, uint32_t flags, std::function<void()> released) {
#include "hal/device/external_memory.h"
  HALYARD_TRY(check_view_size(shape, element_type, size));
#include "hal/device/external_memory.h"
  if (!data && size != 0)
#include "hal/device/external_memory.h"
    return fail(Code::INVALID_ARGUMENT, "expected {} bytes of `data`, found a null pointer", size);
#include "hal/device/external_memory.h"
  const Ref<hal::Device> owner = HALYARD_TRY(device_or_host(device));
#include "hal/device/external_memory.h"
  const uint32_t access = flags & HALYARD_IMPORT_READ_ONLY ? hal::kRead : hal::kAccessAll;
#include "hal/device/external_memory.h"
  Result<Ref<hal::Buffer>> buffer =
#include "hal/device/external_memory.h"
      hal::import_host(*owner, hal::kAnyQueue, kWishes, kUsage, access, data, size, Ref<Object>());
#include "hal/device/external_memory.h"
  if (!buffer) {
#include "hal/device/external_memory.h"
    if (flags & HALYARD_IMPORT_NO_COPY) return std::unexpected(std::move(buffer).error());
#include "hal/device/external_memory.h"
    Ref<hal::BufferView> copy = HALYARD_TRY(copied_view(device, shape, element_type, data, size));
#include "hal/device/external_memory.h"
    if (released) released();
#include "hal/device/external_memory.h"
    return Imported{std::move(copy), true};
#include "hal/device/external_memory.h"
  }
#include "hal/device/external_memory.h"
  hal::Allocation& allocation = (*buffer)->allocation();
#include "hal/device/external_memory.h"
  Ref<hal::BufferView> made = HALYARD_TRY(
#include "hal/device/external_memory.h"
      hal::BufferView::create(std::move(*buffer), shape, element_type, hal::kEncodingDenseRowMajor));
#include "hal/device/external_memory.h"
  // Done last, because a failure must not release the bytes.
#include "hal/device/external_memory.h"
  allocation.keep = Bytes::borrow({static_cast<const uint8_t*>(data), size}, std::move(released));
#include "hal/device/external_memory.h"
  return Imported{std::move(made), false};
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
}  // namespace halyard::c
#include "hal/device/external_memory.h"
halyard_status_t halyard_view_import(halyard_device_t device, uint32_t element_type, const int64_t* shape,
#include "hal/device/external_memory.h"
                                     size_t rank, void* data, size_t size, uint32_t flags,
#include "hal/device/external_memory.h"
                                     halyard_release_fn release, void* user, uint32_t* is_copy,
#include "hal/device/external_memory.h"
                                     halyard_object_t* out) {
#include "hal/device/external_memory.h"
  return guarded([&]() -> Result<> {
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_output(out, "out"));
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_dimensions(shape, rank));
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_flags(flags, HALYARD_IMPORT_READ_ONLY | HALYARD_IMPORT_NO_COPY, "HALYARD_IMPORT_*"));
#include "hal/device/external_memory.h"
    std::function<void()> released;
#include "hal/device/external_memory.h"
    if (release) released = [release, user] { release(user); };
#include "hal/device/external_memory.h"
    Imported made =
#include "hal/device/external_memory.h"
        HALYARD_TRY(import_view(device, {shape, rank}, element_type, data, size, flags, std::move(released)));
#include "hal/device/external_memory.h"
    if (is_copy) *is_copy = made.is_copy;
#include "hal/device/external_memory.h"
    *out = give<halyard_object_t>(std::move(made.view));
#include "hal/device/external_memory.h"
    return {};
#include "hal/device/external_memory.h"
  });
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
halyard_status_t halyard_view_part(halyard_object_t view, uint64_t offset, uint32_t element_type,
#include "hal/device/external_memory.h"
                                   const int64_t* shape, size_t rank, halyard_object_t* out) {
#include "hal/device/external_memory.h"
  return guarded([&]() -> Result<> {
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_output(out, "out"));
#include "hal/device/external_memory.h"
    hal::Buffer* const whole = HALYARD_TRY(buffer_of(view));
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_shape_of(from_handle<Object>(view)));
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_dimensions(shape, rank));
#include "hal/device/external_memory.h"
    const std::span<const int64_t> dimensions(shape, rank);
#include "hal/device/external_memory.h"
    const uint64_t size = HALYARD_TRY(hal::dense_byte_count(dimensions, element_type));
#include "hal/device/external_memory.h"
    Ref<hal::Buffer> part = HALYARD_TRY(whole->subspan(offset, size));
#include "hal/device/external_memory.h"
    *out = give<halyard_object_t>(HALYARD_TRY(
#include "hal/device/external_memory.h"
        hal::BufferView::create(std::move(part), dimensions, element_type, hal::kEncodingDenseRowMajor)));
#include "hal/device/external_memory.h"
    return {};
#include "hal/device/external_memory.h"
  });
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
halyard_status_t halyard_view_device(halyard_object_t view, halyard_device_t* out) {
#include "hal/device/external_memory.h"
  return guarded([&]() -> Result<> {
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_output(out, "out"));
#include "hal/device/external_memory.h"
    hal::Buffer* const buffer = HALYARD_TRY(buffer_of(view));
#include "hal/device/external_memory.h"
    *out = give<halyard_device_t>(Ref<hal::Device>::share(&buffer->device()));
#include "hal/device/external_memory.h"
    return {};
#include "hal/device/external_memory.h"
  });
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
halyard_status_t halyard_view_map(halyard_object_t view, uint32_t access, void** data, size_t* size) {
#include "hal/device/external_memory.h"
  return guarded([&]() -> Result<> {
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_output(data, "data"));
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_output(size, "size"));
#include "hal/device/external_memory.h"
    hal::Buffer* const buffer = HALYARD_TRY(buffer_of(view));
#include "hal/device/external_memory.h"
    HALYARD_TRY(check_flags(access, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, "HALYARD_VIEW_*"));
#include "hal/device/external_memory.h"
    if (access & HALYARD_VIEW_WRITE) HALYARD_TRY(buffer->check_access(hal::kWrite));
#include "hal/device/external_memory.h"
    const auto* shaped = cast<hal::BufferView>(from_handle<Object>(view));
#include "hal/device/external_memory.h"
    const std::span<uint8_t> bytes = HALYARD_TRY(shaped ? shaped->map() : buffer->map());
#include "hal/device/external_memory.h"
    from_handle<Object>(view)->retain();  // until it is unmapped
#include "hal/device/external_memory.h"
    *data = bytes.data();
#include "hal/device/external_memory.h"
    *size = bytes.size();
#include "hal/device/external_memory.h"
    return {};
#include "hal/device/external_memory.h"
  });
#include "hal/device/external_memory.h"
}
#include "hal/device/external_memory.h"
void halyard_view_unmap(halyard_object_t view) {
#include "hal/device/external_memory.h"
  if (Result<hal::Buffer*> buffer = buffer_of(view)) {
#include "hal/device/external_memory.h"
    (*buffer)->allocation().unmap();
#include "hal/device/external_memory.h"
    from_handle<Object>(view)->release();
#include "hal/device/external_memory.h"
  }
#include "hal/device/external_memory.h"
}
