// 16-bit floats, and which elements go where.
#include "datatype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halyard/element_type.h"

namespace halyard::tools::serve {
namespace {

TEST(DataType, NamesOfTheProtocol) {
  for (const char* name : {"BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64",
                           "FP16", "BF16", "FP32", "FP64"}) {
    const DataType* const type = datatype_named(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(type->name, name);
    EXPECT_EQ(datatype_of(type->element_type), type);
  }
  EXPECT_FALSE(datatype_named("fp32"));
  EXPECT_FALSE(datatype_named("BYTES"));
  EXPECT_FALSE(datatype_named(""));
}

TEST(DataType, IntegersWithoutASignTakeBoth) {
  EXPECT_TRUE(is_accepted(HALYARD_ELEMENT_I32, *datatype_named("INT32")));
  EXPECT_TRUE(is_accepted(HALYARD_ELEMENT_I32, *datatype_named("UINT32")));
  EXPECT_FALSE(is_accepted(HALYARD_ELEMENT_I32, *datatype_named("INT64")));
  EXPECT_FALSE(is_accepted(HALYARD_ELEMENT_I32, *datatype_named("FP32")));
  EXPECT_TRUE(is_accepted(HALYARD_ELEMENT_UI8, *datatype_named("UINT8")));
  EXPECT_FALSE(is_accepted(HALYARD_ELEMENT_UI8, *datatype_named("INT8")));
  EXPECT_TRUE(is_accepted(HALYARD_ELEMENT_SI8, *datatype_named("INT8")));
  EXPECT_FALSE(is_accepted(HALYARD_ELEMENT_SI8, *datatype_named("UINT8")));
  EXPECT_FALSE(is_accepted(HALYARD_ELEMENT_I8, *datatype_named("BOOL")));
}

TEST(DataType, ElementsThatTheProtocolHasNot) {
  EXPECT_FALSE(datatype_of(HALYARD_ELEMENT_I4));
  EXPECT_FALSE(datatype_of(HALYARD_ELEMENT_CF64));
  EXPECT_FALSE(datatype_of(HALYARD_ELEMENT_F8E5M2));
  EXPECT_FALSE(datatype_of(HALYARD_ELEMENT_NONE));
}

TEST(HalfFloats, EveryNumberOfBothFormatsIsItself) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (!std::isnan(from_f16(half))) {
      EXPECT_EQ(to_f16(from_f16(half)), half) << bits;
    }
    if (!std::isnan(from_bf16(half))) {
      EXPECT_EQ(to_bf16(from_bf16(half)), half) << bits;
    }
  }
  EXPECT_TRUE(std::isnan(from_f16(to_f16(std::numeric_limits<double>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::numeric_limits<double>::quiet_NaN()))));
}

TEST(HalfFloats, KnownValues) {
  EXPECT_EQ(from_f16(0x3C00), 1.0);
  EXPECT_EQ(from_f16(0xC000), -2.0);
  EXPECT_EQ(from_f16(0x7BFF), 65504.0);
  EXPECT_EQ(from_f16(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(from_bf16(0x3F80), 1.0);
  EXPECT_EQ(from_bf16(0x4049), 3.140625);
}

TEST(HalfFloats, RoundToTheNearestAndTiesToEven) {
  EXPECT_EQ(to_f16(1.0 + std::ldexp(1.0, -11)), 0x3C00);  // halfway between 1 and its successor
  EXPECT_EQ(to_f16(1.0 + 3 * std::ldexp(1.0, -11)), 0x3C02);
  EXPECT_EQ(to_f16(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3C01);
  EXPECT_EQ(to_f16(2.0 - std::ldexp(1.0, -12)), 0x4000);  // carries into the exponent
  EXPECT_EQ(to_f16(65519.999), 0x7BFF);
  EXPECT_EQ(to_f16(65520), 0x7C00);
  EXPECT_EQ(to_f16(std::ldexp(1.0, -25)), 0x0000);
  EXPECT_EQ(to_f16(std::ldexp(1.5, -25)), 0x0001);
  EXPECT_EQ(to_f16(-0.0), 0x8000);
  EXPECT_EQ(to_bf16(1.0 + std::ldexp(1.0, -8)), 0x3F80);
  EXPECT_EQ(to_bf16(1.0 + 3 * std::ldexp(1.0, -8)), 0x3F82);
}

}  // namespace
}  // namespace halyard::tools::serve
