// The .gguf reader, versions 2 and 3: names, positions and sizes of tensors; their blocks are not decoded.
// Specified by parameters-and-files.md, section 3.2.
#include <algorithm>
#include <array>
#include <bit>

#include "modules/file_fields.h"
#include "modules/parameter_archive.h"

namespace halyard::modules {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kOldestVersion = 2, kNewestVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMostDimensions = 16;
// The minimum size of an entry, which bounds the number of entries in a file.
constexpr uint64_t kLeastPair = 8 + 4 + 1, kLeastTensor = 8 + 4 + 4 + 8;

enum ValueKind : uint32_t { kUint32 = 4, kString = 8, kArray = 9 };
// Bytes of a value by its kind; 0: stored with the value.
constexpr std::array<uint8_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// The block layout of a tensor type.
struct TensorType {
  uint32_t id;
  uint32_t elements;
  uint32_t bytes;
};
constexpr TensorType kTensorTypes[] = {
    {0, 1, 4},      {1, 1, 2},      {2, 32, 18},   {3, 32, 20},    {6, 32, 22},    {7, 32, 24},
    {8, 32, 34},    {9, 32, 40},    {10, 256, 84}, {11, 256, 110}, {12, 256, 144}, {13, 256, 176},
    {14, 256, 210}, {15, 256, 292}, {16, 1, 1},    {17, 1, 2},     {18, 1, 4}};

struct Tensor {
  std::string_view name;
  uint64_t offset = 0;  // from the start of tensor data
  uint64_t length = 0;  // bytes
};

Result<std::string_view> read_string(FileFields& fields, std::string_view what) {
  const uint64_t size = HALYARD_TRY(fields.next<uint64_t>(what));
  const auto bytes = HALYARD_TRY(fields.take(size, what));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<> skip_values(FileFields& fields, uint32_t kind, uint64_t count) {
  if (kind == kString) {
    for (uint64_t i = 0; i < count; ++i) HALYARD_TRY(read_string(fields, "a string of the metadata"));
    return {};
  }
  if (kind >= kValueBytes.size() || kind == kArray)
    return fields.error(Code::INVALID_ARGUMENT,
                        "metadata of kind {}; expected 0 to 12, and no array in an array", kind);
  const uint64_t size = kValueBytes[kind];
  if (count > fields.left() / size)
    return fields.error(Code::OUT_OF_RANGE, "an array of {} values of {} bytes but {} bytes are left", count,
                        size, fields.left());
  HALYARD_TRY(fields.take(count * size, "metadata"));
  return {};
}

// Skips a pair, but reads the alignment.
Result<> read_pair(FileFields& fields, uint32_t& alignment) {
  const std::string_view key = HALYARD_TRY(read_string(fields, "the key of a metadata pair"));
  const uint32_t kind = HALYARD_TRY(fields.next<uint32_t>("the kind of a metadata value"));
  if (key == kAlignmentKey) {
    if (kind != kUint32)
      return fields.error(Code::INVALID_ARGUMENT, "{} is of kind {}, expected 4 (u32)", key, kind);
    alignment = HALYARD_TRY(fields.next<uint32_t>(key));
    if (!std::has_single_bit(alignment))
      return fields.error(Code::INVALID_ARGUMENT, "{} is {}, expected a power of two", key, alignment);
    return {};
  }
  if (kind != kArray) return skip_values(fields, kind, 1);
  const uint32_t element = HALYARD_TRY(fields.next<uint32_t>("the kind of an array's elements"));
  const uint64_t count = HALYARD_TRY(fields.next<uint64_t>("the length of an array"));
  return skip_values(fields, element, count);
}

Result<Tensor> read_tensor(FileFields& fields) {
  Tensor tensor;
  tensor.name = HALYARD_TRY(read_string(fields, "the name of a tensor"));
  const uint32_t rank = HALYARD_TRY(fields.next<uint32_t>("the rank of a tensor"));
  if (rank > kMostDimensions)
    return fields.error(Code::INVALID_ARGUMENT, "tensor '{}' has {} dimensions, expected at most {}",
                        tensor.name, rank, kMostDimensions);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    const uint64_t dimension = HALYARD_TRY(fields.next<uint64_t>("a dimension of a tensor"));
    if (__builtin_mul_overflow(elements, dimension, &elements))
      return fields.error(Code::INVALID_ARGUMENT, "tensor '{}' has more elements than 64 bits count",
                          tensor.name);
  }
  const uint32_t id = HALYARD_TRY(fields.next<uint32_t>("the type of a tensor"));
  const auto* type = std::ranges::find(kTensorTypes, id, &TensorType::id);
  if (type == std::end(kTensorTypes))
    return fields.error(
        Code::UNIMPLEMENTED,
        "tensor '{}' has type {}, which is not known; convert it to one that is, such as F32 (0)",
        tensor.name, id);
  if (elements % type->elements != 0)
    return fields.error(Code::INVALID_ARGUMENT, "tensor '{}' has {} elements, expected blocks of {}",
                        tensor.name, elements, type->elements);
  if (__builtin_mul_overflow(elements / type->elements, uint64_t{type->bytes}, &tensor.length))
    return fields.error(Code::INVALID_ARGUMENT, "tensor '{}' has more bytes than 64 bits count", tensor.name);
  tensor.offset = HALYARD_TRY(fields.next<uint64_t>("the offset of a tensor"));
  return tensor;
}

Result<> check_count(const FileFields& fields, uint64_t count, uint64_t least, std::string_view what) {
  if (count <= fields.left() / least) return {};
  return fields.error(Code::INVALID_ARGUMENT,
                      "{} {} need at least {} bytes each; {} are left: the file is damaged or was cut off",
                      count, what, least, fields.left());
}

}  // namespace

