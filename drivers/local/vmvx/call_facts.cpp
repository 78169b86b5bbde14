#include "call_facts.h"

#include <algorithm>
#include <iterator>

#include "flags.h"
#include "microkernels.h"

namespace halyard::local::vmvx {

namespace {

// The product of these integers times `factor`.
std::optional<uint64_t> product_of(std::span<const std::optional<int64_t>> integers, uint64_t factor = 1) {
  uint64_t product = factor;
  for (const std::optional<int64_t>& each : integers)
    if (!each || *each < 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(*each), &product))
      return std::nullopt;
  return product;
}

// The bytes of a matrix without gaps: `size0` rows, which begin `stride0` elements apart, of `size1` adjacent
// elements.
std::optional<vm::CallWrites> dense(size_t ref, std::optional<int64_t> offset, std::optional<int64_t> stride0,
                                    std::optional<uint64_t> size0, std::optional<uint64_t> size1,
                                    uint64_t element_size) {
  constexpr uint64_t kMost = INT32_MAX;  // so that no result wraps around
  if (!offset || !size0 || !size1) return std::nullopt;
  const auto first = static_cast<uint64_t>(*offset);
  if (first > kMost || *size0 == 0 || *size0 > kMost || *size1 == 0 || *size1 > kMost) return std::nullopt;
  if (*size0 > 1 && (!stride0 || *stride0 < 0 || static_cast<uint64_t>(*stride0) > *size1))
    return std::nullopt;
  const uint64_t rows = *size0 > 1 ? (*size0 - 1) * static_cast<uint64_t>(*stride0) : 0;
  if (rows > kMost) return std::nullopt;
  return vm::CallWrites{ref, first * element_size, (first + rows + *size1) * element_size};
}

}  // namespace

std::optional<uint64_t> operations_of(std::string_view name,
                                      std::span<const std::optional<int64_t>> integers) {
  if (name == "vmvx.mmt4d") {  // offsets and strides; m, n, k, m0, n0, k0; flags
    constexpr size_t kSizes = 6;
    if (integers.size() != kSizes + 7 || !integers.back()) return std::nullopt;
    const std::optional<uint64_t> operations = product_of(integers.subspan(kSizes, 6), 2);
    if (!operations) return std::nullopt;
    const auto type = std::ranges::find(kProductTypes, static_cast<uint32_t>(*integers.back()) & kTypeMask,
                                        &ProductType::flag);
    if (type == std::end(kProductTypes)) return std::nullopt;
    return type->type == Mmt4dType::s8s8s32 ? 0 : *operations;
  }
  if (!has_function(name, "")) return std::nullopt;
  if (!name.ends_with(".2d.f32")) return 0;
  if (name == "vmvx.abs.2d.f32" || name == "vmvx.neg.2d.f32" || name == "vmvx.ceil.2d.f32" ||
      name == "vmvx.floor.2d.f32")
    return 0;
  return integers.size() < 2 ? std::nullopt : product_of(integers.last(2));  // the sizes
}

std::optional<vm::CallWrites> writes_of(std::string_view name,
                                        std::span<const std::optional<int64_t>> integers) {
  const std::optional<std::string_view> convention = convention_of(name);
  if (!convention) return std::nullopt;
  const std::string_view parameters = convention->substr(1, convention->find('_') - 1);
  const auto is_integer = [](char kind) { return kind != 'r'; };
  if (std::ranges::count_if(parameters, is_integer) != std::ssize(integers)) return std::nullopt;
  const auto size = [&](size_t at) { return product_of(integers.subspan(at, 1)); };
  // A matrix whose offset and strides are the integers from `place` on, and whose sizes are those from
  // `sizes` on.
  const auto matrix = [&](size_t ref, size_t place, size_t sizes, uint64_t bytes) {
    const bool is_adjacent = integers[place + 2] == 1 || size(sizes + 1) == 1;
    return is_adjacent ? dense(ref, integers[place], integers[place + 1], size(sizes), size(sizes + 1), bytes)
                       : std::nullopt;
  };
  if (parameters == "rIIIrIIIrIIIII") return matrix(2, 6, 9, 4);
  if (parameters == "rIIIrIIIII")
    return matrix(1, 3, 6,
                  name.ends_with(".x8")    ? 1
                  : name.ends_with(".x16") ? 2
                  : name.ends_with(".x64") ? 8
                                           : 4);
  if (name == "vmvx.fill.2d.x32") return dense(0, integers[1], integers[2], size(3), size(4), 4);
  if (!integers.back()) return std::nullopt;
  const auto flags = static_cast<uint32_t>(*integers.back());
  if (name == "vmvx.mmt4d") {
    if (flags & kAccumulate) return std::nullopt;
    const std::optional<int64_t> row[] = {integers[7], integers[9], integers[10]};  // n, m0, n0
    return dense(2, integers[4], integers[5], size(6), product_of(row), 4);
  }
  const std::optional<size_t> log2 = element_size_log2(flags);
  if (!log2) return std::nullopt;
  if (name == "vmvx.pack")
    return dense(1, integers[3], integers[4], size(8), product_of(integers.subspan(9, 3)),
                 uint64_t{1} << *log2);
  if (name == "vmvx.unpack") return matrix(1, 3, 10, uint64_t{1} << *log2);
  return std::nullopt;
}

}  // namespace halyard::local::vmvx
