// The .gguf reader, versions 2 and 3: reads names, positions and sizes of tensors, but does not decode their
// blocks. Specified by parameters-and-files.md, section 3.2.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "modules/file_fields.h"
#include "modules/parameter_archive.h"

namespace halyard::modules {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kOldestVersion = 2, kNewestVersion = 3;
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDimensions = 16;
// The minimum size of an entry, which bounds the number of entries in a file.
constexpr uint64_t kMinPair = 8 + 4 + 1, kMinTensor = 8 + 4 + 4 + 8;

enum ValueKind : uint32_t { kUint32 = 4, kString = 8, kArray = 9 };
// The size of a metadata value by its type; 0: the size is stored with the value.
constexpr std::array<uint8_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// The block layout of a tensor type.
struct TensorType {
  uint32_t id;
  std::string_view name;
  uint32_t elements;
  uint32_t bytes;  // 0: removed from the format
};
constexpr TensorType kTensorTypes[] = {
    {0, "F32", 1, 4},          {1, "F16", 1, 2},          {2, "Q4_0", 32, 18},       {3, "Q4_1", 32, 20},
    {4, "Q4_2", 32, 0},        {5, "Q4_3", 32, 0},        {6, "Q5_0", 32, 22},       {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},       {9, "Q8_1", 32, 40},       {10, "Q2_K", 256, 84},     {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},    {13, "Q5_K", 256, 176},    {14, "Q6_K", 256, 210},    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66},  {17, "IQ2_XS", 256, 74},   {18, "IQ3_XXS", 256, 98},  {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},    {21, "IQ3_S", 256, 110},   {22, "IQ2_S", 256, 82},    {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},          {25, "I16", 1, 2},         {26, "I32", 1, 4},         {27, "I64", 1, 8},
    {28, "F64", 1, 8},         {29, "IQ1_M", 256, 56},    {30, "BF16", 1, 2},        {31, "Q4_0_4_4", 32, 0},
    {32, "Q4_0_4_8", 32, 0},   {33, "Q4_0_8_8", 32, 0},   {34, "TQ1_0", 256, 54},    {35, "TQ2_0", 256, 66},
    {36, "IQ4_NL_4_4", 32, 0}, {37, "IQ4_NL_4_8", 32, 0}, {38, "IQ4_NL_8_8", 32, 0}, {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},     {41, "Q1_0", 128, 18},     {42, "Q2_0", 64, 18},
};

// The former meanings of these ids, until early 2024. A row that is not a multiple of today's block can only
// have the former type.
constexpr TensorType kFormerTypes[] = {{16, "I8", 1, 1}, {17, "I16", 1, 2}, {18, "I32", 1, 4}};

