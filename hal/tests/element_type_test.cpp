// Element types: every type of the table in both directions, every rule of tensor text, every form of output.
#include "hal/view/element_type.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <clocale>
#include <cmath>
#include <cstring>
#include <limits>

#include "hal/view/element_text.h"
#include "status_testing.h"

namespace halyard::hal {
namespace {

// The printed form of a tensor given as text; "CODE" if reading or printing fails.
std::string round_trip(std::string_view text, uint64_t max_elements = 1024) {
  auto tensor = parse_tensor(text);
  if (!tensor) return name(tensor.error().code());
  auto out = format_contents(tensor->shape, tensor->type, tensor->bytes, max_elements);
  return out ? *out : name(out.error().code());
}

// Each case is "TYPE=ELEMENTS => ELEMENTS": the text that is read, and the elements that are printed after
// the type.
void expect_printed(std::initializer_list<std::string_view> cases) {
  for (const std::string_view each : cases) {
    const size_t arrow = each.find(" => ");
    const std::string_view text = each.substr(0, arrow);
    const std::string_view type = text.substr(0, text.find('='));
    EXPECT_EQ(round_trip(text), fmt::format("{}={}", type, each.substr(arrow + 4))) << text;
  }
}
void expect_unchanged(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) EXPECT_EQ(round_trip(text), text);
}
void expect_refused(Code code, std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts) EXPECT_EQ(round_trip(text), name(code)) << text;
}

constexpr std::string_view kWithNull(
    "5\0"
    "7",
    3);  // a number, a null character, another number

// Elements that each of the types refuses, at each position.
void expect_refused_elements(std::initializer_list<std::string_view> types,
                             std::initializer_list<std::string_view> texts) {
  for (const std::string_view type : types)
    for (const std::string_view text : texts)
      for (const std::string& tensor :
           {fmt::format("1x{}={}", type, text), fmt::format("2x{}=1,{}", type, text),
            fmt::format("2x{}={},1", type, text)})
        EXPECT_EQ(round_trip(tensor), "INVALID_ARGUMENT") << tensor;
}

std::string hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The bytes of a tensor's text, in hexadecimal.
std::string bytes_of(std::string_view text) {
  auto tensor = parse_tensor(text);
  return tensor ? hex(tensor->bytes) : name(tensor.error().code());
}

struct NamedValue {
  const char* text;
  ElementType value;
};
// The table of the specification.
constexpr NamedValue kTable[] = {
    {"*8", 0x00000008},        {"*16", 0x00000010},        {"*32", 0x00000020},
    {"*64", 0x00000040},       {"i1", 0x13000008},         {"i4", 0x10000004},
    {"si4", 0x11000004},       {"ui4", 0x12000004},        {"i8", 0x10000008},
    {"si8", 0x11000008},       {"ui8", 0x12000008},        {"i16", 0x10000010},
    {"si16", 0x11000010},      {"ui16", 0x12000010},       {"i32", 0x10000020},
    {"si32", 0x11000020},      {"ui32", 0x12000020},       {"i64", 0x10000040},
    {"si64", 0x11000040},      {"ui64", 0x12000040},       {"f16", 0x21000010},
    {"f32", 0x21000020},       {"f64", 0x21000040},        {"bf16", 0x22000010},
    {"cf64", 0x23000040},      {"cf128", 0x23000080},      {"f8E5M2", 0x24000008},
    {"f8E4M3FN", 0x25000008},  {"f8E5M2FNUZ", 0x26000008}, {"f8E4M3FNUZ", 0x27000008},
    {"f8E8M0FNU", 0x28000008},
};

constexpr ElementType kRows[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, ...) element_type(k##numerical, bits),
#include "halyard/element_types.inc"
};
// A new type in element_types.inc gets a row here, because numbers and texts never change.
static_assert(std::size(kTable) == std::size(kRows));

