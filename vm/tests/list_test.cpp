// Lists: the object, and the instructions on it. Specified by verifier-and-execution.md, section 8, and
// isa.md, 5.7.
#include "vm/object/list.h"

#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

constexpr uint32_t kLimit = 1000;
const ElementType kThings = {.value = ValueType::none, .object = &Thing::kType};
const ElementType kVariants = {};

Ref<List> list_of(ElementType element, uint32_t size) {
  Ref<List> list = List::create(element);
  EXPECT_TRUE(list->resize(size, kLimit));
  return list;
}

TEST(List, ValuesAreConvertedToTheElementTypeAndBack) {
  const ValueType types[] = {ValueType::i8,  ValueType::i16, ValueType::i32,
                             ValueType::i64, ValueType::f32, ValueType::f64};
  for (const ValueType element : types) {
    for (const ValueType stored : types) {
      uint64_t bits = coerce(ValueType::i64, 0xFEDCBA9876543281, stored);
      if (stored == ValueType::f32) bits = std::bit_cast<uint32_t>(-2.5f);
      if (stored == ValueType::f64) bits = std::bit_cast<uint64_t>(-2.5);
      for (const bool legacy : {false, true}) {
        Ref<List> list = list_of({.value = element}, 3);
        ASSERT_TRUE(list->set_value(1, stored, bits, legacy));
        const uint64_t inside = coerce(stored, bits, element, legacy);
        EXPECT_EQ(*list->get_value(1, element), inside);
        EXPECT_EQ(*list->get_value(0, element), 0u);
        EXPECT_EQ(*list->get_value(2, element), 0u);
        for (const ValueType as : types)
          EXPECT_EQ(*list->get_value(1, as, legacy), coerce(element, inside, as, legacy));
      }
    }
  }
}

TEST(List, GrowingGivesZeroAlsoAfterShrinking) {
  Ref<List> list = list_of({.value = ValueType::i16}, 2);
  ASSERT_TRUE(list->set_value(1, ValueType::i32, 7));
  ASSERT_TRUE(list->resize(1, kLimit));
  ASSERT_TRUE(list->resize(100, kLimit));
  EXPECT_EQ(list->size(), 100u);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(*list->get_value(i, ValueType::i32), 0u);
}

TEST(List, ShrinkingReleases) {
  int alive = 0;
  for (const ElementType& element : {kThings, kVariants}) {
    Ref<List> list = list_of(element, 2);
    ASSERT_TRUE(list->set_ref(0, make<Thing>(&alive)));
    ASSERT_TRUE(list->set_ref(1, make<Thing>(&alive)));
    EXPECT_EQ(alive, 2);
    ASSERT_TRUE(list->resize(1, kLimit));
    EXPECT_EQ(alive, 1);
    ASSERT_TRUE(list->set_ref(0, nullptr));
    EXPECT_EQ(alive, 0);
    ASSERT_TRUE(list->set_ref(0, make<Thing>(&alive)));
    list = nullptr;
    EXPECT_EQ(alive, 0);
  }
}

