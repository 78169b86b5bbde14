// Buffers: the object, and the instructions on it. Specified by isa.md, 5.6.
#include "vm/object/buffer.h"

#include <numeric>

#include "machine_testing.h"
#include "vm/object/siphash.h"

namespace halyard::vm::test {
namespace {

TEST(Buffer, AllocationIsZeroAlignedAndMutable) {
  for (const uint32_t alignment : {0u, 1u, 16u, 64u, 4096u, 65536u}) {
    const auto buffer = ASSERT_VALUE(Buffer::allocate(1000, alignment, 1000));
    EXPECT_EQ(buffer->length(), 1000u);
    EXPECT_TRUE(buffer->is_mutable());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % std::max(alignment, 16u), 0u) << alignment;
    EXPECT_EQ(std::accumulate(buffer->data(), buffer->data() + 1000, 0), 0);
    std::memset(buffer->data(), 1, 1000);
  }
}

TEST(Buffer, AllocationIsChecked) {
  EXPECT_EQ(Buffer::allocate(16, 3, 1000).error().code(), Code::INVALID_ARGUMENT);
  EXPECT_EQ(Buffer::allocate(16, 0xFFFFFFFF, 1000).error().code(), Code::INVALID_ARGUMENT);
  EXPECT_EQ(Buffer::allocate(1001, 0, 1000).error().code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Buffer::allocate(UINT64_MAX, 0, UINT64_MAX).error().code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Buffer::allocate(UINT64_MAX, 4096, UINT64_MAX).error().code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ((*Buffer::allocate(0, 0, 0))->length(), 0u);
  // The bytes for alignment count too.
  EXPECT_EQ(Buffer::allocate(1, 1u << 31, 1 << 20).error().code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ((*Buffer::allocate(1, 1u << 20, 1 << 20))->length(), 1u);
  EXPECT_EQ((*Buffer::allocate(1, 65536, 1))->length(), 1u);
  EXPECT_EQ(Buffer::allocate(1, 131072, 1).error().code(), Code::RESOURCE_EXHAUSTED);
}

TEST(Buffer, WrapReleasesAtTheEnd) {
  int released = 0;
  uint8_t bytes[4] = {1, 2, 3, 4};
  {
    Ref<Buffer> buffer = Buffer::wrap(bytes, true, [&] { ++released; });
    Ref<Buffer> constant = Buffer::wrap_const(bytes, [&] { ++released; });
    EXPECT_EQ(buffer->data(), bytes);
    EXPECT_FALSE(constant->is_mutable());
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 2);
}

// Work of a device may write only to constants whose memory no other code has or relies on.
TEST(Buffer, ConstantsAreWrittenByDevicesOrReliedOnButNotBoth) {
  uint8_t bytes[4] = {1, 2, 3, 4};
  const Ref<Buffer> own = Buffer::wrap(bytes, true, {});
  EXPECT_TRUE(own->may_be_written_by_devices());
  EXPECT_FALSE(own->never_changes());
  const Ref<Buffer> view = Buffer::wrap(bytes, false, {});
  EXPECT_FALSE(view->may_be_written_by_devices());
  EXPECT_FALSE(view->never_changes());
  const Ref<Buffer> somebodys = Buffer::wrap_const(bytes, {});
  EXPECT_FALSE(somebodys->may_be_written_by_devices());
  EXPECT_TRUE(somebodys->never_changes());
  const Ref<Buffer> written = Buffer::wrap_const(bytes, {}, true);
  EXPECT_TRUE(written->may_be_written_by_devices());
  EXPECT_FALSE(written->never_changes());
  EXPECT_TRUE(written->may_be_written_by_devices());
  const Ref<Buffer> code = Buffer::wrap_const(bytes, {}, true);
  EXPECT_TRUE(code->never_changes());
  EXPECT_FALSE(code->may_be_written_by_devices());
  EXPECT_TRUE(code->never_changes());
}

TEST(SipHash, CheckValues) {
  uint8_t bytes[16];
  std::iota(bytes, bytes + 16, uint8_t{0});
  const auto hash = [&](size_t offset, size_t length) {
    return static_cast<int64_t>(siphash(std::span<const uint8_t>(bytes).subspan(offset, length)));
  };
  EXPECT_EQ(hash(0, 16), 4551675220716592091);
  EXPECT_EQ(hash(0, 0), 8246050544436514353);
  EXPECT_EQ(hash(0, 5), 1762690195596617357);
  EXPECT_EQ(hash(3, 9), -8273416233546210147);
}

// ---- instructions

constexpr int64_t kHuge[] = {
    -1, -2, INT64_MIN, INT64_MAX, int64_t{1} << 61, int64_t{1} << 62, (int64_t{1} << 61) - 1};

Variant buffer_of(std::initializer_list<uint8_t> bytes, bool is_mutable = true) {
  Ref<Buffer> buffer = *Buffer::allocate(bytes.size(), 0, bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer->data());
  if (!is_mutable) buffer->rebind(buffer->span(), false);
  return Variant::ref(buffer);
}

std::vector<uint8_t> bytes_of(const Variant& variant) {
  const auto span = cast<Buffer>(variant.object())->span();
  return {span.begin(), span.end()};
}

struct Access {
  const char* suffix;  // of load
  const char* store;   // suffix of store and fill
  const char* type;    // of the register
  uint64_t width;
  Variant second;  // element 1 of 80 81 82 ... 8F
};

const Access kAccesses[] = {
    {"i8.u", "i8", "i32", 1, i32(0x81)},
    {"i8.s", "i8", "i32", 1, i32(-127)},
    {"i16.u", "i16", "i32", 2, i32(0x8382)},
    {"i16.s", "i16", "i32", 2, i32(0x8382 - 0x10000)},
    {"i32", "i32", "i32", 4, i32(0x87868584)},
    {"i64", "i64", "i64", 8, i64(static_cast<int64_t>(0x8F8E8D8C8B8A8988))},
    {"f32", "f32", "f32", 4, Variant::value(ValueType::f32, 0x87868584)},
    {"f64", "f64", "f64", 8, Variant::value(ValueType::f64, 0x8F8E8D8C8B8A8988)},
};

Variant sixteen(bool is_mutable = true) {
  return buffer_of(
      {0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F},
      is_mutable);
}

// load(offset, buffer), store(value, offset, buffer) and fill(value, offset, length, buffer) for one width.
std::string access_module(const Access& access) {
  const bool wide = access.width == 8;
  return fmt::format(R"(
vm.module @m
vm.func @load(%i0:1: i64, %r0: !vm.buffer) -> ({1}) {{
  {2} = vm.buffer.load.{0} %r0, %i0:1
  vm.return {2}
}}
vm.func @store(%i0:1: i64, %r0: !vm.buffer, {2}: {1}) -> () {{
  vm.buffer.store.{3} {2}, %r0, %i0:1
  vm.return
}}
vm.func @fill(%i0:1: i64, %i2:3: i64, {4}: {1}, %r0: !vm.buffer) -> () {{
  vm.buffer.fill.{3} %r0, %i0:1, %i2:3, {4}
  vm.return
}}
)",
                     access.suffix, access.type, wide ? "%i2:3" : "%i2", access.store,
                     wide ? "%i4:5" : "%i4");
}

TEST(BufferInstructions, LoadStoreFillOfEveryWidth) {
  for (const Access& access : kAccesses) {
    SCOPED_TRACE(access.suffix);
    Machine machine(access_module(access));
    const int64_t count = static_cast<int64_t>(16 / access.width);
    const Variant original = sixteen();
    machine.expect("load", {i64(1), original}, {access.second});
    machine.expect("load", {i64(1), sixteen(false)}, {access.second});
    // Stores element 1 at the last position, and nowhere else.
    const Variant changed = sixteen();
    machine.expect("store", {i64(count - 1), changed, access.second}, {});
    std::vector<uint8_t> expected = bytes_of(original);
    const auto width = static_cast<ptrdiff_t>(access.width);
    std::copy_n(expected.begin() + width, width, expected.end() - width);
    EXPECT_EQ(bytes_of(changed), expected);
    // Fills the first two elements with element 1.
    const Variant filled = sixteen();
    machine.expect("fill", {i64(0), i64(2), access.second, filled}, {});
    expected = bytes_of(original);
    std::copy_n(expected.begin() + width, width, expected.begin());
    EXPECT_EQ(bytes_of(filled), expected);
    machine.expect("fill", {i64(count), i64(0), access.second, filled}, {});  // an empty fill at the end
    EXPECT_EQ(bytes_of(filled), expected);

    std::vector<int64_t> outside(std::begin(kHuge), std::end(kHuge));
    outside.push_back(count);
    // Offsets that wrap to 0 in an unchecked multiplication.
    if (access.width > 1) outside.push_back(static_cast<int64_t>(UINT64_MAX / access.width + 1));
    for (const int64_t offset : outside) {
      machine.expect_failure("load", {i64(offset), original}, Code::OUT_OF_RANGE);
      machine.expect_failure("store", {i64(offset), original, access.second}, Code::OUT_OF_RANGE);
      machine.expect_failure("fill", {i64(offset), i64(1), access.second, original}, Code::OUT_OF_RANGE);
      if (offset != count) {
        machine.expect_failure("fill", {i64(0), i64(offset), access.second, original}, Code::OUT_OF_RANGE);
        machine.expect_failure("fill", {i64(1), i64(offset), access.second, original}, Code::OUT_OF_RANGE);
      }
    }
    EXPECT_EQ(bytes_of(original), bytes_of(sixteen()));
    // Null and other objects are checked first, then access, then the range.
    for (const Variant& wrong : {null(), machine.thing()}) {
      machine.expect_failure("load", {i64(99), wrong}, Code::INVALID_ARGUMENT);
      machine.expect_failure("store", {i64(99), wrong, access.second}, Code::INVALID_ARGUMENT);
      machine.expect_failure("fill", {i64(99), i64(0), access.second, wrong}, Code::INVALID_ARGUMENT);
    }
    machine.expect_failure("store", {i64(99), sixteen(false), access.second}, Code::PERMISSION_DENIED);
    machine.expect_failure("fill", {i64(99), i64(0), access.second, sixteen(false)}, Code::PERMISSION_DENIED);
  }
}

// A buffer of 7 bytes has three elements of two bytes.
TEST(BufferInstructions, APartialElementIsNone) {
  Machine machine(access_module(kAccesses[2]));
  const Variant seven = buffer_of({1, 0, 2, 0, 3, 0, 4});
  machine.expect("load", {i64(2), seven}, {i32(3)});
  machine.expect_failure("load", {i64(3), seven}, Code::OUT_OF_RANGE);
}

const char* const kBytes = R"(
vm.module @m
vm.func @alloc(%i0:1: i64, %i2: i32) -> (!vm.buffer) {
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.return %R0
}
vm.func @clone(%i0:1: i64, %i2:3: i64, %i4: i32, %r0: !vm.buffer) -> (!vm.buffer) {
  %r0 = vm.buffer.clone %r0, %i0:1, %i2:3, %i4
  vm.return %R0
}
vm.func @length(%r0: !vm.buffer) -> (i64) {
  %i0:1 = vm.buffer.length %r0
  vm.return %i0:1
}
vm.func @copy(%i0:1: i64, %i2:3: i64, %i4:5: i64, %r0: !vm.buffer, %r1: !vm.buffer) -> () {
  vm.buffer.copy %r0, %i0:1, %r1, %i2:3, %i4:5
  vm.return
}
vm.func @compare(%i0:1: i64, %i2:3: i64, %i4:5: i64, %r0: !vm.buffer, %r1: !vm.buffer) -> (i32) {
  %i6 = vm.buffer.compare %r0, %i0:1, %r1, %i2:3, %i4:5
  vm.return %i6
}
vm.func @hash(%i0:1: i64, %i2:3: i64, %r0: !vm.buffer) -> (i64) {
  %i4:5 = vm.buffer.hash %r0, %i0:1, %i2:3
  vm.return %i4:5
}
)";

TEST(BufferInstructions, AllocAndClone) {
  Machine machine(Limits{.buffer_bytes = 1 << 20});
  machine.add(kBytes);
  Result<Values> made = machine.call("alloc", {i64(24), i32(64)});
  ASSERT_TRUE(made);
  EXPECT_EQ(bytes_of((*made)[0]), std::vector<uint8_t>(24));
  EXPECT_TRUE(cast<Buffer>((*made)[0].object())->is_mutable());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(cast<Buffer>((*made)[0].object())->data()) % 64, 0u);
  machine.expect("length", *made, {i64(24)});
  made = machine.call("alloc", {i64(0), i32(0)});
  ASSERT_TRUE(made);
  machine.expect("length", *made, {i64(0)});
  machine.expect_failure("alloc", {i64(8), i32(24)}, Code::INVALID_ARGUMENT);
  machine.expect_failure("alloc", {i64(8), i32(-1)}, Code::INVALID_ARGUMENT);
  for (const int64_t length : kHuge)
    machine.expect_failure("alloc", {i64(length), i32(0)}, Code::RESOURCE_EXHAUSTED);