TEST(ElementType, EveryNamedTypeBothWays) {
  for (const NamedValue& row : kTable) {
    auto type = parse_element_type(row.text);
    ASSERT_TRUE(type) << row.text;
    EXPECT_EQ(*type, row.value) << row.text;
    EXPECT_EQ(element_type_text(row.value), row.text);
  }
}

TEST(ElementType, WidthsOfAnyNumber) {
  EXPECT_EQ(parse_element_type("i2").value(), element_type(kInteger, 2));
  EXPECT_EQ(parse_element_type("si1").value(), element_type(kIntegerSigned, 1));
  EXPECT_EQ(parse_element_type("f128").value(), element_type(kFloatIeee, 128));
  EXPECT_EQ(parse_element_type("x255").value(), element_type(kOpaque, 255));
  EXPECT_EQ(parse_element_type("x8").value(), element_type(kOpaque, 8));
}

TEST(ElementType, TextsThatAreNoTypes) {
  for (const char* text : {"",    "i",   "i0",     "i256",   "i1000",
                           "32",  "q32", "f8E4M3", "f8e5m2", "I32",
                           "i-8", "i+8", "i8 ",    " i8",    "tensor<4xf32>",
                           "*",   "f",   "u8",     "f32x",   "i99999999999999999999"}) {
    EXPECT_FAILS(INVALID_ARGUMENT, "", parse_element_type(text)) << text;
  }
}

TEST(ElementType, TypesWithoutANamePrintAsOpaque) {
  EXPECT_EQ(element_type_text(0), "*0");
  EXPECT_EQ(element_type_text(element_type(kFloat, 32)), "*32");
  EXPECT_EQ(element_type_text(0x7F000010), "*16");
  EXPECT_EQ(element_type_text(element_type(kFloat8E5M2, 16)), "*16");
  EXPECT_EQ(element_type_text(element_type(kBoolean, 1)), "i1");
}

TEST(ElementType, ByteCounts) {
  EXPECT_EQ(dense_byte_count({}, element_type(kFloatIeee, 32)).value(), 4u);
  const int64_t shape[] = {3, 5};
  EXPECT_EQ(dense_byte_count(shape, element_type(kInteger, 4)).value(), 8u);  // 60 bits
  EXPECT_EQ(dense_byte_count(shape, element_type(kInteger, 2)).value(), 4u);  // 30 bits
  EXPECT_EQ(dense_byte_count(shape, element_type(kFloatComplex, 128)).value(), 240u);
  EXPECT_EQ(dense_byte_count(shape, 0).value(), 0u);
}

TEST(ElementType, InvalidByteCounts) {
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  const int64_t huge_but_empty[] = {INT64_MAX, INT64_MAX, 0};
  const int64_t negative[] = {2, -1};
  const int64_t negative_and_empty[] = {0, -1};
  const int64_t wide[] = {INT64_MAX, 2};
  const ElementType f64 = element_type(kFloatIeee, 64);
  EXPECT_FAILS(INVALID_ARGUMENT, "9223372036854775807x9223372036854775807", dense_byte_count(huge, f64));
  EXPECT_FAILS(INVALID_ARGUMENT, "2x-1", dense_byte_count(negative, f64));
  EXPECT_FAILS(INVALID_ARGUMENT, "", dense_byte_count(negative_and_empty, f64));
  EXPECT_FAILS(INVALID_ARGUMENT, "", dense_byte_count(wide, f64));
  EXPECT_EQ(dense_byte_count(wide, element_type(kInteger, 8)).value(), 0xFFFFFFFFFFFFFFFEu);
  EXPECT_EQ(dense_byte_count(huge_but_empty, f64).value(), 0u);
}

