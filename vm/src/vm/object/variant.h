// Variant: a value or a ref outside of registers: arguments, results, elements of variant lists. Specified by
// verifier-and-execution.md 8.3 and 10.
#pragma once

#include <bit>
#include <cstdint>

#include "base/object.h"

namespace halyard::vm {

// The numbers are those of the type descriptors of lists.
enum class ValueType : uint8_t { none = 0, i8 = 1, i16 = 2, i32 = 3, i64 = 4, f32 = 5, f64 = 6 };

class Variant {
 public:
  Variant() = default;  // empty, also for a null ref
  static Variant i32(int32_t value) { return Variant(ValueType::i32, static_cast<uint32_t>(value)); }
  static Variant i64(int64_t value) { return Variant(ValueType::i64, static_cast<uint64_t>(value)); }
  static Variant f32(float value) { return Variant(ValueType::f32, std::bit_cast<uint32_t>(value)); }
  static Variant f64(double value) { return Variant(ValueType::f64, std::bit_cast<uint64_t>(value)); }
  static Variant value(ValueType type, uint64_t bits) { return Variant(type, bits); }
  static Variant ref(Ref<Object> object) {
    Variant variant;
    variant.bits_ = reinterpret_cast<uintptr_t>(object.detach());
    return variant;
  }
  Variant(const Variant& other) : type_(other.type_), bits_(other.bits_) { retain(object()); }
  Variant(Variant&& other) noexcept : type_(other.type_), bits_(other.bits_) { other.forget(); }
  Variant& operator=(Variant other) noexcept {
    std::swap(type_, other.type_);
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~Variant() { release(object()); }

  bool empty() const { return type_ == ValueType::none && bits_ == 0; }
  bool is_value() const { return type_ != ValueType::none; }
  ValueType type() const { return type_; }  // none for refs and empty variants
  uint64_t bits() const { return bits_; }   // the value, zero-extended from its width
  int32_t as_i32() const { return static_cast<int32_t>(bits_); }
  int64_t as_i64() const { return static_cast<int64_t>(bits_); }
  float as_f32() const { return std::bit_cast<float>(static_cast<uint32_t>(bits_)); }
  double as_f64() const { return std::bit_cast<double>(bits_); }
  // Moves the ref out; null for values.
  Object* detach() {
    Object* const taken = object();
    if (taken) forget();
    return taken;
  }
  Object* object() const {  // borrowed; null for values
    return is_value() ? nullptr : reinterpret_cast<Object*>(static_cast<uintptr_t>(bits_));
  }

 private:
  Variant(ValueType type, uint64_t bits) : type_(type), bits_(bits) {}
  void forget() {
    type_ = ValueType::none;
    bits_ = 0;
  }

  ValueType type_ = ValueType::none;
  uint64_t bits_ = 0;  // the value bits, or an owned Object*
};

// Converts a value by the coercion table: integers are truncated or sign-extended, floats are rounded to
// nearest (with `legacy_floats`, as in bytecode 15, f32 and f64 convert to 0); all other combinations give 0.
uint64_t coerce(ValueType from, uint64_t bits, ValueType to, bool legacy_floats = false);

}  // namespace halyard::vm