TEST(List, WrongKindsOfElement) {
  int alive = 0;
  Ref<List> values = list_of({.value = ValueType::i32}, 1);
  EXPECT_FAILS(FAILED_PRECONDITION, "", values->get_ref(0));
  EXPECT_FAILS(FAILED_PRECONDITION, "", values->take_ref(0));
  EXPECT_FAILS(FAILED_PRECONDITION, "", values->set_ref(0, nullptr));

  Ref<List> refs = list_of(kThings, 1);
  EXPECT_FAILS(FAILED_PRECONDITION, "", refs->get_value(0, ValueType::i32));
  EXPECT_FAILS(FAILED_PRECONDITION, "", refs->set_value(0, ValueType::i32, 1));
  EXPECT_FAILS(INVALID_ARGUMENT, "", refs->set_ref(0, refs));
  EXPECT_TRUE(refs->set_ref(0, make<Thing>(&alive)));
  EXPECT_TRUE(refs->set_ref(0, nullptr));
  EXPECT_EQ(*refs->get_ref(0), nullptr);

  Ref<List> variants = list_of(kVariants, 1);
  EXPECT_FAILS(FAILED_PRECONDITION, "", variants->get_value(0, ValueType::i32));
  EXPECT_EQ(*variants->get_ref(0), nullptr);
  EXPECT_TRUE(variants->set_value(0, ValueType::f64, std::bit_cast<uint64_t>(2.5)));
  EXPECT_EQ(*variants->get_value(0, ValueType::f32), std::bit_cast<uint32_t>(2.5f));
  EXPECT_EQ(*variants->get_value(0, ValueType::i32), 0u);
  EXPECT_FAILS(FAILED_PRECONDITION, "", variants->get_ref(0));
  EXPECT_TRUE(variants->set_ref(0, make<Thing>(&alive)));
  EXPECT_FAILS(FAILED_PRECONDITION, "", variants->get_value(0, ValueType::i32));
  EXPECT_TRUE(variants->set_value(0, ValueType::i32, 1));  // releases the ref
  EXPECT_EQ(alive, 0);
}

TEST(List, IndexesAreChecked) {
  Ref<List> list = list_of(kVariants, 2);
  for (const uint32_t index : {2u, 0xFFFFFFFFu}) {
    EXPECT_FAILS(OUT_OF_RANGE, "", list->get_value(index, ValueType::i32));
    EXPECT_FAILS(OUT_OF_RANGE, "", list->set_value(index, ValueType::i32, 0));
    EXPECT_FAILS(OUT_OF_RANGE, "", list->get_ref(index));
    EXPECT_FAILS(OUT_OF_RANGE, "", list->take_ref(index));
    EXPECT_FAILS(OUT_OF_RANGE, "", list->set_ref(index, nullptr));
    EXPECT_FAILS(OUT_OF_RANGE, "", list->get(index));
    EXPECT_FAILS(OUT_OF_RANGE, "", list->set(index, Variant()));
  }
}

TEST(List, SizesAreLimited) {
  for (const ElementType& element : {ElementType{.value = ValueType::i64}, kThings, kVariants}) {
    Ref<List> list = list_of(element, 1);
    EXPECT_TRUE(list->reserve(kLimit, kLimit));
    EXPECT_FAILS(RESOURCE_EXHAUSTED, "", list->reserve(kLimit + 1, kLimit));
    EXPECT_FAILS(RESOURCE_EXHAUSTED, "", list->resize(0xFFFFFFFF, kLimit));
    EXPECT_EQ(list->size(), 1u);
  }
}

TEST(List, ElementsAsVariants) {
  int alive = 0;
  Ref<List> values = list_of({.value = ValueType::i8}, 1);
  ASSERT_TRUE(values->set(0, i32(-1)));
  EXPECT_EQ(values->get(0)->type(), ValueType::i8);
  EXPECT_EQ(values->get(0)->bits(), 0xFFu);
  Ref<List> refs = list_of(kThings, 1);
  const Variant thing = Variant::ref(make<Thing>(&alive));
  ASSERT_TRUE(refs->set(0, thing));
  EXPECT_EQ(refs->get(0)->object(), thing.object());
  Ref<List> variants = list_of(kVariants, 2);
  ASSERT_TRUE(variants->set(0, f64(1.5)));
  EXPECT_EQ(variants->get(0)->as_f64(), 1.5);
  EXPECT_TRUE(variants->get(1)->empty());
}