TEST(TensorText, ShapesAndSeparators) {
  expect_printed({"4xf32=1,2,3,4 => 1 2 3 4", "4xf32=[1 2 3 4] => 1 2 3 4", "4xf32=1,,2,3,4, => 1 2 3 4",
                  "4xf32=1  2\t3\n4 => 1 2 3 4", "4xf32=[[1,2],[3,4] => 1 2 3 4",
                  "2x2xf32=[[1,2],[3,4]] => [1 2][3 4]", "2x2xf32=1,2,3,4 => [1 2][3 4]",
                  "2x3xf32=1 2 3 4 5 6 => [1 2 3][4 5 6]",
                  "2x2x2xi32=1,2,3,4,5,6,7,8 => [[1 2][3 4]][[5 6][7 8]]", "1x1x1xi8=5 => [[5]]",
                  "1x2x3x4xf32=1 => [[[1 1 1 1][1 1 1 1][1 1 1 1]][[1 1 1 1][1 1 1 1][1 1 1 1]]]"});
  expect_unchanged({"4xf32=1 2 3 4"});
}

TEST(TensorText, Scalars) {
  EXPECT_EQ(round_trip("xf32=3"), "f32=3");
  EXPECT_EQ(round_trip("xf32"), "f32=0");
  expect_printed({"f32= => 0"});
  expect_unchanged({"f32=3.5"});
  expect_refused(Code::OUT_OF_RANGE, {"f32=1,2"});
  expect_refused(Code::INVALID_ARGUMENT, {"f32"});
}

TEST(TensorText, ZerosFillsAndCounts) {
  expect_printed({"4xf32 => 0 0 0 0", "4xf32= => 0 0 0 0", "4xf32= ,[ ] => 0 0 0 0", "4xf32=7 => 7 7 7 7",
                  "2x2xi16=-2 => [-2 -2][-2 -2]"});
  expect_refused(Code::INVALID_ARGUMENT, {"4xf32=1;2;3;4"});
  expect_refused(Code::OUT_OF_RANGE, {"4xf32=1,2,3", "4xf32=1,2,3,4,5", "4xf32=1,2"});
}

TEST(TensorText, NoElements) {
  expect_printed({"0xf32 => ", "0xf32=1 => ", "2x0xf32 => [][]", "2x0x3xf32 => [][]", "0x2xf32 => ",
                  "2x2x0xi8 => [[][]][[][]]"});
  expect_unchanged({"0xf32="});
  expect_refused(Code::OUT_OF_RANGE, {"0xf32=1,2"});
  expect_refused(Code::INVALID_ARGUMENT, {"0xf32=a"});
}

TEST(TensorText, TextsThatAreNoTensors) {
  expect_refused(Code::INVALID_ARGUMENT, {"2xx32=DEADBEEF,00000001"});
  expect_refused(
      Code::INVALID_ARGUMENT,
      {"",         "=",        "=1",       "3.5",      "hello",      "?xf32=1",  "-1xf32=1",  "tensor<4xf32>",
       "4xq32=1",  "4x=1",     "x=1",      "x",        "2xx8=AB,cd", "x8=AB",    "4 xf32=1",  "4x f32=1",
       " 4xf32=1", "4xf32 =1", "+4xf32=1", "0x4xxf32", "x2xf32",     "4xf32x=1", "1.5xf32=1", "(null)"});
}

TEST(TensorText, InvalidShapes) {
  expect_refused(Code::INVALID_ARGUMENT, {"9223372036854775808xi8", "99999999999999999999999xi8",
                                          "4294967296x4294967296xi8=1", "9223372036854775807xi32=1"});
  expect_refused(Code::RESOURCE_EXHAUSTED, {"4611686018427387904xi8=1"});
  std::string ones;
  for (int i = 0; i < 128; ++i) ones += "1x";
  EXPECT_EQ(round_trip(ones + "i8=5"), ones + "i8=" + std::string(127, '[') + "5" + std::string(127, ']'));
  EXPECT_EQ(round_trip("1x" + ones + "i8=5"), "OUT_OF_RANGE");
}

