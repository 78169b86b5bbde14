// A view of any shape and type over a buffer of any size, as programs can create it. Every access to its
// bytes (a mapping, a part, DLPack in both forms, text) is refused or stays within the buffer.
#include <algorithm>

#include "dlpack_structs.h"
#include "fuzzing.h"
#include "hal/device/host_memory.h"
#include "hal/view/buffer_view.h"
#include "halyard/halyard.h"
#include "halyard/memory.h"
#include "handles.h"
#include "hostile_tensor.h"

using namespace halyard;

namespace {

bool is_ok(halyard_status_t status) {
  const bool ok = !status;
  halyard_status_release(status);
  return ok;
}

constexpr hal::ElementType kTypes[] = {
    hal::element_type(hal::kFloatIeee, 32), hal::element_type(hal::kInteger, 8),
    hal::element_type(hal::kInteger, 4),    hal::element_type(hal::kFloatIeee, 64),
    hal::element_type(hal::kBoolean, 8),    hal::element_type(hal::kFloatIeee, 0),
    hal::element_type(hal::kInteger, 255),  hal::element_type(hal::kFloatBrain, 16)};

// The bytes that the shape needs, in wide arithmetic. Above `most`: more, or the shape has no size.
unsigned __int128 needed(std::span<const int64_t> shape, hal::ElementType type, uint64_t most) {
  const unsigned __int128 none = static_cast<unsigned __int128>(most) + 1;
  if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; })) return none;
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  unsigned __int128 count = 1;
  for (const int64_t size : shape)
    if ((count *= static_cast<uint64_t>(size)) > UINT64_MAX) return none;
  return std::min((count * hal::bit_count(type) + 7) / 8, none);
}

// Whether the elements of a tensor that Halyard exports are within `bytes`.
bool lies_within(const dlpack::Tensor& tensor, std::span<const uint8_t> bytes) {
  if (std::find(tensor.shape, tensor.shape + tensor.rank, 0) != tensor.shape + tensor.rank) return true;
  __int128 last = 0;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] < 0 || tensor.strides[i] < 0) return false;
    last += static_cast<__int128>(tensor.shape[i] - 1) * tensor.strides[i];
    if (last > INT64_MAX) return false;
  }
  const auto* const first = static_cast<const uint8_t*>(tensor.data) + tensor.byte_offset;
  return first >= bytes.data() && (last + 1) * (tensor.bits / 8) <= bytes.data() + bytes.size() - first;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Ref<hal::Device> host = hal::open_host_memory().value();
  fuzz::Source source({data, size});
  const hal::ElementType type = kTypes[source.byte() % std::size(kTypes)];
  const uint64_t length = source.byte();
  std::vector<int64_t> shape(source.byte() % 5);
  for (int64_t& one : shape) one = source.number();
  Ref<hal::Buffer> buffer = hal::Buffer::allocate(*host, hal::kAnyQueue, 0, 0, length).value();
  const std::span<const uint8_t> bytes = buffer->map().value();
  Ref<hal::BufferView> view =
      hal::BufferView::create(buffer, shape, type, hal::kEncodingDenseRowMajor).value();
  const auto handle = c::to_handle<halyard_object_t>(static_cast<Object*>(view.get()));

  const bool fits = needed(shape, type, length) <= length;
  uint64_t count = 0;
  if (is_ok(halyard_view_byte_count(handle, &count)) != fits)
    fuzz::finding("a view and its buffer are compared wrongly");
  if (fits && count != needed(shape, type, length)) fuzz::finding("a view has another size than its shape");
  void* mapped = nullptr;
  size_t mapped_size = 0;
  if (is_ok(halyard_view_map(handle, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &mapped, &mapped_size))) {
    if (!fits || mapped_size != count) fuzz::finding("a mapping has more than the view's elements");
    halyard_view_unmap(handle);
  } else if (fits) {
    fuzz::finding("a view that fits its buffer is not mapped");
  }
  for (const uint32_t flags : {0u, uint32_t{HALYARD_DLPACK_COPY}}) {
    DLManagedTensorVersioned* versioned = nullptr;
    if (is_ok(halyard_view_to_dlpack(handle, flags, &versioned))) {
      const auto* const first = static_cast<const uint8_t*>(versioned->tensor.data);
      if (!fits || !lies_within(versioned->tensor, flags ? std::span(first, count) : bytes))
        fuzz::finding("an exported tensor reaches beyond its buffer");
    }
    halyard_dlpack_release(versioned);
    DLManagedTensor* plain = nullptr;
    if (is_ok(halyard_view_to_dlpack_unversioned(handle, flags, &plain)) && !fits)
      fuzz::finding("an exported tensor reaches beyond its buffer");
    halyard_dlpack_release_unversioned(plain);
  }
  char* text = nullptr;
  if (is_ok(halyard_view_text(handle, 100, &text)) && !fits)
    fuzz::finding("a view is printed beyond its buffer");
  halyard_free(text);
  uint8_t first = 0;
  if (is_ok(halyard_view_read(handle, 0, &first, length ? 1 : 0)) && !fits)
    fuzz::finding("a view is read whose buffer is too small");
  halyard_object_t part = nullptr;
  const int64_t none = 0;
  if (is_ok(halyard_view_part(handle, 0, type, &none, 1, &part)) != fits)
    fuzz::finding("a part is cut from a view whose buffer is too small");
  halyard_release(part);
  buffer->allocation().unmap();
  return 0;
}
