// Elements of tensors as numbers: values, distances, text. Types are named as in texts of tensors ("f32").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace halyard::tools {

// An element type whose elements are whole bytes.
struct ElementKind {
  enum class Numbers : uint8_t { signed_integer, unsigned_integer, floating };
  std::string_view name;
  uint32_t size = 1;  // bytes
  Numbers numbers = Numbers::unsigned_integer;

  bool is_float() const { return numbers == Numbers::floating; }
};

// Null: no such type, or one whose elements are not whole bytes or not single numbers.
const ElementKind* element_kind(std::string_view name);
// Plain bytes.
const ElementKind& byte_kind();

struct ElementValue {
  double value = 0;
  // Neighbouring values of the type differ by 1; both zeros have the same number. Not for NaN.
  __int128 order = 0;
  bool is_nan = false;
  bool is_infinite = false;
};
ElementValue element_value(const ElementKind& kind, const uint8_t* element);

// The shortest text that tells neighbouring values apart.
std::string number_text(const ElementKind& kind, const uint8_t* element);

}  // namespace halyard::tools