TEST(TensorText, TypesWithoutElements) {
  auto type = parse_tensor_type("2x3xbf16");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(type->type, element_type(kFloatBrain, 16));
  EXPECT_TRUE(parse_tensor_type("f32")->shape.empty());
  EXPECT_EQ(parse_tensor_type("2xi4")->type, element_type(kInteger, 4));
  EXPECT_FALSE(parse_tensor_type("2x3"));
}

TEST(IntegerElements, CRules) {
  expect_printed(
      {"3xi32=0x10,010,-0X1f => 16 8 -31", "3xi32=+5,-0,00 => 5 0 0", "2xi64=-0x10,-010 => -16 -8"});
  expect_refused_elements({"i32"}, {"a", "'a'", "-", "+", "--1", "x1", ".5", "true"});
}

// The whole text must be a number: text that only begins like one is refused, at each position.
TEST(IntegerElements, WholeTextMustBeANumber) {
  expect_refused_elements({"i8", "i16", "i32", "i64", "si8", "si32", "si64", "ui8", "ui32", "ui64"},
                          {"1.5", "1.0", "1.", "1e3",   "0b1", "08",  "0x", "0xg", "0x1g", "1_000",  "7abc",
                           "1;2", "1L",  "1u", "1'000", "5%",  "0o7", "1-", "1+1", "1j",   kWithNull});
}

TEST(IntegerElements, Ranges) {
  expect_printed({"4xi8=-1,255,-128,127 => -1 -1 -128 127", "2xsi8=-128,127 => -128 127",
                  "2xui8=255,0 => 255 0", "3xi16=65535,-1,-32768 => -1 -1 -32768",
                  "2xsi16=32767,-32768 => 32767 -32768", "2xui16=65535,1 => 65535 1"});
  expect_refused(Code::INVALID_ARGUMENT,
                 {"1xi8=256", "1xi8=-129", "1xi8=4294967296", "1xsi8=128", "1xsi8=-129", "1xui8=256",
                  "1xui8=-1", "1xi16=65536", "1xi16=-32769", "1xsi16=32768", "1xui16=-1"});
}

TEST(IntegerElements, ThirtyTwoBits) {
  expect_printed({"2xi32=4294967295,-1 => -1 -1", "2xi32=2147483647,-2147483648 => 2147483647 -2147483648",
                  "4xi32=0xffffffff,1,1,1 => -1 1 1 1",
                  "2xsi32=2147483647,-2147483648 => 2147483647 -2147483648",
                  "2xui32=4294967295,0 => 4294967295 0"});
  expect_refused(
      Code::INVALID_ARGUMENT,
      {"i32=4294967296", "i32=-2147483649", "i32=99999999999", "i32=0x100000000", "i32=9223372036854775808",
       "i32=18446744073709551616", "i32=-9223372036854775809", "si32=2147483648", "si32=4294967295",
       "si32=-2147483649", "ui32=4294967296", "ui32=-1", "ui32=0xffffffffffffffff"});
}

TEST(IntegerElements, SixtyFourBits) {
  expect_printed({"2xi64=9223372036854775807,-1 => 9223372036854775807 -1",
                  "1xi64=0x7fffffffffffffff => 9223372036854775807",
                  "3xui64=18446744073709551615,1,-1 => 18446744073709551615 1 18446744073709551615",
                  "1xui64=-9223372036854775808 => 9223372036854775808"});
  expect_unchanged({"1xi64=-9223372036854775808"});
  expect_refused(
      Code::INVALID_ARGUMENT,
      {"1xi64=0x8000000000000000", "1xi64=9223372036854775808", "1xsi64=-9223372036854775809",
       "1xui64=-9223372036854775809", "1xui64=18446744073709551616", "1xui64=99999999999999999999999999"});
}