  made = machine.call("clone", {i64(1), i64(3), i32(0), sixteen(false)});
  ASSERT_TRUE(made);
  EXPECT_EQ(bytes_of((*made)[0]), (std::vector<uint8_t>{0x81, 0x82, 0x83}));
  EXPECT_TRUE(cast<Buffer>((*made)[0].object())->is_mutable());
  machine.expect_failure("clone", {i64(14), i64(3), i32(3), sixteen()},
                         Code::OUT_OF_RANGE);  // checked before the alignment
  machine.expect_failure("clone", {i64(14), i64(2), i32(3), sixteen()}, Code::INVALID_ARGUMENT);
  for (const int64_t huge : kHuge) {
    machine.expect_failure("clone", {i64(huge), i64(2), i32(0), sixteen()}, Code::OUT_OF_RANGE);
    machine.expect_failure("clone", {i64(1), i64(huge), i32(0), sixteen()}, Code::OUT_OF_RANGE);
  }
  machine.expect_failure("clone", {i64(0), i64(0), i32(0), null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("length", {null()}, Code::INVALID_ARGUMENT);
}

TEST(BufferInstructions, CopyAlsoWithinOneBuffer) {
  Machine machine(kBytes);
  const Variant target = buffer_of({1, 2, 3, 4, 5, 6});
  machine.expect("copy", {i64(0), i64(1), i64(4), target, target}, {});
  EXPECT_EQ(bytes_of(target), (std::vector<uint8_t>{1, 1, 2, 3, 4, 6}));
  machine.expect("copy", {i64(1), i64(0), i64(5), target, target}, {});
  EXPECT_EQ(bytes_of(target), (std::vector<uint8_t>{1, 2, 3, 4, 6, 6}));
  machine.expect("copy", {i64(14), i64(0), i64(2), sixteen(false), target}, {});
  EXPECT_EQ(bytes_of(target), (std::vector<uint8_t>{0x8E, 0x8F, 3, 4, 6, 6}));
  machine.expect("copy", {i64(16), i64(6), i64(0), sixteen(), target}, {});
  // The order of the checks: nulls, source range, access, target range.
  machine.expect_failure("copy", {i64(17), i64(0), i64(0), sixteen(), null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("copy", {i64(17), i64(0), i64(0), null(), target}, Code::INVALID_ARGUMENT);
  machine.expect_failure("copy", {i64(17), i64(0), i64(0), sixteen(), sixteen(false)}, Code::OUT_OF_RANGE);
  machine.expect_failure("copy", {i64(0), i64(99), i64(1), sixteen(), sixteen(false)},
                         Code::PERMISSION_DENIED);
  machine.expect_failure("copy", {i64(0), i64(4), i64(3), sixteen(), target}, Code::OUT_OF_RANGE);
  for (const int64_t huge : kHuge) {
    machine.expect_failure("copy", {i64(huge), i64(0), i64(1), sixteen(), target}, Code::OUT_OF_RANGE);
    machine.expect_failure("copy", {i64(0), i64(huge), i64(1), sixteen(), target}, Code::OUT_OF_RANGE);
    machine.expect_failure("copy", {i64(1), i64(1), i64(huge), sixteen(), target}, Code::OUT_OF_RANGE);
  }
}

TEST(BufferInstructions, Compare) {
  Machine machine(kBytes);
  const Variant lhs = buffer_of({1, 2, 3, 4});
  const Variant rhs = buffer_of({9, 2, 3, 5});
  machine.expect("compare", {i64(1), i64(1), i64(2), lhs, rhs}, {i32(1)});
  machine.expect("compare", {i64(1), i64(1), i64(3), lhs, rhs}, {i32(0)});
  machine.expect("compare", {i64(4), i64(4), i64(0), lhs, rhs}, {i32(1)});
  machine.expect_failure("compare", {i64(5), i64(0), i64(0), lhs, rhs}, Code::OUT_OF_RANGE);
  machine.expect_failure("compare", {i64(0), i64(3), i64(2), lhs, rhs}, Code::OUT_OF_RANGE);
  machine.expect_failure("compare", {i64(5), i64(0), i64(0), lhs, null()}, Code::INVALID_ARGUMENT);
  machine.expect_failure("compare", {i64(0), i64(0), i64(-1), lhs, rhs}, Code::OUT_OF_RANGE);
}

TEST(BufferInstructions, Hash) {
  Machine machine(kBytes);
  const Variant bytes = buffer_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  machine.expect("hash", {i64(0), i64(16), bytes}, {i64(4551675220716592091)});
  machine.expect("hash", {i64(16), i64(0), bytes}, {i64(8246050544436514353)});
  machine.expect("hash", {i64(3), i64(9), bytes}, {i64(-8273416233546210147)});
  machine.expect_failure("hash", {i64(-1), i64(1), bytes}, Code::OUT_OF_RANGE);
  machine.expect_failure("hash", {i64(8), i64(9), bytes}, Code::OUT_OF_RANGE);
  machine.expect_failure("hash", {i64(0), i64(0), null()}, Code::INVALID_ARGUMENT);
}

TEST(BufferInstructions, ConstantsAreOneReadOnlyObject) {
  Machine machine(R"(
vm.module @m
vm.rodata[0] = 4142
vm.rodata[1] = 4142
vm.func @same() -> (i32, i32, !vm.buffer) {
  %r0 = vm.const.ref.rodata 0
  %r1 = vm.const.ref.rodata 0
  %r2 = vm.const.ref.rodata 1
  %i0 = vm.cmp.eq.ref %r0, %r1
  %i1 = vm.cmp.eq.ref %r0, %r2
  vm.return %i0, %i1, %R2
}
vm.func @write() -> () {
  %r0 = vm.const.ref.rodata 0
  vm.buffer.store.i8 %i2, %r0, %i0:1
  vm.return
}
)");
  auto result = ASSERT_VALUE(machine.call("same"));
  EXPECT_EQ(result[0].as_i32(), 1);
  EXPECT_EQ(result[1].as_i32(), 0);
  machine.expect_failure("write", {}, Code::PERMISSION_DENIED);
  // A constant outlives its module.
  machine.context = nullptr;
  EXPECT_EQ(bytes_of(result[2]), (std::vector<uint8_t>{0x41, 0x42}));
}

}  // namespace
}  // namespace halyard::vm::test
