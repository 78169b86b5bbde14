// A DLPack tensor made from bytes: every field is arbitrary, but often almost fits the memory that the tensor
// has.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "dlpack_structs.h"

namespace halyard::fuzz {

// Reads numbers from the input; zeros after its end.
class Source {
 public:
  explicit Source(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  bool at_end() const { return bytes_.empty(); }
  // Mostly small; every eighth number is an edge case, every eighth has any 64 bits.
  int64_t number() {
    static constexpr int64_t kEdges[] = {
        INT64_MAX,           INT64_MIN,        int64_t{1} << 62,       int64_t{1} << 61,
        -(int64_t{1} << 61), int64_t{1} << 32, (int64_t{1} << 32) - 1, int64_t{1} << 40};
    const uint8_t kind = byte();
    if (kind % 8 == 7) return kEdges[byte() % std::size(kEdges)];
    if (kind % 8 != 6) return static_cast<int8_t>(byte()) % 12;
    uint64_t all = 0;
    for (int i = 0; i < 8; ++i) all = all << 8 | byte();
    return static_cast<int64_t>(all);
  }

 private:
  std::span<const uint8_t> bytes_;
};

struct HostileTensor {
  static constexpr size_t kMemory = 512;
  std::unique_ptr<uint8_t[]> memory = std::make_unique<uint8_t[]>(kMemory);
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  dlpack::Tensor tensor = {};

  explicit HostileTensor(Source& source) {
    for (size_t i = 0; i < kMemory; ++i) memory[i] = static_cast<uint8_t>(i * 7 + i / 256);
    static constexpr std::array<std::array<uint8_t, 2>, 8> kTypes = {{{dlpack::kFloat, 32},
                                                                      {dlpack::kInt, 8},
                                                                      {dlpack::kUInt, 16},
                                                                      {dlpack::kFloat, 64},
                                                                      {dlpack::kComplex, 128},
                                                                      {dlpack::kBool, 8},
                                                                      {dlpack::kInt, 4},
                                                                      {dlpack::kFloat8E5M2, 8}}};
    const uint8_t choices = source.byte();
    const auto& [code, bits] = kTypes[choices % kTypes.size()];
    const size_t rank = source.byte() % 6;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t size = source.number();
      shape.push_back(choices & 8 ? size : size < 0 && size > -12 ? -size : size);
    }
    for (size_t i = 0; i < rank; ++i) strides.push_back(source.number());
    tensor = {.data = choices & 16 ? memory.get() : memory.get() + kMemory / 2,
              .device_type = dlpack::kCpu,
              .device_id = 0,
              .rank = static_cast<int32_t>(rank),
              .code = code,
              .bits = bits,
              .lanes = 1,
              .shape = shape.data(),
              .strides = choices & 32 ? nullptr : strides.data(),
              .byte_offset = choices & 64 ? static_cast<uint64_t>(source.number()) : 0};
    if (choices & 128) {  // fields that are right in most tensors
      const uint8_t which = source.byte();
      if (which & 1) tensor.code = source.byte();
      if (which & 2) tensor.bits = source.byte();
      if (which & 4) tensor.lanes = source.byte();
      if (which & 8) tensor.rank = static_cast<int32_t>(source.number());
      if (which & 16) tensor.data = nullptr;
      if (which & 32) tensor.device_type = source.byte();
      if (which & 64) tensor.shape = nullptr;
      // The rank must not exceed the size of the arrays.
      if (tensor.rank > static_cast<int32_t>(rank) && tensor.rank <= 128)
        tensor.rank = static_cast<int32_t>(rank);
    }
  }

  // The elements in row-major order, computed one by one in wide arithmetic. False: there are too many, or
  // not all of them are in `memory`.
  bool elements(std::vector<uint8_t>& out) const {
    using Wide = __int128;
    const Wide width = tensor.bits / 8;
    Wide count = 1;
    for (int32_t i = 0; i < tensor.rank; ++i) {
      if (tensor.shape[i] < 0) return false;
      if (tensor.shape[i] == 0) count = 0;
    }
    for (int32_t i = 0; i < tensor.rank && count != 0; ++i)
      if ((count *= tensor.shape[i]) > 4096) return false;
    if (count != 0 && !tensor.data) return false;
    const Wide first =
        static_cast<Wide>(static_cast<uint8_t*>(tensor.data) - memory.get()) + tensor.byte_offset;
    for (Wide number = 0; number < count; ++number) {
      Wide rest = number, at = 0, dense = 1;
      for (int32_t i = tensor.rank; i-- > 0;) {
        at += rest % tensor.shape[i] * (tensor.strides ? static_cast<Wide>(tensor.strides[i]) : dense);
        rest /= tensor.shape[i];
        dense *= tensor.shape[i];
      }
      at = first + at * width;
      if (at < 0 || at + width > static_cast<Wide>(kMemory)) return false;
      out.insert(out.end(), &memory[static_cast<size_t>(at)],
                 &memory[static_cast<size_t>(at)] + static_cast<size_t>(width));
    }
    return true;
  }
};

}  // namespace halyard::fuzz
