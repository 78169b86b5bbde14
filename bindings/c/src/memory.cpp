// Views over the embedder's memory, and mappings (halyard/memory.h).
#include "halyard/memory.h"

#include "hal/device/external_memory.h"
#include "hal/queue/host_copy.h"
#include "shared_memory.h"

using namespace halyard;
using namespace halyard::c;

namespace halyard::c {

Result<Ref<hal::Device>> device_or_host(halyard_device_t device) {
  if (device) return Ref<hal::Device>::share(HALYARD_TRY(checked<hal::Device>(device)));
  return hal::open_host_memory();
}

Result<hal::Buffer*> buffer_of(halyard_object_t handle) {
  Object* const object = from_handle<Object>(handle);
  if (auto* view = cast<hal::BufferView>(object)) return &view->buffer();
  if (auto* buffer = cast<hal::Buffer>(object)) return buffer;
  return fail(Code::INVALID_ARGUMENT, "expected a {} or a {}, found {}", hal::BufferView::kType.name,
              hal::Buffer::kType.name, object ? object->type()->name : "null");
}

Result<> check_shape_of(Object* object) {
  if (const auto* view = cast<hal::BufferView>(object)) HALYARD_TRY(view->byte_count());
  return {};
}

Result<> check_view_size(std::span<const int64_t> shape, uint32_t element_type, size_t size) {
  const uint64_t expected = HALYARD_TRY(hal::dense_byte_count(shape, element_type));
  if (expected == size) return {};
  return fail(Code::INVALID_ARGUMENT, "a view of {}{}{} needs {} bytes, found {}", hal::shape_text(shape),
              shape.empty() ? "" : "x", hal::element_type_text(element_type), expected, size);
}

namespace {

Result<> clear(hal::Buffer& buffer) {
  constexpr size_t kPiece = size_t{64} << 10;  // fits into a processor's cache
  const std::vector<uint8_t> zeros(std::min<size_t>(buffer.length(), kPiece));
  for (uint64_t at = 0; at < buffer.length(); at += kPiece)
    HALYARD_TRY(
        hal::write_now(std::span(zeros).first(std::min<uint64_t>(kPiece, buffer.length() - at)), buffer, at));
  return {};
}

}  // namespace

Result<Ref<hal::BufferView>> copied_view(halyard_device_t device, std::span<const int64_t> shape,
                                         uint32_t element_type, const void* data, size_t size) {
  HALYARD_TRY(check_view_size(shape, element_type, size));
  const Ref<hal::Device> owner = HALYARD_TRY(device_or_host(device));
  const hal::MakerScope maker("the embedder, for an argument");
  Ref<hal::Buffer> buffer = HALYARD_TRY(hal::Buffer::allocate(*owner, hal::kAnyQueue, kWishes, kUsage, size,
                                                              nullptr, HALYARD_OWNER_WRITES_ALL));
  if (data) {
    HALYARD_TRY(hal::write_now({static_cast<const uint8_t*>(data), size}, *buffer, 0));
  } else {
    HALYARD_TRY(clear(*buffer));
  }
  return hal::BufferView::create(std::move(buffer), shape, element_type, hal::kEncodingDenseRowMajor);
}

Result<Imported> import_view(halyard_device_t device, std::span<const int64_t> shape, uint32_t element_type,
                             void* data, size_t size, uint32_t flags, std::function<void()> released) {
  HALYARD_TRY(check_view_size(shape, element_type, size));
  if (!data && size != 0)
    return fail(Code::INVALID_ARGUMENT, "expected {} bytes of `data`, found a null pointer", size);
  const Ref<hal::Device> owner = HALYARD_TRY(device_or_host(device));
  const uint32_t access = flags & HALYARD_IMPORT_READ_ONLY ? hal::kRead : hal::kAccessAll;
  Result<Ref<hal::Buffer>> buffer =
      hal::import_host(*owner, hal::kAnyQueue, kWishes, kUsage, access, data, size, Ref<Object>());
  if (!buffer) {
    if (flags & HALYARD_IMPORT_NO_COPY) return std::unexpected(std::move(buffer).error());
    Ref<hal::BufferView> copy = HALYARD_TRY(copied_view(device, shape, element_type, data, size));
    if (released) released();
    return Imported{std::move(copy), true};
  }
  hal::Allocation& allocation = (*buffer)->allocation();
  Ref<hal::BufferView> made = HALYARD_TRY(
      hal::BufferView::create(std::move(*buffer), shape, element_type, hal::kEncodingDenseRowMajor));
  // Done last, because a failure must not release the bytes.
  allocation.keep = Bytes::borrow({static_cast<const uint8_t*>(data), size}, std::move(released));
  return Imported{std::move(made), false};
}

}  // namespace halyard::c

