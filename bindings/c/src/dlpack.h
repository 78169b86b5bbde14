// The structs of DLPack 1.1, declared here after its public header. Their layouts are asserted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCudaHost = 3, kRocmHost = 11 };
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14,
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
