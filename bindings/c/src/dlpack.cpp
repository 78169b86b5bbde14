// Converts views to DLPack tensors, and DLPack tensors to views (halyard/memory.h).
#include "dlpack_layout.h"
#include "dlpack_structs.h"
#include "hal/queue/host_copy.h"
#include "halyard/memory.h"
#include "shared_memory.h"

using namespace halyard;
using namespace halyard::c;

namespace {

// ---- To DLPack

// The contents of an exported tensor: a mapped view or owned bytes, and the arrays to which the tensor
// points.
template <typename Managed>
struct Exported {
  Managed managed;
  Ref<hal::BufferView> view;
  bool is_mapped = false;
  std::unique_ptr<uint8_t[]> copy;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  ~Exported() {
    if (is_mapped) view->buffer().allocation().unmap();
  }
  static void destroy(Managed* self) { delete static_cast<Exported*>(self->context); }
};

template <typename Managed>
Result<> export_view(halyard_object_t handle, uint32_t flags, bool can_be_read_only, Managed** out) {
  HALYARD_TRY(check_output(out, "out"));
  HALYARD_TRY(check_flags(flags, HALYARD_DLPACK_COPY | HALYARD_DLPACK_READ_ONLY, "HALYARD_DLPACK_*"));
  auto* const view = cast<hal::BufferView>(from_handle<Object>(handle));
  if (!view) return fail(Code::INVALID_ARGUMENT, "expected a hal.buffer_view to export to DLPack");
  const uint8_t code = HALYARD_TRY(dlpack::code_of(view->type()));
  const uint64_t size = HALYARD_TRY(view->byte_count());
  auto exported = std::make_unique<Exported<Managed>>();
  exported->view = Ref<hal::BufferView>::share(view);
  hal::Buffer& buffer = view->buffer();
  const bool is_copy = flags & HALYARD_DLPACK_COPY;
  const bool is_read_only =
      !is_copy && (flags & HALYARD_DLPACK_READ_ONLY || !(buffer.access() & hal::kWrite));
  if (is_read_only && !can_be_read_only)
    return fail(
        Code::PERMISSION_DENIED,
        "the memory is read-only, which this version of DLPack cannot express; use the versioned struct, or "
        "request a copy");
  void* data = nullptr;
  if (is_copy) {
    exported->copy = std::make_unique_for_overwrite<uint8_t[]>(size);
    data = exported->copy.get();
    HALYARD_TRY(hal::read_now(buffer, 0, {exported->copy.get(), size}));
    exported->view = {};
  } else {
    data = HALYARD_TRY(view->map()).data();
    exported->is_mapped = true;
  }
  exported->shape.assign(view->shape().begin(), view->shape().end());
  exported->strides.resize(exported->shape.size());
  int64_t stride = 1;
  for (size_t i = exported->shape.size(); i-- > 0;) {
    exported->strides[i] = stride;
    // Overflow is only possible if another dimension is 0; strides are then irrelevant.
    if (__builtin_mul_overflow(stride, std::max<int64_t>(exported->shape[i], 1), &stride)) stride = 1;
  }
  exported->managed = {};
  exported->managed.context = exported.get();
  exported->managed.deleter = &Exported<Managed>::destroy;
  exported->managed.tensor = {.data = data,
                              .device_type = dlpack::kCpu,
                              .device_id = 0,
                              .rank = static_cast<int32_t>(exported->shape.size()),
                              .code = code,
                              .bits = static_cast<uint8_t>(hal::bit_count(view->type())),
                              .lanes = 1,
                              .shape = exported->shape.data(),
                              .strides = exported->strides.data(),
                              .byte_offset = 0};
  if constexpr (requires { exported->managed.flags; }) {
    exported->managed.major = dlpack::kMajorVersion;
    exported->managed.minor = dlpack::kMinorVersion;
    exported->managed.flags = (is_read_only ? dlpack::kReadOnly : 0) | (is_copy ? dlpack::kIsCopied : 0);
  }
  *out = &exported.release()->managed;
  return {};
}

// ---- From DLPack

template <typename Managed>
Result<> import_tensor(halyard_device_t device, Managed* managed, uint32_t flags, bool is_read_only,
                       uint32_t* is_copy, halyard_object_t* out) {
  HALYARD_TRY(check_flags(flags, HALYARD_DLPACK_COPY, "HALYARD_DLPACK_COPY"));
  const dlpack::Tensor& tensor = managed->tensor;
  const dlpack::Layout layout = HALYARD_TRY(dlpack::layout_of(tensor));
  const auto released = [managed] {
    if (managed->deleter) managed->deleter(managed);
  };
  Imported made;
  if (!layout.is_dense) {
    const auto dense = std::make_unique_for_overwrite<uint8_t[]>(layout.size);
    dlpack::gather(tensor, layout, dense.get());
    made = {HALYARD_TRY(copied_view(device, layout.shape, layout.type, dense.get(), layout.size)), true};
    released();
  } else if (flags & HALYARD_DLPACK_COPY || layout.size == 0) {
    made = {HALYARD_TRY(copied_view(device, layout.shape, layout.type, layout.first, layout.size)), true};
    released();
  } else {
    made = HALYARD_TRY(import_view(device, layout.shape, layout.type, layout.first, layout.size,
                                   is_read_only ? uint32_t{HALYARD_IMPORT_READ_ONLY} : 0u, released));
  }
  if (is_copy) *is_copy = made.is_copy;
  *out = give<halyard_object_t>(std::move(made.view));
  return {};
}

}  // namespace

halyard_status_t halyard_view_to_dlpack(halyard_object_t view, uint32_t flags,
                                        struct DLManagedTensorVersioned** out) {
  return guarded([&] { return export_view(view, flags, true, out); });
}

halyard_status_t halyard_view_to_dlpack_unversioned(halyard_object_t view, uint32_t flags,
                                                    struct DLManagedTensor** out) {
  return guarded([&] { return export_view(view, flags, false, out); });
}

halyard_status_t halyard_view_from_dlpack(halyard_device_t device, struct DLManagedTensorVersioned* tensor,
                                          uint32_t flags, uint32_t* is_copy, halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    if (!tensor) return fail(Code::INVALID_ARGUMENT, "expected a DLPack tensor, found null");
    if (tensor->major != dlpack::kMajorVersion)
      return fail(Code::UNIMPLEMENTED, "expected a tensor of DLPack {2}.x, found DLPack {0}.{1}",
                  tensor->major, tensor->minor, dlpack::kMajorVersion);
    return import_tensor(device, tensor, flags, tensor->flags & dlpack::kReadOnly, is_copy, out);
  });
}

halyard_status_t halyard_view_from_dlpack_unversioned(halyard_device_t device, struct DLManagedTensor* tensor,
                                                      uint32_t flags, uint32_t* is_copy,
                                                      halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    if (!tensor) return fail(Code::INVALID_ARGUMENT, "expected a DLPack tensor, found null");
    return import_tensor(device, tensor, flags, false, is_copy, out);
  });
}

void halyard_dlpack_release(struct DLManagedTensorVersioned* tensor) {
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}

void halyard_dlpack_release_unversioned(struct DLManagedTensor* tensor) {
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}
