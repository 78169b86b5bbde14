// Buffer views: limits, assertions in the order of the specification, contents.
#include "hal/view/buffer_view.h"

#include <gtest/gtest.h>

#include "sample_drivers.h"

namespace halyard::hal {
namespace {

constexpr ElementType kF32 = element_type(kFloatIeee, 32);
constexpr ElementType kI32 = element_type(kInteger, 32);

class BufferViewTest : public testing::Test {
 protected:
  Ref<Buffer> buffer_of(const std::vector<float>& values, const std::string& path = "") {
    auto device = sample_device(path);
    auto buffer = Buffer::allocate(*device, kAnyQueue, 0,
                                   HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED, 4 * values.size());
    EXPECT_OK((*buffer)->write(0, values.data(), 4 * values.size()));
    return *buffer;
  }
  Ref<BufferView> view(std::vector<int64_t> shape, ElementType type = kF32,
                       uint32_t encoding = kEncodingDenseRowMajor) {
    return BufferView::create(buffer_of({1, 2, 3, 4, 5, 6}), shape, type, encoding).value();
  }
};

TEST_F(BufferViewTest, KeepsItsArguments) {
  auto buffer = buffer_of({1, 2});
  const int64_t shape[] = {7, -3, 0};
  auto made = BufferView::create(buffer, shape, 0x7F0000FF, 42).value();
  EXPECT_EQ(&made->buffer(), buffer.get());
  EXPECT_EQ(std::vector<int64_t>(made->shape().begin(), made->shape().end()),
            (std::vector<int64_t>{7, -3, 0}));
  EXPECT_EQ(made->type(), 0x7F0000FFu);
  EXPECT_EQ(made->encoding(), 42u);
}

// A buffer of 24 bytes.
TEST_F(BufferViewTest, ShapeAndBytesAreCompared) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  struct Case {
    std::vector<int64_t> shape;
    ElementType type;
    std::optional<uint64_t> bytes;
    Code code;
  };
  const Case cases[] = {
      {{6}, kF32, 24, Code::OK},
      {{5}, kF32, 20, Code::OK},
      {{}, kF32, 4, Code::OK},
      {{0, 1000}, kF32, 0, Code::OK},
      {{kHuge, kHuge, 0}, kF32, 0, Code::OK},
      {{47}, element_type(kInteger, 4), 24, Code::OK},
      {{7}, kF32, {}, Code::OUT_OF_RANGE},
      {{49}, element_type(kInteger, 4), {}, Code::OUT_OF_RANGE},
      {{1000000, 1000000}, kF32, {}, Code::OUT_OF_RANGE},
      {{kHuge, 4}, kI32, {}, Code::INVALID_ARGUMENT},
      {{kHuge}, kF32, {}, Code::INVALID_ARGUMENT},
      {{-1}, kF32, {}, Code::INVALID_ARGUMENT},
      {{-2, -3}, kF32, {}, Code::INVALID_ARGUMENT},
  };
  for (const Case& it : cases) {
    const auto made = view(it.shape, it.type);
    const Result<uint64_t> found = made->byte_count();
    EXPECT_EQ(found ? Code::OK : found.error().code(), it.code) << made->type_text();
    if (found) {
      EXPECT_EQ(*found, it.bytes) << made->type_text();
    }
    const Result<std::span<uint8_t>> mapped = made->map();
    EXPECT_EQ(mapped ? Code::OK : mapped.error().code(), it.code) << made->type_text();
    if (!mapped) continue;
    EXPECT_EQ(mapped->size(), it.bytes);
    made->buffer().allocation().unmap();
  }
}

TEST_F(BufferViewTest, AtMost128Dimensions) {
  auto buffer = buffer_of({1});
  EXPECT_OK(BufferView::create(buffer, std::vector<int64_t>(128, 1), kF32, 1));
  EXPECT_FAILS(OUT_OF_RANGE, "at most 128 dimensions for a buffer view, found 129",
               BufferView::create(buffer, std::vector<int64_t>(129, 1), kF32, 1));
}

TEST_F(BufferViewTest, AssertionsThatHold) {
  const int64_t shape[] = {2, 3};
  EXPECT_OK(view({2, 3})->check("m", kF32, 1, shape));
  EXPECT_OK(view({2, 3}, kF32, kEncodingOpaque)->check("m", kF32, 1, shape));
  EXPECT_OK(view({2, 3}, element_type(kOpaque, 8))->check("m", kF32, 1, shape));
  EXPECT_OK(view({2, 3}, kI32)->check("m", element_type(kIntegerUnsigned, 32), 1, shape));
  EXPECT_OK(view({2, 3}, element_type(kIntegerSigned, 32))->check("m", kI32, 1, shape));
  EXPECT_OK(view({2, 3}, element_type(kBoolean, 8))->check("m", element_type(kInteger, 8), 1, shape));
  EXPECT_OK(view({})->check("m", kF32, 1, {}));
}

TEST_F(BufferViewTest, AssertionsInOrder) {
  const int64_t shape[] = {2, 3};
  const int64_t other[] = {2, 4};
  EXPECT_FAILS(INVALID_ARGUMENT, "arg0: expected encoding 00000002, found 00000001",
               view({5}, kI32)->check("arg0", kF32, 2, shape));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected encoding 00000000, found 00000001",
               view({2, 3})->check("arg0", kF32, kEncodingOpaque, shape));
  EXPECT_FAILS(INVALID_ARGUMENT, "arg0: expected element type f32 (21000020), found i32 (10000020)",
               view({5}, kI32)->check("arg0", kF32, 1, shape));
  EXPECT_FAILS(INVALID_ARGUMENT, "arg0: expected shape '2x3', found '5': rank 1 instead of 2",
               view({5})->check("arg0", kF32, 1, shape));
  EXPECT_FAILS(INVALID_ARGUMENT, "arg0: expected shape '2x4', found '2x3': dimension 1 is 3 instead of 4",
               view({2, 3})->check("arg0", kF32, 1, other));
  EXPECT_FAILS(INVALID_ARGUMENT, "dimension 0 is 9 instead of 2",
               view({9, 9})->check("arg0", kF32, 1, shape));
}