TEST(FloatElements, Numbers) {
  expect_printed({"2xf32=0x10,010 => 16 10", "4xf32=1e3,0x1p3,3,4 => 1000 8 3 4",
                  "5xf32=inf,-inf,nan,1e10,1e-10 => INF -INF NAN 1E+10 1E-10",
                  "4xf32=infinity,NaN,-nan,4 => INF NAN -NAN 4",
                  "4xf32=0.1,123456789,1234567,100000 => 0.1 1.23457E+08 1.23457E+06 100000",
                  "4xf32=1e5,1e6,1e-5,-0 => 100000 1E+06 1E-05 -0",
                  "3xf64=0.1,3.141592653589793,1e300 => 0.1 3.14159 1E+300"});
  EXPECT_EQ(bytes_of("f64=0.1"), "9a9999999999b93f");
  expect_refused_elements({"f32", "f16"}, {"a", "e5", "--1", "'1'", "."});
}

TEST(FloatElements, WholeTextMustBeANumber) {
  expect_refused_elements({"f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN", "f8E8M0FNU"},
                          {"1f", "1_000", "1.5abc", "1e", "1e+", "1.2.3", "0x", "0x1p", "infin", "nanx",
                           "nan(", "1;2", "1-1", "5%", "1j", kWithNull});
  std::vector<uint8_t> out;
  for (const char* const text : {"", " 1", "1 ", "\t1", ",1"})
    EXPECT_FALSE(parse_element(text, element_type(kFloatIeee, 32), out)) << text;
  EXPECT_TRUE(out.empty());
}

TEST(BooleanElements, Words) {
  expect_printed({"4xi1=1,0,1,0 => 01 00 01 00", "4xi1=true,false,True,False => 01 00 01 00",
                  "2xi1=[ True False] => 01 00", "3xi1=true => 01 01 01", "3xi1=01,00,FF => 01 00 FF"});
  expect_refused_elements({"i1"},
                          {"2", "-1", "001", "tru", "truee", "TRUE", "yes", "t", "1.0", "0x1", "true1"});
}

TEST(ComplexElements, AsPythonWritesThem) {
  EXPECT_EQ(bytes_of("2xcf64=1+2j,3"),
            "0000803f00000040"
            "0000404000000000");
  EXPECT_EQ(bytes_of("cf64=(1+2j)"), bytes_of("cf64=1+2j"));
  EXPECT_EQ(bytes_of("cf64=1.+2.j"), bytes_of("cf64=1+2j"));
  EXPECT_EQ(bytes_of("cf64=2j"), "0000000000000040");
  EXPECT_EQ(bytes_of("cf64=-1e3-0x1p1j"), "00007ac4000000c0");
  EXPECT_EQ(bytes_of("cf64=inf-infj"), "0000807f000080ff");
  EXPECT_EQ(bytes_of("cf64=nan+nanj"), "0000c07f0000c07f");
  EXPECT_EQ(bytes_of("cf128=0.1-2j"),
            "9a9999999999b93f"
            "00000000000000c0");
  EXPECT_EQ(bytes_of("cf128=0"), std::string(32, '0'));
  expect_refused_elements(
      {"cf64", "cf128"}, {"j", "1+", "1+j2", "1+2", "1+2jj", "1+2j3", "1j+2", "1+-2j", "(1+2j", "1+2j)", "()",
                          "(", ")", "1+2i", "a", "1+2j+3j", "0000803F0000004", "1;2"});
  EXPECT_EQ(round_trip("1xcf64=1+1e-46j"), "INVALID_ARGUMENT");
}

// Printed text can be parsed again.
TEST(TensorText, PrintedBytesAreReadAgain) {
  for (const char* const text :
       {"3xi1=1,0,FF", "2xcf64=1+2j,1234567890123456", "2xcf128=1-2j,0", "2x*16=ABCD,1234",
        "3xi64=1,-5,9223372036854775807", "2xui64=18446744073709551615,0"}) {
    const std::string printed = round_trip(text);
    EXPECT_EQ(bytes_of(printed), bytes_of(text)) << printed;
    EXPECT_EQ(round_trip(printed), printed);
  }
}

