// Views as DLPack tensors, and DLPack tensors as views (halyard/memory.h).
#include "dlpack.h"

#include "halyard/memory.h"
#include "shared_memory.h"

using namespace halyard;
using namespace halyard::c;

namespace {

struct TypePair {
  uint32_t numerical;  // hal::NumericalType
  uint8_t code;
};
// Of those with one code, the first is what a tensor becomes.
constexpr TypePair kTypes[] = {
    {hal::kInteger, dlpack::kInt},
    {hal::kIntegerSigned, dlpack::kInt},
    {hal::kIntegerUnsigned, dlpack::kUInt},
    {hal::kBoolean, dlpack::kBool},
    {hal::kFloatIeee, dlpack::kFloat},
    {hal::kFloat, dlpack::kFloat},
    {hal::kFloatBrain, dlpack::kBfloat},
    {hal::kFloatComplex, dlpack::kComplex},
    {hal::kFloat8E5M2, dlpack::kFloat8E5M2},
    {hal::kFloat8E4M3FN, dlpack::kFloat8E4M3FN},
    {hal::kFloat8E5M2FNUZ, dlpack::kFloat8E5M2FNUZ},
    {hal::kFloat8E4M3FNUZ, dlpack::kFloat8E4M3FNUZ},
    {hal::kFloat8E8M0FNU, dlpack::kFloat8E8M0FNU},
};

// ---- To DLPack

// What an exported tensor holds: the view, mapped, or bytes of its own; and the arrays that the tensor points
// to.
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

Result<uint8_t> code_of(uint32_t element_type) {
  const uint32_t bits = hal::bit_count(element_type);
  for (const TypePair& type : kTypes)
    if (type.numerical == hal::numerical_type(element_type) && bits % 8 == 0) return type.code;
  return fail(Code::UNIMPLEMENTED, "DLPack has no element type for {}; read the bytes instead",
              hal::element_type_text(element_type));
}

template <typename Managed>
Result<> export_view(halyard_object_t handle, uint32_t flags, bool can_be_read_only, Managed** out) {
  HALYARD_TRY(check_output(out, "out"));
  HALYARD_TRY(check_flags(flags, HALYARD_DLPACK_COPY | HALYARD_DLPACK_READ_ONLY, "HALYARD_DLPACK_*"));
  auto* const view = cast<hal::BufferView>(from_handle<Object>(handle));
  if (!view) return fail(Code::INVALID_ARGUMENT, "expected a hal.buffer_view to export to DLPack");
  const uint8_t code = HALYARD_TRY(code_of(view->type()));
  auto exported = std::make_unique<Exported<Managed>>();
  exported->view = Ref<hal::BufferView>::share(view);
  hal::Buffer& buffer = view->buffer();
  const bool is_copy = flags & HALYARD_DLPACK_COPY;
  const bool is_read_only =
      !is_copy && (flags & HALYARD_DLPACK_READ_ONLY || !(buffer.access() & hal::kWrite));
  if (is_read_only && !can_be_read_only)
    return fail(Code::PERMISSION_DENIED,
                "the memory must not be written to, which this version of DLPack cannot say; ask for the "
                "versioned struct, or for a copy");
  void* data = nullptr;
  if (is_copy) {
    exported->copy = std::make_unique_for_overwrite<uint8_t[]>(buffer.length());
    data = exported->copy.get();
    HALYARD_TRY(buffer.read(0, data, buffer.length()));
    exported->view = {};
  } else {
    data = HALYARD_TRY(buffer.map()).data();
    exported->is_mapped = true;
  }
  exported->shape.assign(view->shape().begin(), view->shape().end());
  exported->strides.resize(exported->shape.size());
  int64_t stride = 1;
  for (size_t i = exported->shape.size(); i-- > 0;) {
    exported->strides[i] = stride;
    stride *= std::max<int64_t>(exported->shape[i], 1);
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

Result<uint32_t> element_type_of(const dlpack::Tensor& tensor) {
  if (tensor.lanes != 1)
    return fail(Code::UNIMPLEMENTED, "a DLPack tensor of vectors of {} lanes; expected plain elements",
                tensor.lanes);
  for (const TypePair& type : kTypes)
    if (type.code == tensor.code && tensor.bits % 8 == 0 && tensor.bits != 0)
      return hal::element_type(static_cast<hal::NumericalType>(type.numerical), tensor.bits);
  return fail(Code::UNIMPLEMENTED,
              "a DLPack tensor of elements with code {} and {} bits, which programs lack", tensor.code,
              tensor.bits);
}

// Whether elements lie one after the other, the last dimension closest. Strides of dimensions of one element
// do not matter, nor any of a tensor without elements.
bool is_dense(const dlpack::Tensor& tensor) {
  if (!tensor.strides) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.rank; i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// The elements in row-major order, one after the other.
void gather(const dlpack::Tensor& tensor, const uint8_t* from, uint8_t* to, size_t element) {
  std::vector<int64_t> index(tensor.rank, 0);
  for (;;) {
    int64_t offset = 0;
    for (int32_t i = 0; i < tensor.rank; ++i) offset += index[i] * tensor.strides[i];
    std::memcpy(to, from + offset * static_cast<int64_t>(element), element);
    to += element;
    int32_t i = tensor.rank;
    while (i-- > 0) {
      if (++index[i] < tensor.shape[i]) break;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

Result<> check_tensor(const dlpack::Tensor& tensor) {
  if (tensor.device_type != dlpack::kCpu && tensor.device_type != dlpack::kCudaHost &&
      tensor.device_type != dlpack::kRocmHost)
    return fail(
        Code::UNIMPLEMENTED,
        "a DLPack tensor of device type {}; expected one in memory of the CPU (1): copy it there first",
        tensor.device_type);
  if (tensor.rank < 0 || static_cast<size_t>(tensor.rank) > hal::kMaximumRank ||
      (tensor.rank > 0 && !tensor.shape))
    return fail(Code::INVALID_ARGUMENT, "a DLPack tensor of rank {}{}; expected 0 to {}", tensor.rank,
                tensor.rank > 0 && !tensor.shape ? " without a shape" : "", hal::kMaximumRank);
  return {};
}

template <typename Managed>
Result<> import_tensor(halyard_device_t device, Managed* managed, uint32_t flags, bool is_read_only,
                       uint32_t* is_copy, halyard_object_t* out) {
  HALYARD_TRY(check_flags(flags, HALYARD_DLPACK_COPY, "HALYARD_DLPACK_COPY"));
  const dlpack::Tensor& tensor = managed->tensor;
  HALYARD_TRY(check_tensor(tensor));
  const std::span<const int64_t> shape(tensor.shape, tensor.rank);
  const uint32_t type = HALYARD_TRY(element_type_of(tensor));
  const uint64_t size = HALYARD_TRY(hal::dense_byte_count(shape, type));
  auto* const bytes = static_cast<uint8_t*>(tensor.data) + tensor.byte_offset;
  if (!tensor.data && size != 0)
    return fail(Code::INVALID_ARGUMENT, "a DLPack tensor of {} bytes without data", size);
  const auto released = [managed] {
    if (managed->deleter) managed->deleter(managed);
  };
  Imported made;
  if (!is_dense(tensor)) {
    const auto dense = std::make_unique_for_overwrite<uint8_t[]>(size);
    gather(tensor, bytes, dense.get(), tensor.bits / 8);
    made = {HALYARD_TRY(copied_view(device, shape, type, dense.get(), size)), true};
    released();
  } else if (flags & HALYARD_DLPACK_COPY) {
    made = {HALYARD_TRY(copied_view(device, shape, type, bytes, size)), true};
    released();
  } else {
    made = HALYARD_TRY(import_view(device, shape, type, bytes, size,
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
      return fail(Code::UNIMPLEMENTED, "a tensor of DLPack {}.{}; expected version {}.x", tensor->major,
                  tensor->minor, dlpack::kMajorVersion);
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