TEST_F(BufferViewTest, TypesThatDiffer) {
  EXPECT_FAILS(INVALID_ARGUMENT, "expected element type i32 (10000020), found i64",
               view({}, element_type(kInteger, 64))->check("m", kI32, 1, {}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected element type f16",
               view({}, element_type(kFloatBrain, 16))->check("m", element_type(kFloatIeee, 16), 1, {}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected element type *32",
               view({})->check("m", element_type(kOpaque, 32), 1, {}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected element type i8",
               view({}, element_type(kFloat8E5M2, 8))->check("m", element_type(kInteger, 8), 1, {}));
}

TEST_F(BufferViewTest, Text) {
  EXPECT_EQ(view({2, 3})->text(1024).value(), "2x3xf32=[1 2 3][4 5 6]");
  EXPECT_EQ(view({2, 3})->text(4).value(), "2x3xf32=[1 2 3][4...]");
  EXPECT_EQ(view({2, 3})->text(0).value(), "2x3xf32=[...][...]");
  EXPECT_EQ(view({6})->text(UINT64_MAX).value(), "6xf32=1 2 3 4 5 6");
  EXPECT_EQ(view({})->text(1).value(), "f32=1");
  EXPECT_EQ(view({0, 3})->text(1).value(), "0x3xf32=");
}

TEST_F(BufferViewTest, TextOfInvalidViews) {
  EXPECT_FAILS(OUT_OF_RANGE, "a view of 7xf32 needs 28 bytes, but its buffer has 24", view({7})->text(1));
  EXPECT_FAILS(INVALID_ARGUMENT, "-1", view({-1})->text(1));
  EXPECT_FAILS(INVALID_ARGUMENT, "no size", view({INT64_MAX, INT64_MAX})->text(1));
  EXPECT_FAILS(OUT_OF_RANGE, "i4", view({2}, element_type(kInteger, 4))->text(9));
  EXPECT_FAILS(OUT_OF_RANGE, "*0", view({2}, 0)->text(9));
}

TEST_F(BufferViewTest, TextNeedsHostAccess) {
  auto device = sample_device("hidden");
  auto buffer = Buffer::allocate(*device, kAnyQueue, 0, HALYARD_USAGE_DEFAULT, 4).value();
  const int64_t shape[] = {1};
  EXPECT_FAILS(PERMISSION_DENIED, "HOST_VISIBLE",
               BufferView::create(buffer, shape, kF32, 1).value()->text(9));
}

}  // namespace
}  // namespace halyard::hal