TEST(FloatElements, EndsOfTheRange) {
  expect_printed({"2xf32=1e39,-1e39 => INF -INF", "2xf64=1e309,-1e309 => INF -INF"});
  expect_refused(Code::INVALID_ARGUMENT, {"1xf32=1e-46", "1xf64=1e-400"});
  EXPECT_EQ(bytes_of("f32=1e-45"), "01000000");
  EXPECT_EQ(bytes_of("f32=0e-99"), "00000000");
  expect_printed({"3xf16=1.5,65504,1e-8 => 1.5 65504 0", "3xf16=65519,65520,-1e9 => 65504 INF -INF",
                  "3xbf16=1.5,3.1415926,1e38 => 1.5 3.14062 9.96921E+37", "2xbf16=3.4e38,1e300 => INF INF"});
}

TEST(FloatElements, EightBits) {
  expect_printed(
      {"4xf8E4M3FN=1,448,0.3,nan => 1 448 0.3125 NAN", "4xf8E5M2=1,57344,0.3,inf => 1 57344 0.3125 INF",
       "4xf8E4M3FNUZ=1,240,0.3,nan => 1 240 0.3125 NAN", "4xf8E5M2FNUZ=1,57344,0.3,-2 => 1 57344 0.3125 -2",
       "3xf8E8M0FNU=1,2,0.25 => 1 2 0.25", "4xf8E5M2=1e9,-1e9,nan,-0 => INF -INF NAN -0",
       "4xf8E4M3FN=1e9,-1e9,inf,-0 => NAN -NAN NAN -0", "3xf8E5M2FNUZ=1e9,-inf,-0 => NAN NAN 0",
       "3xf8E4M3FNUZ=1e9,-inf,-0 => NAN NAN 0", "4xf8E8M0FNU=0,-1,inf,1e39 => 5.87747E-39 NAN NAN NAN"});
}