// Lists nested in lists: destroying them does not recurse.
TEST(List, DeepNestingEnds) {
  int alive = 0;
  for (const ElementType& element :
       {kVariants, ElementType{.value = ValueType::none, .object = &List::kType}}) {
    Ref<List> outer = list_of(element, 1);
    if (element.is_variant()) {
      ASSERT_TRUE(outer->set_ref(0, make<Thing>(&alive)));
    }
    for (int i = 0; i < 100000; ++i) {
      Ref<List> next = List::create(element);
      ASSERT_TRUE(next->resize(1, kLimit));
      ASSERT_TRUE(next->set_ref(0, std::move(outer)));
      outer = std::move(next);
    }
    outer = nullptr;
    EXPECT_EQ(alive, 0);
  }
}

// A list with another reference outlives the list that contains it.
TEST(List, SharedInnerListsStay) {
  int alive = 0;
  Ref<List> inner = list_of(kThings, 1);
  ASSERT_TRUE(inner->set_ref(0, make<Thing>(&alive)));
  Ref<List> outer = list_of(kVariants, 2);
  ASSERT_TRUE(outer->set_ref(0, inner));
  ASSERT_TRUE(outer->set_ref(1, inner));
  outer = nullptr;
  EXPECT_TRUE(inner->unique());
  EXPECT_EQ(alive, 1);
}

TEST(List, NestingIsLimited) {
  // Three levels of variant lists; each inner list twice in the next.
  const Ref<List> inner = list_of(kVariants, 3);
  const Ref<List> middle = list_of({.value = ValueType::none, .object = &List::kType}, 2);
  const Ref<List> outer = list_of(kVariants, 4);
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(middle->set_ref(i, inner));
    ASSERT_TRUE(outer->set_ref(i + 1, middle));
  }
  ASSERT_TRUE(outer->set(3, i32(7)));
  EXPECT_OK(inner->check_nesting(1, 3));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "nested at most 0 deep", inner->check_nesting(0, 3));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "more than 2 elements", inner->check_nesting(1, 2));
  constexpr uint64_t kElements = 4 + 2 * (2 + 2 * 3);  // once for each path
  EXPECT_OK(outer->check_nesting(3, kElements));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "nested at most 2 deep", outer->check_nesting(2, kElements));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, fmt::format("more than {} elements", kElements - 1),
               outer->check_nesting(3, kElements - 1));

  // Numbers are elements, but are not looked at.
  const Ref<List> numbers = list_of({.value = ValueType::i32}, 5);
  EXPECT_OK(numbers->check_nesting(1, 5));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "more than 4 elements", numbers->check_nesting(1, 4));

  // Within itself: no limit is large enough.
  ASSERT_TRUE(outer->set_ref(0, outer));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "or a list that contains itself", outer->check_nesting(100, UINT64_MAX));
  ASSERT_TRUE(outer->set_ref(0, nullptr));
  EXPECT_OK(outer->check_nesting(3, kElements));
}

// ---- instructions

