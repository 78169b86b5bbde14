// Elements as numbers: the numeric types, and their extreme values.
#include "hal/view/element_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "hal/view/element_text.h"

namespace halyard::hal {
namespace {

ElementType type_of(std::string_view name) { return parse_element_type(name).value(); }
std::vector<uint8_t> parsed_bytes(std::string_view text) { return parse_tensor(text)->bytes; }

TEST(ElementValue, TypesThatAreNumbers) {
  for (const char* name :
       {"i8", "si8", "ui8", "i16", "si16", "ui16", "i32", "si32", "ui32", "i64", "si64", "ui64"}) {
    EXPECT_TRUE(is_integer(type_of(name))) << name;
    EXPECT_FALSE(is_float(type_of(name))) << name;
  }
  for (const char* name :
       {"f64", "f32", "f16", "bf16", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E8M0FNU"}) {
    EXPECT_FALSE(is_integer(type_of(name))) << name;
    EXPECT_TRUE(is_float(type_of(name))) << name;
    EXPECT_EQ(small_float(type_of(name)) != nullptr, bit_count(type_of(name)) <= 16) << name;
  }
  for (const char* name : {"i1", "i4", "i24", "i128", "f24", "f128", "bf32", "cf64", "*8", "*32"}) {
    EXPECT_FALSE(is_integer(type_of(name))) << name;
    EXPECT_FALSE(is_float(type_of(name))) << name;
  }
}

// Types added to element_types.inc are numbers, unless the file states otherwise.
TEST(ElementValue, WholeBytesOfTheTableAreNumbers) {
  const auto check = [](NumericalType type, uint32_t bits, std::string_view text) {
    const bool is_other = type == kOpaque || type == kBoolean || type == kFloatComplex || bits < 8;
    const ElementType each = element_type(type, bits);
    EXPECT_EQ(is_integer(each) || is_float(each), !is_other) << text;
  };
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, ...) check(k##numerical, bits, text);
#include "halyard/element_types.inc"
}

TEST(ElementValue, Integers) {
  const auto value = [](std::string_view type, std::string_view text) {
    return integer_value(parsed_bytes(std::string(type) + "=" + std::string(text)).data(), type_of(type));
  };
  EXPECT_TRUE(value("i8", "-128") == -128);
  EXPECT_TRUE(value("si8", "127") == 127);
  EXPECT_TRUE(value("ui8", "255") == 255);
  EXPECT_TRUE(value("i16", "-32768") == -32768);
  EXPECT_TRUE(value("ui16", "65535") == 65535);
  EXPECT_TRUE(value("i32", "-2147483648") == std::numeric_limits<int32_t>::min());
  EXPECT_TRUE(value("ui32", "4294967295") == std::numeric_limits<uint32_t>::max());
  EXPECT_TRUE(value("i64", "-9223372036854775808") == std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(value("ui64", "18446744073709551615") == std::numeric_limits<uint64_t>::max());
}

TEST(ElementValue, Floats) {
  const auto value = [](std::string_view type, std::string_view text) {
    return float_value(parsed_bytes(std::string(type) + "=" + std::string(text)).data(), type_of(type));
  };
  for (const char* type : {"f64", "f32", "f16", "bf16", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ"}) {
    EXPECT_EQ(value(type, "1.5"), 1.5) << type;
    EXPECT_EQ(value(type, "-4"), -4) << type;
    EXPECT_TRUE(std::isnan(value(type, "nan"))) << type;
  }
  EXPECT_EQ(value("f8E8M0FNU", "4"), 4);
  EXPECT_EQ(value("f64", "5e-324"), 5e-324);
  EXPECT_EQ(value("f32", "1e-45"), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(value("f16", "65504"), 65504);
  EXPECT_EQ(value("f16", "inf"), INFINITY);
  EXPECT_TRUE(std::signbit(value("bf16", "-0")));
}

}  // namespace
}  // namespace halyard::hal