halyard_status_t halyard_view_import(halyard_device_t device, uint32_t element_type, const int64_t* shape,
                                     size_t rank, void* data, size_t size, uint32_t flags,
                                     halyard_release_fn release, void* user, uint32_t* is_copy,
                                     halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_dimensions(shape, rank));
    HALYARD_TRY(check_flags(flags, HALYARD_IMPORT_READ_ONLY | HALYARD_IMPORT_NO_COPY, "HALYARD_IMPORT_*"));
    std::function<void()> released;
    if (release) released = [release, user] { release(user); };
    Imported made =
        HALYARD_TRY(import_view(device, {shape, rank}, element_type, data, size, flags, std::move(released)));
    if (is_copy) *is_copy = made.is_copy;
    *out = give<halyard_object_t>(std::move(made.view));
    return {};
  });
}

halyard_status_t halyard_view_part(halyard_object_t view, uint64_t offset, uint32_t element_type,
                                   const int64_t* shape, size_t rank, halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    hal::Buffer* const whole = HALYARD_TRY(buffer_of(view));
    HALYARD_TRY(check_shape_of(from_handle<Object>(view)));
    HALYARD_TRY(check_dimensions(shape, rank));
    const std::span<const int64_t> dimensions(shape, rank);
    const uint64_t size = HALYARD_TRY(hal::dense_byte_count(dimensions, element_type));
    Ref<hal::Buffer> part = HALYARD_TRY(whole->subspan(offset, size));
    *out = give<halyard_object_t>(HALYARD_TRY(
        hal::BufferView::create(std::move(part), dimensions, element_type, hal::kEncodingDenseRowMajor)));
    return {};
  });
}

halyard_status_t halyard_view_device(halyard_object_t view, halyard_device_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    hal::Buffer* const buffer = HALYARD_TRY(buffer_of(view));
    *out = give<halyard_device_t>(Ref<hal::Device>::share(&buffer->device()));
    return {};
  });
}

halyard_status_t halyard_view_map(halyard_object_t view, uint32_t access, void** data, size_t* size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(data, "data"));
    HALYARD_TRY(check_output(size, "size"));
    hal::Buffer* const buffer = HALYARD_TRY(buffer_of(view));
    HALYARD_TRY(check_flags(access, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, "HALYARD_VIEW_*"));
    if (access & HALYARD_VIEW_WRITE) HALYARD_TRY(buffer->check_access(hal::kWrite));
    const auto* shaped = cast<hal::BufferView>(from_handle<Object>(view));
    const std::span<uint8_t> bytes = HALYARD_TRY(shaped ? shaped->map() : buffer->map());
    from_handle<Object>(view)->retain();  // until it is unmapped
    *data = bytes.data();
    *size = bytes.size();
    return {};
  });
}

void halyard_view_unmap(halyard_object_t view) {
  if (Result<hal::Buffer*> buffer = buffer_of(view)) {
    (*buffer)->allocation().unmap();
    from_handle<Object>(view)->release();
  }
}