TEST(ListInstructions, GetSetSizeResize) {
  Machine machine(R"(
vm.module @m
vm.func @f(%i0: i32, %i1: i32) -> (i32, i32) {
  %r0 = vm.list.alloc %i0 : !vm.list<i32>
  vm.list.reserve %r0, %i0
  %i2 = vm.list.size %r0
  vm.list.resize %r0, %i0
  vm.list.set.i32 %r0, %i1, %i0
  %i3 = vm.list.get.i32 %r0, %i1
  vm.return %i2, %i3
}
vm.func @bytes(%i0: i32) -> (i32, i64, f32) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %r0 = vm.list.alloc %i1 : !vm.list<i8>
  vm.list.resize %r0, %i1
  vm.list.set.i32 %r0, %i2, %i0
  %i3 = vm.list.get.i32 %r0, %i2
  %i4:5 = vm.list.get.i64 %r0, %i2
  %i6 = vm.list.get.f32 %r0, %i2
  vm.return %i3, %i4:5, %i6
}
vm.func @mixed(%i0:1: i64, %i2:3: f64, %i4: f32) -> (i64, f32, f64, i32) {
  %i5 = vm.const.i32 4
  %r0 = vm.list.alloc %i5 : !vm.list<!vm.opaque>
  vm.list.resize %r0, %i5
  %i5 = vm.const.i32.zero
  %i6 = vm.const.i32 1
  %i7 = vm.const.i32 2
  vm.list.set.i64 %r0, %i5, %i0:1
  vm.list.set.f64 %r0, %i6, %i2:3
  vm.list.set.f32 %r0, %i7, %i4
  %i8:9 = vm.list.get.i64 %r0, %i5
  %i10 = vm.list.get.f32 %r0, %i6
  %i12:13 = vm.list.get.f64 %r0, %i7
  %i14 = vm.list.get.i32 %r0, %i7
  vm.return %i8:9, %i10, %i12:13, %i14
}
)");
  machine.expect("f", {i32(5), i32(4)}, {i32(0), i32(5)});
  machine.expect_failure("f", {i32(5), i32(5)}, Code::OUT_OF_RANGE);
  machine.expect_failure("f", {i32(5), i32(-1)}, Code::OUT_OF_RANGE);
  machine.expect_failure("f", {i32(-1), i32(0)}, Code::RESOURCE_EXHAUSTED);
  machine.expect("bytes", {i32(-200)}, {i32(56), i64(56), f32(0)});
  machine.expect("bytes", {i32(-1)}, {i32(-1), i64(-1), f32(0)});
  machine.expect("mixed", {i64(-5), f64(0.1), f32(1.5)}, {i64(-5), f32(0.1f), f64(1.5), i32(0)});
}

// Bytecode 15 does not convert between floats.
TEST(ListInstructions, FloatsOfBytecode15) {
  const std::string text = R"(
vm.module @m
vm.func @f(%i0:1: f64) -> (f32, f64) {
  %i2 = vm.const.i32 1
  %i3 = vm.const.i32.zero
  %r0 = vm.list.alloc %i2 : !vm.list<!vm.opaque>
  vm.list.resize %r0, %i2
  vm.list.set.f64 %r0, %i3, %i0:1
  %i4 = vm.list.get.f32 %r0, %i3
  %i6:7 = vm.list.get.f64 %r0, %i3
  vm.return %i4, %i6:7
}
)";
  for (const uint32_t version : {15u, 16u, 17u}) {
    Machine machine(text, version);
    machine.expect("f", {f64(2.5)}, {f32(version == 15 ? 0 : 2.5f), f64(2.5)});
  }
}

class ListRefs : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Bytecode, ListRefs, testing::Values(15, 16, 17));

TEST_P(ListRefs, SetMovesTheRegisterAndGetTheElement) {
  const bool honours_moves = GetParam() >= 16;
  Machine machine;
  std::string text = R"(
vm.module @m
vm.type !test.thing
vm.type !vm.buffer
vm.func @set(%r0: !test.thing) -> (i32, i32) {
  %i0 = vm.const.i32 1
  %i1 = vm.const.i32.zero
  %r1 = vm.list.alloc %i0 : !vm.list<ELEMENT>
  vm.list.resize %r1, %i0
  vm.list.set.ref %r1, %i1, %R0
  %i2 = vm.cmp.nz.ref %r0
  %r2 = vm.list.get.ref %r1, %i1 : !test.thing
  %i3 = vm.cmp.nz.ref %r2
  vm.return %i2, %i3
}
vm.func @get(%r0: !vm.list) -> (!test.thing, !test.thing) {
  %i0 = vm.const.i32.zero
  %R1 = vm.list.get.ref %r0, %i0 : !test.thing
  %r2 = vm.list.get.ref %r0, %i0 : !test.thing
  vm.return %R1, %R2
}
vm.func @wrong_type(%r0: !vm.list) -> (!vm.buffer, i32) {
  %i0 = vm.const.i32.zero
  %R1 = vm.list.get.ref %r0, %i0 : !vm.buffer
  %r2 = vm.list.get.ref %r0, %i0 : !test.thing
  %i1 = vm.cmp.nz.ref %r2
  vm.return %R1, %i1
}
)";
  for (const std::string element : {"!test.thing", "!vm.opaque"}) {
    std::string with_element = text;
    with_element.replace(with_element.find("ELEMENT"), 7, element);
    with_element.replace(with_element.find("@m"), 2, element == "!vm.opaque" ? "@variants" : "@refs");
    machine.add(with_element, GetParam());
    machine.expect("set", {machine.thing()}, {i32(!honours_moves), i32(1)});
    EXPECT_EQ(machine.alive, 0);

    Ref<List> list = list_of(element == "!vm.opaque" ? kVariants : kThings, 1);
    const Variant thing = machine.thing();
    ASSERT_TRUE(list->set(0, thing));
    machine.expect("get", {Variant::ref(list)}, {thing, honours_moves ? null() : thing});
    EXPECT_EQ(*list->get_ref(0), honours_moves ? nullptr : thing.object());
    ASSERT_TRUE(list->set(0, thing));
    // Another type gives null; with MOVE, the element is removed anyway.
    machine.expect("wrong_type", {Variant::ref(list)}, {null(), i32(!honours_moves)});
  }
}

