// The native module `check`: each function on each element type, on memory that the host can read and on
// memory that it cannot.
#include "modules/check_module.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <tuple>

#include "hal/queue/host_copy.h"
#include "hal/queue/wait.h"
#include "hal/view/element_text.h"
#include "hal/view/element_type.h"
#include "testing.h"

namespace halyard::modules {
namespace {

constexpr uint32_t kHostVisible = 0x32;
constexpr uint32_t kDeviceLocal = 0x30;
constexpr uint32_t kMapped = 0x3000C03;
constexpr uint32_t kTransferOnly = 0xC03;
constexpr const char* kAllTrue = "0rr_v";
constexpr const char* kEq = "0rrr_v";
constexpr const char* kAlmostEq = "0rrrff_v";

struct Report {
  std::string function;
  std::string message;
};

Argument number(float value) { return std::bit_cast<uint32_t>(value); }

// Device, and whether the host can map buffers.
class Check : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  void SetUp() override {
    auto opened = open_device(std::get<0>(GetParam()));
    if (!opened && std::string_view(std::get<0>(GetParam())) == "vulkan")
      GTEST_SKIP() << "no Vulkan device: " << opened.error().text();
    ASSERT_TRUE(opened) << opened.error().text();
    device = *opened;
    check = std::make_unique<ModuleCaller>(create_check_module(
        {.failed =
             [this](const FailedExpectation& failed) {
               reports.push_back({std::string(failed.function), std::string(failed.message)});
             },
         .memory = budget}));
  }

  Ref<hal::BufferView> view(std::span<const int64_t> shape, hal::ElementType type,
                            std::vector<uint8_t> bytes) {
    const bool mapped = std::get<1>(GetParam());
    auto buffer = hal::Buffer::allocate(*device, hal::kAnyQueue, mapped ? kHostVisible : kDeviceLocal,
                                        mapped ? kMapped : kTransferOnly, std::max<size_t>(bytes.size(), 4));
    EXPECT_TRUE(buffer) << buffer.error().text();
    if (!mapped) (*buffer)->allocation().usage = kTransferOnly;  // as if it were memory of a far device
    EXPECT_EQ((*buffer)->is_mappable(), mapped);
    bytes.resize((bytes.size() + 3) / 4 * 4);
    if (!bytes.empty()) {
      const Ref<hal::Buffer>& whole = *buffer;
      if (whole->length() < bytes.size()) bytes.resize(whole->length());
      auto written = hal::begin_write(bytes, *whole, 0);
      EXPECT_TRUE(written) << (written ? "" : written.error().text());
      hal::Fence* const fences[] = {written ? written->get() : nullptr};
      const Status done = hal::await(fences, hal::kWaitForever);
      EXPECT_TRUE(done.ok()) << done.text();
    }
    return hal::BufferView::create(*buffer, shape, type, hal::kEncodingDenseRowMajor).value();
  }
  // "2x2xf32=1,2,3,4"
  Ref<hal::BufferView> view(std::string_view text) {
    auto tensor = hal::parse_tensor(text);
    EXPECT_TRUE(tensor) << text;
    return view(tensor->shape, tensor->type, tensor->bytes);
  }

  Status all_true(std::string_view text) {
    return check->status("expect_all_true", kAllTrue, {device, view(text)});
  }
  Status eq(std::string_view left, std::string_view right) {
    return check->status("expect_eq", kEq, {device, view(left), view(right)});
  }
  Status almost_eq(std::string_view left, std::string_view right, float absolute, float relative) {
    return check->status("expect_almost_eq", kAlmostEq,
                         {device, view(left), view(right), number(absolute), number(relative)});
  }

  // The copying thread may release the buffer shortly after completion.
  void expect_all_given_back() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (budget->used() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(budget->used(), 0u);
  }

  void expect_holds(const Status& status, std::string_view what) {
    EXPECT_TRUE(status.ok()) << what << ": " << status.text();
    for (const Report& it : reports) ADD_FAILURE() << what << ": " << it.function << ": " << it.message;
    reports.clear();
  }
  // One expectation failed, with all of `parts` in its message.
  void expect_reported(const Status& status, std::string_view function,
                       const std::vector<std::string_view>& parts) {
    EXPECT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(reports.size(), 1u) << function;
    EXPECT_EQ(reports[0].function, function);
    for (std::string_view part : parts)
      EXPECT_TRUE(reports[0].message.contains(part))
          << "expected '" << part << "' in: " << reports[0].message;
    reports.clear();
  }
  void expect_refused(const Status& status, std::string_view part) {
    EXPECT_FAILS(INVALID_ARGUMENT, part, status);
    EXPECT_TRUE(reports.empty()) << reports[0].message;
  }

