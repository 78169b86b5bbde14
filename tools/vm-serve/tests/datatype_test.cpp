// Which elements go where.
#include "datatype.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace halyard::tools::serve