TEST(FloatElements, TextDoesNotDependOnTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  bool found = false;
  for (const char* locale : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    found = found || std::setlocale(LC_ALL, locale);
  const std::string text = round_trip("2xf32=1.5,2.5");
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(text, "2xf32=1.5 2.5");
  if (!found) GTEST_SKIP() << "no locale with a decimal comma is installed";
}

TEST(FloatElements, PrintedLikeC) {
  const double values[] = {0,      -0.0,    1,        0.5,      0.33333333333333331,
                           2e5,    999999,  999999.5, 1e6,      123456.7,
                           1e-4,   1e-5,    0.00012,  -7.25e-9, 1.5e300,
                           5e-324, DBL_MAX, 1e15,     9.99995,  9.999995,
                           100,    1234567, INFINITY, -INFINITY};
  for (const double value : values) {
    uint8_t bytes[8];
    std::memcpy(bytes, &value, 8);
    char expected[64];
    std::snprintf(expected, sizeof expected, "%G", value);
    std::string text;
    ASSERT_TRUE(format_element(bytes, element_type(kFloatIeee, 64), text));
    EXPECT_EQ(text, expected);
  }
}

TEST(ByteElements, HexadecimalInMemoryOrder) {
  expect_printed(
      {"2xi1=01,00 => 01 00", "2xcf64=3F80000000000000,0000000000000040 => 3F80000000000000 0000000000000040",
       "cf128=000000000000f03f0000000000000040 => 000000000000F03F0000000000000040", "2x*8=AB,cd => AB CD"});
  EXPECT_EQ(bytes_of("*16=0102"), "0102");
  EXPECT_EQ(bytes_of("*32=DEADBEEF"), "deadbeef");
  EXPECT_EQ(bytes_of("2x*64=0102030405060708"), "01020304050607080102030405060708");
  expect_unchanged({"cf64=0000803F00000040", "i24=010203"});
  expect_refused(Code::INVALID_ARGUMENT, {"f128"});
  EXPECT_EQ(round_trip("xf128"), "f128=" + std::string(32, '0'));
  EXPECT_EQ(round_trip("*16=01 02 03"), "OUT_OF_RANGE");
  expect_refused(Code::INVALID_ARGUMENT, {"*16=010", "*16=01020", "*8=0g", "*8=0x", "i24=01020g"});
}

TEST(SubByteElements, CannotBeReadOrPrinted) {
  expect_refused(Code::INVALID_ARGUMENT, {"2xi4=1,2", "2xi2=1,2", "2xi4", "2xui4=1", "2xi12=001", "2x*4=1"});
  const int64_t shape[] = {2};
  const uint8_t bytes[] = {0x21};
  EXPECT_FAILS(OUT_OF_RANGE, "", format_contents(shape, element_type(kInteger, 4), bytes, 9));
  EXPECT_FAILS(OUT_OF_RANGE, "", format_contents(shape, 0, bytes, 9));
  std::string text;
  EXPECT_FAILS(OUT_OF_RANGE, "", format_element(bytes, element_type(kInteger, 4), text));
  std::vector<uint8_t> out;
  EXPECT_FAILS(INVALID_ARGUMENT, "", parse_element("1", element_type(kInteger, 4), out));
}

TEST(Contents, TruncatedAtTheMaximumOfElements) {
  EXPECT_EQ(round_trip("8xf32=1,2,3,4,5,6,7,8", 3), "8xf32=1 2 3...");
  EXPECT_EQ(round_trip("3x4xi32=5", 3), "3x4xi32=[5 5 5...][...][...]");
  EXPECT_EQ(round_trip("3x4xi32=5", 6), "3x4xi32=[5 5 5 5][5 5...][...]");
  EXPECT_EQ(round_trip("3x4xi32=5", 8), "3x4xi32=[5 5 5 5][5 5 5 5][...]");
  EXPECT_EQ(round_trip("3x4xi32=5", 12), "3x4xi32=[5 5 5 5][5 5 5 5][5 5 5 5]");
  EXPECT_EQ(round_trip("3x4xi32=5", 0), "3x4xi32=[...][...][...]");
  EXPECT_EQ(round_trip("2x2x2xi8=1", 3), "2x2x2xi8=[[1 1][1...]][[...][...]]");
  EXPECT_EQ(round_trip("i32=5", 0), "i32=...");
  EXPECT_EQ(round_trip("2x0xf32", 0), "2x0xf32=[][]");
}

TEST(Contents, NeedsItsBytes) {
  const int64_t shape[] = {4};
  const uint8_t bytes[8] = {};
  EXPECT_FAILS(OUT_OF_RANGE, "", format_contents(shape, element_type(kFloatIeee, 32), bytes, 1));
  EXPECT_EQ(format_leading(shape, element_type(kFloatIeee, 32), bytes, 2).value(), "4xf32=0 0...");
  EXPECT_FAILS(OUT_OF_RANGE, "", format_leading(shape, element_type(kFloatIeee, 32), bytes, 3));
  const int64_t negative[] = {-4};
  EXPECT_FAILS(INVALID_ARGUMENT, "", format_contents(negative, element_type(kInteger, 8), bytes, 1));
}

TEST(Contents, ManyEmptyLists) {
  const int64_t lists[] = {INT64_MAX, INT64_MAX, 0};
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "", format_contents(lists, element_type(kInteger, 8), {}, 1));
  const int64_t none[] = {0, INT64_MAX, INT64_MAX};
  EXPECT_EQ(format_contents(none, element_type(kInteger, 8), {}, 1).value(),
            "0x9223372036854775807x9223372036854775807xi8=");
  const std::vector<int64_t> deep(200, 1);
  const uint8_t byte[] = {1};
  EXPECT_FAILS(OUT_OF_RANGE, "", format_contents(deep, element_type(kInteger, 8), byte, 1));
}

TEST(ShapeText, DimensionsWithXBetween) {
  EXPECT_EQ(shape_text({}), "");
  const int64_t shape[] = {2, 0, -1};
  EXPECT_EQ(shape_text(shape), "2x0x-1");
}

}  // namespace
}  // namespace halyard::hal
