// Variants and the coercion table of verifier-and-execution.md, 8.3, entry by entry.
#include "vm/object/variant.h"

#include <limits>

#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

TEST(Coercion, Table) {
  using enum ValueType;
  struct Row {
    ValueType from;
    uint64_t bits;
    uint64_t to[6];  // i8 i16 i32 i64 f32 f64
  };
  const Row rows[] = {
      {i8, 0x80, {0x80, 0xFF80, 0xFFFFFF80, 0xFFFFFFFFFFFFFF80, 0, 0}},
      {i8, 0x7F, {0x7F, 0x7F, 0x7F, 0x7F, 0, 0}},
      {i16, 0x8081, {0x81, 0x8081, 0xFFFF8081, 0xFFFFFFFFFFFF8081, 0, 0}},
      {i32, 0x80828384, {0x84, 0x8384, 0x80828384, 0xFFFFFFFF80828384, 0, 0}},
      {i64, 0x8182838485868788, {0x88, 0x8788, 0x85868788, 0x8182838485868788, 0, 0}},
      {f32, bits(1.5f), {0, 0, 0, 0, bits(1.5f), bits(1.5)}},
      {f64, bits(0.1), {0, 0, 0, 0, bits(0.1f), bits(0.1)}},
  };
  const ValueType types[] = {i8, i16, i32, i64, f32, f64};
  for (const Row& row : rows) {
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(coerce(row.from, row.bits, types[i]), row.to[i]) << int(row.from) << " to " << int(types[i]);
      const bool between_floats =
          (row.from == f32 && types[i] == f64) || (row.from == f64 && types[i] == f32);
      EXPECT_EQ(coerce(row.from, row.bits, types[i], true), between_floats ? 0 : row.to[i])
          << "bytecode 15, " << int(row.from) << " to " << int(types[i]);
    }
  }
}

TEST(Coercion, FloatsRoundToNearestAndOverflow) {
  EXPECT_EQ(coerce(ValueType::f64, bits(1.0 + 0x1p-24), ValueType::f32), bits(1.0f));
  EXPECT_EQ(coerce(ValueType::f64, bits(1.0 + 0x1.8p-24), ValueType::f32), bits(1.0f + 0x1p-23f));
  EXPECT_EQ(coerce(ValueType::f64, bits(1e300), ValueType::f32),
            bits(std::numeric_limits<float>::infinity()));
}

TEST(Variant, SharesItsObject) {
  int alive = 0;
  {
    Variant first = Variant::ref(make<Thing>(&alive));
    EXPECT_TRUE(first.object()->unique());
    Variant second = first;
    EXPECT_EQ(second.object(), first.object());
    EXPECT_FALSE(first.object()->unique());
    Variant third = std::move(second);
    EXPECT_TRUE(second.empty());  // NOLINT(bugprone-use-after-move): a move leaves it empty, promised
    EXPECT_EQ(third.object(), first.object());
    third = i32(5);
    EXPECT_TRUE(first.object()->unique());
    EXPECT_EQ(third.object(), nullptr);
    EXPECT_EQ(third.as_i32(), 5);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Variant, EmptyIsANullRef) {
  EXPECT_TRUE(Variant().empty());
  EXPECT_TRUE(Variant::ref(nullptr).empty());
  EXPECT_FALSE(i32(0).empty());
  EXPECT_EQ(f32(-0.0f).bits(), 0x80000000u);
  EXPECT_EQ(i32(-1).bits(), 0xFFFFFFFFu);
  EXPECT_EQ(i64(-1).as_i64(), -1);
}

}  // namespace
}  // namespace halyard::vm::test
