// The element type and shape of a tensor that a step has written. A device knows only bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "element.h"
#include "step.h"
#include "tolerance.h"

namespace halyard::tools {

struct Typed {
  enum class Source : uint8_t { program, option, name, values, none };
  const ElementKind* kind = nullptr;
  Source source = Source::none;
};
std::string_view text_of(Typed::Source source);  // "the name of the kernel"

// `bytes` are those that the step has written, from an address that is a multiple of 8 bytes.
Typed type_of(const Step& step, const GivenTypes& given, std::span<const uint8_t> bytes);

// The element types that a kernel's name ends in: "..._32x128_i32xf32": i32, f32.
std::vector<const ElementKind*> types_in_name(std::string_view kernel);
// The shape of `count` elements among the leading dimensions in a kernel's name: of "matmul_32x512x128_f32"
// and 16384 elements, 32x512. Empty: none has so many elements.
std::vector<int64_t> shape_in_name(std::string_view kernel, uint64_t count);
// The smallest such number of elements that is at least `count`.
std::optional<uint64_t> count_in_name(std::string_view kernel, uint64_t count);

}  // namespace halyard::tools