Result<ParameterEntries> read_gguf(const Ref<Bytes>& file, std::string_view path) {
  FileFields fields(file->span(), path);
  const uint32_t magic = HALYARD_TRY(fields.next<uint32_t>("the magic number"));
  if (magic != kMagic)
    return fields.error(Code::INVALID_ARGUMENT, "expected a .gguf file, which starts with the letters GGUF");
  const uint32_t version = HALYARD_TRY(fields.next<uint32_t>("the version"));
  if (version < kOldestVersion || version > kNewestVersion)
    return fields.error(Code::UNIMPLEMENTED, "the file has version {}, expected {} or {}; write it again",
                        version, kOldestVersion, kNewestVersion);
  const uint64_t tensor_count = HALYARD_TRY(fields.next<uint64_t>("the number of tensors"));
  const uint64_t pair_count = HALYARD_TRY(fields.next<uint64_t>("the number of metadata pairs"));
  HALYARD_TRY(check_count(fields, pair_count, kLeastPair, "metadata pairs"));
  uint32_t alignment = kDefaultAlignment;
  for (uint64_t i = 0; i < pair_count; ++i) HALYARD_TRY(read_pair(fields, alignment));
  HALYARD_TRY(check_count(fields, tensor_count, kLeastTensor, "tensors"));
  std::vector<Tensor> tensors;
  for (uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(HALYARD_TRY(read_tensor(fields)));

  const uint64_t padding = (alignment - fields.position() % alignment) % alignment;
  const std::span<const uint8_t> data =
      file->span().subspan(fields.position() + std::min(padding, fields.left()));
  ParameterEntries entries;
  for (const Tensor& tensor : tensors) {
    if (tensor.offset > data.size() || tensor.length > data.size() - tensor.offset)
      return fields.error(
          Code::OUT_OF_RANGE,
          "tensor '{}' (offset {}, length {}) leaves the {} bytes of tensor data; the file is "
          "damaged or was cut off",
          tensor.name, tensor.offset, tensor.length, data.size());
    Parameter parameter;
    parameter.bytes = data.subspan(tensor.offset, tensor.length);
    parameter.length = tensor.length;
    parameter.keep = file;
    entries.emplace_back(tensor.name, std::move(parameter));
  }
  return entries;
}

}  // namespace halyard::modules
