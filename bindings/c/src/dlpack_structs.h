// The structs of DLPack 1.1, declared here after its public header. Their layouts are asserted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCudaHost = 3, kRocmHost = 11 };
enum TypeCode : uint8_t {
#define HALYARD_DLPACK_CODE(name, code) k##name = code,
#include "halyard/element_types.inc"
};
inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 1;
inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kIsCopied = 2;

struct Tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t rank;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;  // in elements; null: dense, row-major
  uint64_t byte_offset;
};
static_assert(offsetof(Tensor, shape) == 24 && sizeof(Tensor) == 48);

}  // namespace halyard::dlpack

struct DLManagedTensor {
  halyard::dlpack::Tensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);  // may be null
};

struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);  // may be null
  uint64_t flags;
  halyard::dlpack::Tensor tensor;
};
static_assert(offsetof(DLManagedTensorVersioned, tensor) == 32);