  Ref<Budget> budget = make<Budget>(Budget::kNoLimit);
  Ref<hal::Device> device;
  std::vector<Report> reports;
  std::unique_ptr<ModuleCaller> check;
};

// ---- Table

TEST_P(Check, TheModuleHasEverySignatureThatCompilersUse) {
  EXPECT_EQ(check->module().name(), "check");
  EXPECT_EQ(check->module().version(), 0u);
  for (const auto& [name, convention] : {std::pair("expect_true", "0i_v"),
                                         {"expect_false", "0i_v"},
                                         {"expect_all_true", kAllTrue},
                                         {"expect_eq", kEq},
                                         {"expect_almost_eq", "0rrr_v"},
                                         {"expect_almost_eq", kAlmostEq}})
    EXPECT_TRUE(check->module().resolve(name, convention)) << name;
  EXPECT_EQ(check->module().exports().size(), 6u);
}

// ---- Scalars

TEST_P(Check, Scalars) {
  for (int value : {1, -1, 256, std::numeric_limits<int>::min()}) {
    expect_holds(check->status("expect_true", "0i_v", {value}), "expect_true");
    expect_reported(check->status("expect_false", "0i_v", {value}), "expect_false",
                    {"expected 0", std::to_string(value)});
  }
  expect_holds(check->status("expect_false", "0i_v", {0}), "expect_false");
  expect_reported(check->status("expect_true", "0i_v", {0}), "expect_true", {"other than 0, found 0"});
}

// ---- expect_all_true

TEST_P(Check, AllTrueTakesIntegersF32AndF64) {
  for (const char* type : {"i8", "si8", "ui8", "i16", "si16", "ui16", "i32", "si32", "ui32", "i64", "si64",
                           "ui64", "f32", "f64"}) {
    expect_holds(all_true(fmt::format("3x{}=1,2,3", type)), type);
    expect_reported(all_true(fmt::format("2x2x{}=1,2,0,0", type)), "expect_all_true",
                    {"found 0 at [1][0]; 2 of 4 elements are 0", fmt::format("2x2x{}=[1 2][0 0]", type)});
  }
}

TEST_P(Check, AllTrueLooksAtWholeElements) {
  expect_holds(all_true("2xi16=256,1"), "the low byte is 0");
  expect_holds(all_true("i64=-9223372036854775808"), "the highest bit alone");
  expect_holds(all_true("3xf32=nan,inf,1e-45"), "not a number is not 0");
  expect_holds(all_true("2xf64=5e-324,-inf"), "the smallest number");
  expect_reported(all_true("2xf32=1,-0"), "expect_all_true", {"-0 at [1]"});
  expect_reported(all_true("f64=-0"), "expect_all_true", {"found -0; 1 of 1"});
  expect_holds(all_true("0xi32="), "no element");
}

TEST_P(Check, AllTrueRefusesOtherTypesByName) {
  for (const char* type : {"i1", "f16", "bf16", "i24", "cf64", "*8", "*32", "f8E5M2", "f8E4M3FN",
                           "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E8M0FNU"})
    expect_refused(all_true(fmt::format("2x{}=", type)), fmt::format("of type {}", type));
  const int64_t shape[] = {4};
  const auto packed = view(shape, hal::element_type(hal::kInteger, 4), {0x11, 0x11});
  expect_refused(check->status("expect_all_true", kAllTrue, {device, packed}), "of type i4");
}

// ---- expect_eq

TEST_P(Check, EqComparesTheBytesOfEveryType) {
  const int64_t shape[] = {2, 3};
  for (const char* name :
       {"i1",    "i8",     "si8",      "ui8",        "i16",        "si16",      "ui16", "i32", "si32",
        "ui32",  "i64",    "si64",     "ui64",       "f16",        "bf16",      "f32",  "f64", "cf64",
        "cf128", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E8M0FNU", "*8",   "*64", "i24"}) {
    const hal::ElementType type = *hal::parse_element_type(name);
    std::vector<uint8_t> bytes(6 * hal::bit_count(type) / 8);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 1);
    const auto left = view(shape, type, bytes);
    expect_holds(check->status("expect_eq", kEq, {device, left, view(shape, type, bytes)}), name);
    bytes.back() ^= 1;
    expect_reported(check->status("expect_eq", kEq, {device, left, view(shape, type, bytes)}), "expect_eq",
                    {"at [1][2]", "1 of 6 elements differ", fmt::format("left:  2x3x{}=[", name), "right: "});
  }
}

TEST_P(Check, EqComparesElementsOfLessThanAByte) {
  const int64_t shape[] = {5};
  const hal::ElementType type = hal::element_type(hal::kInteger, 4);
  const auto left = view(shape, type, {0x21, 0x43, 0x05});
  expect_holds(check->status("expect_eq", kEq, {device, left, view(shape, type, {0x21, 0x43, 0x05})}), "i4");
  expect_reported(check->status("expect_eq", kEq, {device, left, view(shape, type, {0x21, 0x53, 0x05})}),
                  "expect_eq", {"found 43 and 53 at byte 1; 1 of 3 bytes differ", "left:  5xi4 ("});
}

TEST_P(Check, EqIsAboutBytesNotAboutValues) {
  expect_holds(eq("2xf32=nan,inf", "2xf32=nan,inf"), "not a number is itself");
  expect_reported(eq("f32=0", "f32=-0"), "expect_eq", {"found 0 and -0, a difference of 0"});
  const auto quiet = view({}, *hal::parse_element_type("f32"), {0, 0, 0xC0, 0x7F});
  const auto other = view({}, *hal::parse_element_type("f32"), {1, 0, 0xC0, 0x7F});
  expect_reported(check->status("expect_eq", kEq, {device, quiet, other}), "expect_eq",
                  {"nan (bytes 0000C07F) and nan (bytes 0100C07F)"});
  expect_holds(eq("0x3xf32=", "0x3xf32="), "no element");
}

TEST_P(Check, EqTellsValuesExactlyWithTheirDifference) {
  expect_reported(eq("3xi32=1,2,3", "3xi32=1,5,4"), "expect_eq",
                  {"found 2 and 5 at [1], a difference of -3; 2 of 3 elements differ"});
  expect_reported(eq("f32=1", "f32=1.0000001"), "expect_eq", {"found 1 and 1.0000001,"});
  expect_reported(eq("ui64=18446744073709551615", "ui64=0"), "expect_eq",
                  {"a difference of 18446744073709551615;"});
  expect_reported(eq("i64=-9223372036854775808", "i64=9223372036854775807"), "expect_eq",
                  {"a difference of -18446744073709551615;"});
  expect_reported(eq("2x2x2xi8=1,2,3,4,5,6,7,8", "2x2x2xi8=1,2,3,4,5,9,7,8"), "expect_eq", {"at [1][0][1],"});
}

TEST_P(Check, TypesAndShapesAreComparedFirst) {
  expect_reported(eq("4xi32=1", "4xsi32=1"), "expect_eq", {"4xi32 and 4xsi32: the element types differ"});
  expect_reported(eq("2x3xi32=1", "3x2xi32=1"), "expect_eq", {"2x3xi32 and 3x2xi32: the shapes differ"});
  expect_reported(eq("6xi32=1", "2x3xi32=1"), "expect_eq", {"the shapes differ"});
  expect_reported(eq("i32=1", "1xi32=1"), "expect_eq", {"i32 and 1xi32: the shapes differ"});
  expect_reported(eq("4xi32=1", "2xf32=1"), "expect_eq",
                  {"both differ", "left:  4xi32=1 1 1 1", "2xf32=1 1"});
  expect_reported(almost_eq("4xf32=1", "4xf64=1", 1, 1), "expect_almost_eq", {"the element types differ"});
  expect_reported(almost_eq("4xf32=1", "2x2xf32=1", 1, 1), "expect_almost_eq", {"the shapes differ"});
  expect_reported(almost_eq("4xf32=1", "4xi32=1", 1, 1), "expect_almost_eq", {"the element types differ"});
}

// ---- expect_almost_eq

constexpr const char* kFloats[] = {"f64",      "f32",        "f16",        "bf16",     "f8E5M2",
                                   "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E8M0FNU"};

TEST_P(Check, AlmostEqTakesEveryFloat) {
  for (const char* type : kFloats) {
    const auto of = [&](std::string_view values) { return fmt::format("2x{}={}", type, values); };
    expect_holds(almost_eq(of("1,2"), of("1,2"), 0, 0), type);
    expect_holds(almost_eq(of("1,2"), of("1,4"), 2, 0), type);
    expect_holds(almost_eq(of("1,2"), of("1,4"), 0, 0.5F), type);
    expect_holds(almost_eq(of("1,2"), of("1,4"), 1, 0.25F), type);
    expect_reported(
        almost_eq(of("1,2"), of("1,4"), 1.875F, 0), "expect_almost_eq",
        {"within 1.875 + 0 * |right|, found 2 and 4 at [1], a difference of -2 where 1.875 is allowed",
         "1 of 2 elements differ", of("1,2").substr(0, of("").size()) + "1 2"});
    expect_holds(almost_eq(of("nan,1"), of("nan,1"), 0, 0), type);
    expect_reported(almost_eq(of("nan,1"), of("1,1"), INFINITY, 0), "expect_almost_eq",
                    {"nan and 1 at [0];"});
    expect_reported(almost_eq(of("1,1"), of("1,nan"), INFINITY, 0), "expect_almost_eq",
                    {"1 and nan at [1];"});
  }
}

TEST_P(Check, NanIsNearEveryNan) {
  for (const char* type : {"f64", "f32", "f16"}) {
    const auto of = [&](std::string_view value) { return fmt::format("{}={}", type, value); };
    expect_holds(almost_eq(of("nan"), of("-nan"), 0, 0), type);
    expect_reported(almost_eq(of("-nan"), of("-inf"), INFINITY, 1), "expect_almost_eq", {"nan and -inf"});
  }
}

TEST_P(Check, AlmostEqTakesInfinityAsItselfOnly) {
  for (const char* type : {"f64", "f32", "f16", "bf16", "f8E5M2"}) {
    const auto of = [&](std::string_view value) { return fmt::format("{}={}", type, value); };
    expect_holds(almost_eq(of("inf"), of("inf"), 0, 0), type);
    expect_holds(almost_eq(of("-inf"), of("-inf"), 0, 0), type);
    expect_reported(almost_eq(of("inf"), of("-inf"), 1e30F, 1), "expect_almost_eq", {"inf and -inf"});
    expect_reported(almost_eq(of("1"), of("inf"), INFINITY, 1), "expect_almost_eq", {"1 and inf"});
    expect_reported(almost_eq(of("inf"), of("1"), 1e30F, 1), "expect_almost_eq", {"found inf and 1;"});
  }
}

TEST_P(Check, AlmostEqTakesWhatIsOnTheEdgeOfTheTolerance) {
  expect_holds(almost_eq("f32=1.5", "f32=1", 0.5F, 0), "on the edge");
  expect_reported(almost_eq("f32=1.5000001", "f32=1", 0.5F, 0), "expect_almost_eq", {"1.5000001 and 1"});
  expect_holds(almost_eq("f32=0.5", "f32=1", 0.5F, 0), "on the other edge");
  expect_holds(almost_eq("f32=-5", "f32=-4", 0, 0.25F), "a share of a negative number");
  expect_reported(almost_eq("f32=-5.0000005", "f32=-4", 0, 0.25F), "expect_almost_eq",
                  {"where 1 is allowed"});
  expect_holds(almost_eq("f32=3", "f32=4", 0, 0.25F), "a share of the right one");
  expect_reported(almost_eq("f32=4", "f32=3", 0, 0.25F), "expect_almost_eq", {"where 0.75 is allowed"});
  expect_holds(almost_eq("f64=1.5", "f64=1", 0.5F, 0), "f64 on the edge");
  expect_reported(almost_eq("f64=1.5000000000000002", "f64=1", 0.5F, 0), "expect_almost_eq",
                  {"1.5000000000000002 and 1"});
  expect_holds(almost_eq("2xf32=0,-0", "2xf32=-0,0", 0, 0), "zeros of both signs");
  expect_reported(almost_eq("f32=1e-45", "f32=0", 0, 1), "expect_almost_eq", {"1e-45 and 0"});
  expect_reported(almost_eq("f32=1", "f32=2", NAN, 0), "expect_almost_eq", {"1 and 2"});
  expect_reported(almost_eq("f32=1", "f32=2", -1, 0), "expect_almost_eq", {"1 and 2"});
  expect_holds(almost_eq("f32=1", "f32=2", INFINITY, 0), "any tolerance");
  expect_holds(almost_eq("0xf32=", "0xf32=", 0, 0), "no element");
}

TEST_P(Check, AlmostEqComparesF64AsF64AndSmallerOnesAsF32) {
  expect_reported(almost_eq("f64=1", "f64=1.000000000001", 0, 0), "expect_almost_eq",
                  {"1 and 1.000000000001"});
  expect_holds(almost_eq("f64=1", "f64=1.000000000001", 1e-9F, 0), "f64");
  // f32 cannot represent 2^24 + 1: the difference becomes 2^24.
  expect_holds(almost_eq("f32=16777216", "f32=-1", 16777216, 0), "f32");
  expect_reported(almost_eq("f64=16777216", "f64=-1", 16777216, 0), "expect_almost_eq",
                  {"a difference of 16777217 where 16777216 is allowed"});
  expect_holds(almost_eq("bf16=16777216", "bf16=-1", 16777216, 0), "bf16");
}

TEST_P(Check, AlmostEqOfOldCompilersHasTolerancesOfItsOwn) {
  const auto old = [&](std::string_view left, std::string_view right) {
    return check->status("expect_almost_eq", "0rrr_v", {device, view(left), view(right)});
  };
  expect_holds(old("f32=1.00009", "f32=1"), "f32");
  expect_reported(old("f32=1.0002", "f32=1"), "expect_almost_eq", {"within 0.0001 + 0 * |right|"});
  expect_holds(old("f64=1.00009", "f64=1"), "f64");
  expect_holds(old("f16=1.0009765625", "f16=1"), "f16");
  expect_reported(old("bf16=1.0078125", "bf16=1"), "expect_almost_eq", {"within 0.001 + 0 * |right|"});
}

TEST_P(Check, AlmostEqRefusesOtherTypesByName) {
  for (const char* type : {"i1", "i8", "i32", "ui64", "cf64", "*32", "f24"})
    expect_refused(almost_eq(fmt::format("2x{}=", type), fmt::format("2x{}=", type), 1, 1),
                   fmt::format("of type {}", type));
}

// ---- Arguments

TEST_P(Check, NullAndOtherObjectsAreRefused) {
  const auto some = view("i32=1");
  expect_refused(check->status("expect_all_true", kAllTrue, {nullptr, some}), "null");
  expect_refused(check->status("expect_all_true", kAllTrue, {device, nullptr}), "null");
  expect_refused(check->status("expect_eq", kEq, {nullptr, some, some}), "null");
  expect_refused(check->status("expect_eq", kEq, {device, nullptr, some}), "null");
  expect_refused(check->status("expect_eq", kEq, {device, some, nullptr}), "null");
  for (size_t at = 0; at < 3; ++at) {
    std::vector<Argument> arguments = {device, some, some, number(1), number(1)};
    arguments[at] = nullptr;
    expect_refused(check->status("expect_almost_eq", kAlmostEq, arguments), "null");
  }
  expect_refused(check->status("expect_eq", kEq, {some, some, some}), "expected a hal.device");
  expect_refused(check->status("expect_eq", kEq, {device, text_of("x"), some}), "expected a hal.buffer_view");
}

TEST_P(Check, ViewsThatTheirBuffersCannotHoldAreRefused) {
  const int64_t large[] = {64};
  const int64_t negative[] = {-1};
  const hal::ElementType type = *hal::parse_element_type("i32");
  const auto some = view("2xi32=1,2");
  const auto beyond =
      hal::BufferView::create(Ref<hal::Buffer>::share(&some->buffer()), large, type, 1).value();
  const auto nowhere =
      hal::BufferView::create(Ref<hal::Buffer>::share(&some->buffer()), negative, type, 1).value();
  EXPECT_FAILS(OUT_OF_RANGE, "64xi32 needs 256 bytes, but its buffer has 8",
               check->status("expect_eq", kEq, {device, beyond, beyond}));
  EXPECT_FAILS(INVALID_ARGUMENT, "-1 has no size",
               check->status("expect_all_true", kAllTrue, {device, nowhere}));
  EXPECT_TRUE(reports.empty());
}

// ---- Size and memory

TEST_P(Check, LargeTensorsAreComparedToTheEndAndShownInPart) {
  constexpr size_t kCount = 200'000;
  const int64_t shape[] = {kCount};
  std::vector<float> values(kCount, 1);
  const auto of = [&] {
    std::vector<uint8_t> bytes(kCount * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return view(shape, *hal::parse_element_type("f32"), bytes);
  };
  const auto left = of();
  values[70'000] = values[kCount - 1] = 2;
  const auto right = of();
  expect_holds(check->status("expect_eq", kEq, {device, left, left}), "itself");
  expect_reported(check->status("expect_eq", kEq, {device, left, right}), "expect_eq",
                  {"at [70000]", "2 of 200000 elements differ"});
  expect_reported(check->status("expect_almost_eq", kAlmostEq, {device, left, right, number(0), number(0)}),
                  "expect_almost_eq", {"at [70000]", "2 of 200000 elements differ"});
  EXPECT_TRUE(check->status("expect_eq", kEq, {device, left, right}).ok());
  ASSERT_EQ(reports.size(), 1u);
  const std::string& message = reports[0].message;
  const size_t begin = message.find("left:  ") + 7;
  std::string expected = "200000xf32=1";
  for (size_t i = 1; i < 1024; ++i) expected += " 1";
  EXPECT_EQ(message.substr(begin, message.find('\n', begin) - begin), expected + "...");
}

TEST_P(Check, CopiesAreChargedAndGivenBack) {
  const bool mapped = std::get<1>(GetParam());
  const auto some = view("1024xi32=1");
  budget = make<Budget>(uint64_t{8000});
  ModuleCaller limited(create_check_module({.failed = [](const FailedExpectation&) {}, .memory = budget}));
  const Status one = limited.status("expect_all_true", kAllTrue, {device, some});
  EXPECT_TRUE(one.ok()) << one.text();
  expect_all_given_back();
  const Status two = limited.status("expect_eq", kEq, {device, some, some});
  if (mapped) {
    EXPECT_TRUE(two.ok()) << two.text();
  } else {
    EXPECT_FAILS(RESOURCE_EXHAUSTED, "a device buffer", two);
  }
  expect_all_given_back();
}

TEST_P(Check, WithoutASinkTheCallFailsWithOneLine) {
  ModuleCaller strict(create_check_module({}));
  const Status status = strict.status("expect_eq", kEq, {device, view("2xi32=1,2"), view("2xi32=1,3")});
  EXPECT_FAILS(FAILED_PRECONDITION, "'expect_eq' does not hold: expected the same contents", status);
  EXPECT_EQ(status.text().find('\n'), std::string::npos) << status.text();
  expect_holds(strict.status("expect_eq", kEq, {device, view("2xi32=1,2"), view("2xi32=1,2")}), "the same");
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<const char*, bool>>& info) {
  std::string name = std::get<0>(info.param);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name + (std::get<1>(info.param) ? "_mapped" : "_copied");
}
INSTANTIATE_TEST_SUITE_P(Devices, Check,
                         ::testing::Combine(::testing::Values("local-sync", "local-task", "vulkan"),
                                            ::testing::Bool()),
                         name_of);

// ---- Views of two devices

TEST(CheckOfTwoDevices, ViewsAreCopiedByTheDeviceThatIsGiven) {
  auto local = open_device("local-sync");
  auto null = open_device("null");
  ASSERT_TRUE(local && null);
  size_t failures = 0;
  ModuleCaller check(
      create_check_module({.failed = [&](const FailedExpectation&) { ++failures; }, .memory = {}}));
  const int64_t shape[] = {4};
  const auto of = [&](hal::Device& device, uint8_t last) {
    auto buffer = hal::Buffer::allocate(device, hal::kAnyQueue, kDeviceLocal, kTransferOnly, 4);
    EXPECT_TRUE(buffer) << buffer.error().text();
    (*buffer)->allocation().usage = kTransferOnly;
    EXPECT_FALSE((*buffer)->is_mappable());
    const uint8_t bytes[] = {1, 2, 3, last};
    auto written = hal::begin_write(bytes, **buffer, 0);
    EXPECT_TRUE(written) << written.error().text();
    hal::Fence* const fences[] = {written->get()};
    EXPECT_TRUE(hal::await(fences, hal::kWaitForever).ok());
    return hal::BufferView::create(*buffer, shape, hal::element_type(hal::kInteger, 8), 1).value();
  };
  for (const Ref<hal::Device>& device : {*local, *null}) {
    const Status same = check.status("expect_eq", kEq, {device, of(**local, 4), of(**null, 4)});
    EXPECT_TRUE(same.ok()) << same.text();
    EXPECT_EQ(failures, 0u);
    const Status other = check.status("expect_eq", kEq, {device, of(**local, 4), of(**null, 5)});
    EXPECT_TRUE(other.ok()) << other.text();
    EXPECT_EQ(failures, 1u);
    failures = 0;
  }
}

}  // namespace
}  // namespace halyard::modules