TEST(ListInstructions, WrongOperands) {
  Machine machine(R"(
vm.module @m
vm.type !vm.buffer
vm.type i32
vm.rodata[0] = 00
vm.func @size(%r0: !vm.list) -> (i32) {
  %i0 = vm.list.size %r0
  vm.return %i0
}
vm.func @size_of_buffer() -> (i32) {
  %r0 = vm.const.ref.rodata 0
  %i0 = vm.list.size %r0
  vm.return %i0
}
vm.func @get_value(%r0: !vm.list) -> (i32) {
  %i1 = vm.list.get.i32 %r0, %i0
  vm.return %i1
}
vm.func @set_value(%r0: !vm.list) -> () {
  vm.list.set.i32 %r0, %i0, %i0
  vm.return
}
vm.func @get_ref(%r0: !vm.list) -> (!vm.buffer) {
  %r1 = vm.list.get.ref %r0, %i0 : !vm.buffer
  vm.return %R1
}
vm.func @get_ref_as_value(%r0: !vm.list) -> (!vm.buffer) {
  %r1 = vm.list.get.ref %r0, %i0 : i32
  vm.return %R1
}
vm.func @set_ref(%r0: !vm.list, %r1: !vm.buffer) -> () {
  vm.list.set.ref %r0, %i0, %r1
  vm.return
}
)");
  const Variant values = Variant::ref(list_of({.value = ValueType::i32}, 1));
  const Variant refs = Variant::ref(list_of(kThings, 1));
  const Variant variants = Variant::ref(list_of(kVariants, 1));
  machine.expect("size", {values}, {i32(1)});
  machine.expect_failure("size", {null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("size_of_buffer", {}, Code::INVALID_ARGUMENT);
  machine.expect_failure("get_value", {refs}, Code::FAILED_PRECONDITION);
  machine.expect_failure("get_value", {variants}, Code::FAILED_PRECONDITION);
  machine.expect_failure("get_value", {null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("get_ref", {null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("set_value", {null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("set_ref", {null(), null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("set_value", {refs}, Code::FAILED_PRECONDITION);
  machine.expect_failure("get_ref", {values}, Code::FAILED_PRECONDITION);
  machine.expect("get_ref", {variants}, {null()});
  machine.expect_failure("set_ref", {values, null()}, Code::FAILED_PRECONDITION);
  machine.expect("set_ref", {refs, null()}, {});
  const Variant buffer = Variant::ref(*Buffer::allocate(1, 0, 1));
  machine.expect_failure("set_ref", {refs, buffer}, Code::INVALID_ARGUMENT);
  machine.expect("set_ref", {variants, buffer}, {});
  machine.expect("get_ref", {variants}, {buffer});
  machine.expect("get_ref_as_value", {variants}, {null()});  // no ref has a value type
}

// ---- memory limits

const ElementType kNumbers = {.value = ValueType::i32};
constexpr uint64_t kHeader = block_bytes(sizeof(List));

TEST(ListCharge, HeaderAndRoom) {
  const auto budget = make<Budget>(1 << 20);
  {
    const Ref<List> list = List::allocate(kNumbers, 0, kLimit, budget.get()).value();
    EXPECT_EQ(budget->used(), kHeader);
    ASSERT_TRUE(list->reserve(10, kLimit));
    EXPECT_EQ(budget->used(), kHeader + block_bytes(40));
    ASSERT_TRUE(list->resize(11, kLimit));  // doubles
    EXPECT_EQ(budget->used(), kHeader + block_bytes(80));
    ASSERT_TRUE(list->resize(0, kLimit));
    EXPECT_EQ(budget->used(), kHeader + block_bytes(80));
    const Ref<List> variants = List::allocate(kVariants, 3, kLimit, budget.get()).value();
    const Ref<List> things = List::allocate(kThings, 3, kLimit, budget.get()).value();
    EXPECT_EQ(budget->used(), 3 * kHeader + block_bytes(80) + block_bytes(3 * sizeof(Variant)) +
                                  block_bytes(3 * sizeof(void*)));
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(ListCharge, ElementsTakeTheirWidth) {
  for (const auto& [type, bytes] : {std::pair<ValueType, uint64_t>{ValueType::i8, 1},
                                    {ValueType::i16, 2},
                                    {ValueType::i32, 4},
                                    {ValueType::i64, 8},
                                    {ValueType::f32, 4},
                                    {ValueType::f64, 8}}) {
    const auto budget = make<Budget>(1 << 20);
    const Ref<List> list = List::allocate({.value = type}, 1000, kLimit, budget.get()).value();
    EXPECT_EQ(budget->used(), kHeader + block_bytes(1000 * bytes)) << static_cast<int>(type);
    EXPECT_OK(list->charge_to(budget.get()));  // once is enough
    EXPECT_EQ(budget->used(), kHeader + block_bytes(1000 * bytes));
  }
}

TEST(ListCharge, WhatDoesNotFitChangesNothing) {
  const auto budget = make<Budget>(kHeader + block_bytes(400));
  const Ref<List> list = List::allocate(kNumbers, 10, kLimit, budget.get()).value();
  ASSERT_TRUE(list->resize(3, kLimit));
  // The old and the new block together are too large.
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "", list->resize(100, kLimit));
  EXPECT_EQ(list->size(), 3u);
  EXPECT_EQ(budget->used(), kHeader + block_bytes(40));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "", List::allocate(kNumbers, 100, kLimit, budget.get()));
  EXPECT_EQ(budget->used(), kHeader + block_bytes(40));
}

// Lists of the embedder and of native modules are not charged until a program grows them.
TEST(ListCharge, AListOfTheHostIsTheProgramsOnceItGrowsIt) {
  Limits limits;
  const auto budget = make<Budget>(1 << 20);
  limits.memory = budget;
  Machine machine(limits);
  machine.add(R"(
vm.module @m
vm.type !vm.list<!vm.opaque>
vm.func @grow(%r0: !vm.list<!vm.opaque>, %i0: i32) -> () {
  vm.list.resize %r0, %i0
  vm.return
}
)");
  {
    const Ref<List> list = list_of(kVariants, 100);
    const uint64_t before = budget->used();
    const Variant argument = Variant::ref(list);
    machine.expect_failure("grow", {argument, i32(1 << 20)}, Code::RESOURCE_EXHAUSTED);
    EXPECT_EQ(budget->used(), before + kHeader + block_bytes(100 * sizeof(Variant)));
    machine.expect("grow", {argument, i32(150)}, {});
    EXPECT_EQ(budget->used(), before + kHeader + block_bytes(200 * sizeof(Variant)));
  }
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace halyard::vm::test