struct Tensor {
  std::string_view name;
  uint64_t offset = 0;  // from the start of tensor data
  uint64_t length = 0;  // bytes
  std::string type;     // including its shape, for messages
  std::string trouble;  // why its size is unknown
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

// Skips a metadata pair, but reads the alignment.
Result<> read_pair(FileFields& fields, std::optional<uint32_t>& alignment) {
  const std::string_view key = HALYARD_TRY(read_string(fields, "the key of a metadata pair"));
  const uint32_t kind = HALYARD_TRY(fields.next<uint32_t>("the kind of a metadata value"));
  if (key == kAlignmentKey) {
    if (kind != kUint32)
      return fields.error(Code::INVALID_ARGUMENT, "{} is of kind {}, expected 4 (u32)", key, kind);
    if (alignment) return fields.error(Code::INVALID_ARGUMENT, "{} occurs twice", key);
    alignment = HALYARD_TRY(fields.next<uint32_t>(key));
    if (!std::has_single_bit(*alignment))
      return fields.error(Code::INVALID_ARGUMENT, "{} is {}, expected a power of two", key, *alignment);
    return {};
  }
  if (kind != kArray) return skip_values(fields, kind, 1);
  const uint32_t element = HALYARD_TRY(fields.next<uint32_t>("the kind of an array's elements"));
  const uint64_t count = HALYARD_TRY(fields.next<uint64_t>("the length of an array"));
  return skip_values(fields, element, count);
}

// Computes the number of bytes from the type and the shape. A tensor with unknown blocks does not make the
// file invalid, because programs may not load the tensor.
Result<> read_size(const FileFields& fields, std::span<const uint64_t> shape, uint32_t id, Tensor& tensor) {
  const uint64_t row = shape.empty() ? 1 : shape[0];  // a block does not cross rows
  const auto* type = std::ranges::find(kTensorTypes, id, &TensorType::id);
  const bool is_known = type != std::end(kTensorTypes);
  if (is_known && row % type->elements != 0)
    if (const auto* former = std::ranges::find(kFormerTypes, id, &TensorType::id);
        former != std::end(kFormerTypes))
      type = former;
  tensor.type =
      fmt::format("{} [{}]", is_known ? type->name : fmt::format("type {}", id), fmt::join(shape, ", "));
  uint64_t elements = 1;
  for (const uint64_t dimension : shape)
    if (__builtin_mul_overflow(elements, dimension, &elements))
      return fields.error(Code::INVALID_ARGUMENT, "tensor '{}' has 2^64 elements or more", tensor.name);
  if (!is_known || type->bytes == 0) {
    tensor.trouble =
        is_known ? fmt::format(
                       "its type {} ({}) was removed from the format; convert it to a current type, such as "
                       "Q4_0 or F32",
                       type->name, id)
                 : fmt::format("its type {} is unknown; convert it to a known type, such as F32", id);
    return {};
  }
  if (row % type->elements != 0)
    return fields.error(Code::INVALID_ARGUMENT,
                        "tensor '{}' ({}) has rows of {} elements, expected blocks of {}", tensor.name,
                        tensor.type, row, type->elements);
  if (__builtin_mul_overflow(elements / type->elements, uint64_t{type->bytes}, &tensor.length))
    return fields.error(Code::INVALID_ARGUMENT, "tensor '{}' has 2^64 bytes or more", tensor.name);
  return {};
}

Result<Tensor> read_tensor(FileFields& fields) {
  Tensor tensor;
  tensor.name = HALYARD_TRY(read_string(fields, "the name of a tensor"));
  const uint32_t rank = HALYARD_TRY(fields.next<uint32_t>("the rank of a tensor"));
  if (rank > kMaxDimensions)
    return fields.error(Code::INVALID_ARGUMENT, "tensor '{}' has {} dimensions, expected at most {}",
                        tensor.name, rank, kMaxDimensions);
  std::vector<uint64_t> shape;
  for (uint32_t i = 0; i < rank; ++i)
    shape.push_back(HALYARD_TRY(fields.next<uint64_t>("a dimension of a tensor")));
  const uint32_t id = HALYARD_TRY(fields.next<uint32_t>("the type of a tensor"));
  HALYARD_TRY(read_size(fields, shape, id, tensor));
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
  if (const uint32_t other = __builtin_bswap32(version); other >= 1 && other <= kNewestVersion)
    return fields.error(Code::UNIMPLEMENTED,
                        "the file is big-endian, version {}; convert it to little-endian, for example with "
                        "gguf-convert-endian of the Python package gguf",
                        other);
  if (version < kOldestVersion || version > kNewestVersion)
    return fields.error(Code::UNIMPLEMENTED, "the file has version {}, expected {} or {}; write it again",
                        version, kOldestVersion, kNewestVersion);
  const uint64_t tensor_count = HALYARD_TRY(fields.next<uint64_t>("the number of tensors"));
  const uint64_t pair_count = HALYARD_TRY(fields.next<uint64_t>("the number of metadata pairs"));
  HALYARD_TRY(check_count(fields, pair_count, kMinPair, "metadata pairs"));
  std::optional<uint32_t> given;
  for (uint64_t i = 0; i < pair_count; ++i) HALYARD_TRY(read_pair(fields, given));
  const uint32_t alignment = given.value_or(kDefaultAlignment);
  HALYARD_TRY(check_count(fields, tensor_count, kMinTensor, "tensors"));
  std::vector<Tensor> tensors;
  for (uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(HALYARD_TRY(read_tensor(fields)));

  const uint64_t padding = (alignment - fields.position() % alignment) % alignment;
  const std::span<const uint8_t> data =
      file->span().subspan(fields.position() + std::min(padding, fields.left()));
  ParameterEntries entries;
  for (Tensor& tensor : tensors) {
    if (tensor.offset > data.size() || tensor.length > data.size() - tensor.offset)
      return fields.error(
          Code::OUT_OF_RANGE,
          "tensor '{}' (offset {}, length {}) exceeds the {} bytes of tensor data; the file is damaged "
          "or was cut off",
          tensor.name, tensor.offset, tensor.length, data.size());
    Parameter parameter;
    parameter.bytes = data.subspan(tensor.offset, tensor.length);
    parameter.length = tensor.length;
    parameter.keep = file;
    parameter.type = std::move(tensor.type);
    parameter.trouble = std::move(tensor.trouble);
    entries.emplace_back(tensor.name, std::move(parameter));
  }
  HALYARD_TRY(refuse_repeated_names(entries, path));
  return entries;
}

}  // namespace halyard::modules
