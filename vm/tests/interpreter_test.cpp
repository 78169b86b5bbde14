// Control flow, edges, globals, refs and ownership. Specified by isa.md, sections 2.3 to 3 and 5.3 to 5.10.
#include "machine_testing.h"
#include "module_builder.h"

namespace halyard::vm::test {
namespace {

// The rest of a file after the module header.
std::string module_text(const std::string& rest) { return "vm.module @m\n" + rest; }

// A module with one exported function f.
std::string function(const std::string& signature, const std::string& body, const std::string& before = "") {
  return module_text(before + "vm.export @f\nvm.func @f" + signature + " {\n" + body + "}\n");
}

TEST(Branches, MovesOfAnEdgeAreSequential) {
  Machine machine(function("(%i0: i32, %i1: i32) -> (i32, i32)", R"(
    vm.br ^bb1(%i0 -> %i1, %i1 -> %i0)
  ^bb1:
    vm.return %i0, %i1
  )"));
  machine.expect("f", {i32(1), i32(2)}, {i32(1), i32(1)});
}

// Pairs that move as one keep the order of the other moves, even if they overlap with earlier or later ones.
TEST(Branches, PairsMoveAsTheirHalvesWould) {
  Machine machine(function("(%i0:1: i64, %i2:3: i64) -> (i64, i64, i64, i32)", R"(
    vm.br ^bb1(%i0 -> %i2, %i1 -> %i3, %i3 -> %i5, %i2 -> %i4, %i4 -> %i9, %i5 -> %i6, %i6 -> %i8, %i7 -> %i9)
  ^bb1:
    vm.return %i2:3, %i4:5, %i8:9, %i6
  )"));
  machine.expect("f", {i64(0x100000002), i64(5)}, {i64(0x100000002), i64(0x100000002), i64(1), i32(1)});
}

// (1, 2) -> (2, 3) is adjacent like a pair, but starts at an odd register.
TEST(Branches, OddNeighboursDoNotMoveTogether) {
  Machine machine(function("(%i0: i32, %i1: i32, %i2: i32) -> (i32, i32, i32)", R"(
    vm.br ^bb1(%i0 -> %i1, %i1 -> %i2)
  ^bb1:
    vm.return %i0, %i1, %i2
  )"));
  machine.expect("f", {i32(1), i32(2), i32(3)}, {i32(1), i32(1), i32(1)});
}

TEST(Branches, RegistersThatAnEdgeDoesNotNameKeepTheirValues) {
  Machine machine(function("(%i0: i32) -> (i32)", R"(
    %i1 = vm.const.i32 10
    vm.cond_br %i0, ^bb1(%i1 -> %i2), ^bb2(%i0 -> %i0)
  ^bb1:
    %i3 = vm.add.i32 %i2, %i0
    vm.return %i3
  ^bb2:
    vm.return %i1
  )"));
  machine.expect("f", {i32(3)}, {i32(13)});
  machine.expect("f", {i32(-1)}, {i32(9)});
  machine.expect("f", {i32(0)}, {i32(10)});
}

TEST(Branches, Loop) {
  Machine machine(function("(%i0: i32) -> (i32)", R"(
    %i1 = vm.const.i32.zero
    %i2 = vm.const.i32 1
    vm.br ^bb1
  ^bb1:
    %i3 = vm.cmp.lt.i32.s %i1, %i0
    vm.cond_br %i3, ^bb2, ^bb3
  ^bb2:
    %i4 = vm.add.i32 %i1, %i2
    %i6 = vm.add.i32 %i5, %i4
    vm.br ^bb1(%i4 -> %i1, %i6 -> %i5)
  ^bb3:
    vm.return %i5
  )"));
  machine.expect("f", {i32(100)}, {i32(5050)});
  machine.expect("f", {i32(0)}, {i32(0)});
}

TEST(Branches, TableTakesSignedIndexAndItsEdges) {
  Machine machine(function("(%i0: i32) -> (i32)", R"(
    %i1 = vm.const.i32 10
    %i2 = vm.const.i32 20
    vm.br_table %i0 { default: ^bb1(%i1 -> %i3), 0: ^bb1(%i2 -> %i3), 1: ^bb2, 2: ^bb1 }
  ^bb1:
    vm.return %i3
  ^bb2:
    vm.return %i2
  )"));
  machine.expect("f", {i32(0)}, {i32(20)});
  machine.expect("f", {i32(1)}, {i32(20)});
  machine.expect("f", {i32(2)}, {i32(0)});
  machine.expect("f", {i32(3)}, {i32(10)});
  machine.expect("f", {i32(-1)}, {i32(10)});
}

TEST(Branches, BreakIsABranchWhateverTheCondition) {
  Machine machine(function("(%i0: i32) -> (i32)", R"(
    vm.cond_break %i0, ^bb1(%i0 -> %i1)
  ^bb1:
    vm.break ^bb3(%i1 -> %i2)
  ^bb2:
    vm.return %i1
  ^bb3:
    vm.return %i2
  )"));
  machine.expect("f", {i32(0)}, {i32(0)});
  machine.expect("f", {i32(7)}, {i32(7)});
}

TEST(Switch, ValuesAndDefault) {
  Machine machine(module_text(R"(
vm.func @s32(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 10
  %i2 = vm.const.i32 20
  %i3 = vm.const.i32 30
  %i0 = vm.switch.i32 %i0[%i1, %i2] else %i3
  vm.return %i0
}
vm.func @s64(%i0: i32) -> (i64) {
  %i2:3 = vm.const.i64 4294967298
  %i4:5 = vm.const.i64 -4294967298
  %i6:7 = vm.switch.i64 %i0[%i2:3] else %i4:5
  vm.return %i6:7
}
vm.func @f64(%i0: i32) -> (f64) {
  %i2:3 = vm.const.f64 1.5
  %i4:5 = vm.const.f64 2.5
  %i6:7 = vm.switch.f64 %i0[%i2:3] else %i4:5
  vm.return %i6:7
}
vm.func @empty(%i0: i32) -> (f32) {
  %i1 = vm.const.f32 2.5
  %i2 = vm.switch.f32 %i0[] else %i1
  vm.return %i2
}
)"));
  machine.expect("s32", {i32(0)}, {i32(10)});
  machine.expect("s32", {i32(1)}, {i32(20)});
  machine.expect("s32", {i32(2)}, {i32(30)});
  machine.expect("s32", {i32(-1)}, {i32(30)});
  // The whole value of a case, not the low half as in the reference (rulings.md, 2).
  machine.expect("s64", {i32(0)}, {i64(4294967298)});
  machine.expect("s64", {i32(1)}, {i64(-4294967298)});
  machine.expect("f64", {i32(0)}, {f64(1.5)});
  machine.expect("f64", {i32(1)}, {f64(2.5)});
  machine.expect("empty", {i32(0)}, {f32(2.5)});
}

// The values of a switch count as read, both halves.
TEST(Switch, AMoveMayBringOneHalfOfAValue) {
  for (const char* type : {"i64", "f64"}) {
    Machine machine(fmt::format(R"(
vm.module @m
vm.global.i64 mutable @g
vm.func @f(%i0: i32, %i1: i32) -> () {{
  vm.br ^bb1(%i1 -> %i3)
^bb1:
  %i4:5 = vm.switch.{0} %i0[%i2:3] else %i6:7
  vm.global.store.i64 %i4:5, @g
  vm.return
}}
vm.func @g() -> (i64) {{
  %i0:1 = vm.global.load.i64 @g
  vm.return %i0:1
}}
)",
                                type));
    machine.expect("f", {i32(0), i32(7)}, {});
    machine.expect("g", {}, {i64(int64_t{7} << 32)});
  }
}

TEST(Constants, BitsAsTheyStand) {
  Machine machine(function("() -> (i32, i64, f32, f64, i32, i64, f32, f64)", R"(
    %i0 = vm.const.i32 -2
    %i2:3 = vm.const.i64 -4294967299
    %i4 = vm.const.f32 0x1.8p1
    %i6:7 = vm.const.f64 -0.0
    %i8 = vm.const.i32 5
    %i8 = vm.const.i32.zero
    %i10:11 = vm.const.i64 -1
    %i10:11 = vm.const.i64.zero
    %i12 = vm.const.f32 5.0
    %i12 = vm.const.f32.zero
    %i14:15 = vm.const.f64 5.0
    %i14:15 = vm.const.f64.zero
    vm.return %i0, %i2:3, %i4, %i6:7, %i8, %i10:11, %i12, %i14:15
  )"));
  machine.expect("f", {}, {i32(-2), i64(-4294967299), f32(3), f64(-0.0), i32(0), i64(0), f32(0), f64(0)});
}

TEST(Registers, HalvesOfAPairAreSlots) {
  Machine machine(function("(%i0: i32, %i1: i32) -> (i64)", "vm.return %i0:1\n"));
  machine.expect("f", {i32(1), i32(2)}, {i64(0x200000001)});
}

TEST(Globals, StoreLoadAndOffsets) {
  Machine machine(module_text(R"(
vm.global.i32 mutable @a
vm.global.f32 mutable @b
vm.global.i64 mutable @c
vm.global.f64 mutable @d
vm.func @round_trip(%i0:1: i64, %i2:3: f64, %i4: i32, %i5: f32) -> (i32, f32, i64, f64) {
  vm.global.store.i32 %i4, @a
  vm.global.store.f32 %i5, @b
  vm.global.store.i64 %i0:1, @c
  vm.global.store.f64 %i2:3, @d
  %i10 = vm.global.load.i32 @a
  %i11 = vm.global.load.f32 @b
  %i12:13 = vm.global.load.i64 @c
  %i14:15 = vm.global.load.f64 @d
  vm.return %i10, %i11, %i12:13, %i14:15
}
vm.func @initial() -> (i32, i64) {
  %i0 = vm.global.load.i32 @a
  %i2:3 = vm.global.load.i64 @c
  vm.return %i0, %i2:3
}
vm.func @indirect(%i0: i32) -> (i32, i64, f32, f64) {
  vm.global.store.indirect.i32 %i0, %i0
  %i1 = vm.global.load.indirect.i32 %i0
  %i2:3 = vm.const.i64 81985529216486895
  vm.global.store.indirect.i64 %i0, %i2:3
  %i4:5 = vm.global.load.indirect.i64 %i0
  %i6 = vm.global.load.indirect.f32 %i0
  vm.global.store.indirect.f32 %i0, %i6
  %i8:9 = vm.global.load.indirect.f64 %i0
  vm.global.store.indirect.f64 %i0, %i8:9
  vm.return %i1, %i4:5, %i6, %i8:9
}
vm.func @unaligned() -> (i64) {
  %i0:1 = vm.const.i64 -2
  vm.global.store.i64 %i0:1, .rwdata[3]
  %i2:3 = vm.global.load.i64 .rwdata[3]
  vm.return %i2:3
}
)"));
  machine.expect("initial", {}, {i32(0), i64(0)});
  machine.expect("round_trip", {i64(-5), f64(2.5), i32(7), f32(1.5)}, {i32(7), f32(1.5), i64(-5), f64(2.5)});
  machine.expect("initial", {}, {i32(7), i64(-5)});
  const uint64_t bits = 81985529216486895;
  const auto low = Variant::value(ValueType::f32, static_cast<uint32_t>(bits));
  for (const int32_t offset : {0, 5, 16}) {
    machine.expect("indirect", {i32(offset)},
                   {i32(offset), i64(bits), low, Variant::value(ValueType::f64, bits)});
  }
  machine.expect("unaligned", {}, {i64(-2)});
  // There are 24 bytes: an i32 fits at 20, an i64 does not.
  for (const int32_t offset : {17, 20, 21, 24, -4, -8}) {
    machine.expect_failure("indirect", {i32(offset)}, Code::OUT_OF_RANGE);
  }
}

// ---- Lifetimes of refs

// A module whose functions use !test.thing; `refs` ref globals.
std::string things(const std::string& rest) {
  return "vm.module @m\nvm.type !test.thing\nvm.type !vm.buffer\n" + rest;
}

class Refs : public testing::TestWithParam<uint32_t> {
 protected:
  void add(const std::string& rest) { machine_.add(things(rest), GetParam()); }
  bool honours_moves() const { return GetParam() >= 16; }
  Machine machine_;
};

INSTANTIATE_TEST_SUITE_P(Bytecode, Refs, testing::Values(15, 16, 17));

TEST_P(Refs, ArgumentsAreBorrowedAndReleasedOnReturn) {
  add("vm.export @f\nvm.func @f(%r0: !test.thing) -> (i32) {\n %i0 = vm.cmp.nz.ref %r0\n vm.return %i0\n}\n");
  {
    const Variant thing = machine_.thing();
    machine_.expect("f", {thing}, {i32(1)});
    EXPECT_TRUE(thing.object()->unique());
  }
  EXPECT_EQ(machine_.alive, 0);
  machine_.expect("f", {null()}, {i32(0)});
}

TEST_P(Refs, ReturnedRefsAreRetainedOrMoved) {
  add(R"(
vm.func @both(%r0: !test.thing) -> (!test.thing, !test.thing) {
  vm.return %r0, %r0
}
vm.func @moved(%r0: !test.thing) -> (!test.thing, !test.thing) {
  vm.return %R0, %R0
}
)");
  const Variant thing = machine_.thing();
  machine_.expect("both", {thing}, {thing, thing});
  machine_.expect("moved", {thing}, {thing, null()});
  EXPECT_TRUE(thing.object()->unique());
}

TEST_P(Refs, EdgesCopyAndMove) {
  add(R"(
vm.func @f(%r0: !test.thing) -> (i32, i32, i32, i32) {
  vm.br ^bb1(%r0 -> %r1, %R0 -> %r2, %R2 -> %r2, %r1 -> %r1)
^bb1:
  %i0 = vm.cmp.nz.ref %r0
  %i1 = vm.cmp.nz.ref %r1
  %i2 = vm.cmp.eq.ref %r1, %r2
  %i3 = vm.cmp.ne.ref %r0, %r2
  vm.return %i0, %i1, %i2, %i3
}
)");
  const Variant thing = machine_.thing();
  machine_.expect("f", {thing}, {i32(0), i32(1), i32(1), i32(1)});
  EXPECT_TRUE(thing.object()->unique());
}

TEST_P(Refs, CompareIsIdentity) {
  add(R"(
vm.func @f(%r0: !test.thing, %r1: !test.thing) -> (i32, i32) {
  %i0 = vm.cmp.eq.ref %r0, %r1
  %i1 = vm.cmp.ne.ref %r0, %r1
  vm.return %i0, %i1
}
)");
  const Variant one = machine_.thing();
  const Variant other = machine_.thing();
  machine_.expect("f", {one, one}, {i32(1), i32(0)});
  machine_.expect("f", {one, other}, {i32(0), i32(1)});
  machine_.expect("f", {one, null()}, {i32(0), i32(1)});
  machine_.expect("f", {null(), null()}, {i32(1), i32(0)});
}

TEST_P(Refs, CastChecksTheTypeAndMovesFromSixteenOn) {
  add(R"(
vm.func @same(%r0: !test.thing) -> (i32, i32) {
  %r1 = vm.cast.any.ref %R0 : !test.thing -> !test.thing
  %i0 = vm.cmp.nz.ref %r0
  %i1 = vm.cmp.nz.ref %r1
  vm.return %i0, %i1
}
vm.func @other(%r0: !test.thing) -> () {
  %r1 = vm.cast.any.ref %R0 : !test.thing -> !vm.buffer
  vm.return
}
vm.func @self(%r0: !test.thing) -> (i32) {
  %r0 = vm.cast.any.ref %R0 : !test.thing -> !test.thing
  %i0 = vm.cmp.nz.ref %r0
  vm.return %i0
}
)");
  const Variant thing = machine_.thing();
  machine_.expect("same", {thing}, {i32(!honours_moves()), i32(1)});
  machine_.expect("self", {thing}, {i32(1)});
  machine_.expect_failure("other", {thing}, Code::INVALID_ARGUMENT);
  machine_.expect("same", {null()}, {i32(0), i32(0)});
  machine_.expect("other", {null()}, {});
  EXPECT_TRUE(thing.object()->unique());
}

TEST_P(Refs, GlobalsHoldTheirRefs) {
  ModuleParts parts;
  parts.bytecode_version = GetParam() << 16;
  parts.types = {"!test.thing", "!vm.buffer", "i32", "!vm.opaque"};
  parts.global_refs = 2;
  const auto code = [] { return CodeBuilder().block(); };
  const auto add_function = [&](const char* name, const char* convention, const CodeBuilder& builder) {
    parts.exports.emplace_back(name, static_cast<int>(parts.functions.size()));
    parts.functions.push_back({builder.bytes(), convention, 4, 4});
  };
  // (thing) -> whether the register is still set
  add_function(
      "store", "0r_i",
      code().op(Op::global_store_ref).u32(1).u32(0).u16(moved(0)).op(Op::cmp_nz_ref, {ref(0), 0}).ret({0}));
  add_function("store_at", "0ri_i",
               code()
                   .op(Op::global_store_indirect_ref)
                   .u16(0)
                   .u32(0)
                   .u16(moved(0))
                   .op(Op::cmp_nz_ref, {ref(0), 1})
                   .ret({1}));
  // () -> the thing
  add_function("load", "0v_r", code().op(Op::global_load_ref).u32(1).u32(0).u16(ref(0)).ret({moved(0)}));
  add_function("take", "0v_r", code().op(Op::global_load_ref).u32(1).u32(0).u16(moved(0)).ret({moved(0)}));
  add_function("load_at", "0i_r",
               code().op(Op::global_load_indirect_ref).u16(0).u32(0).u16(ref(0)).ret({moved(0)}));
  add_function("take_at", "0i_r",
               code().op(Op::global_load_indirect_ref).u16(0).u32(0).u16(moved(0)).ret({moved(0)}));
  // Declared as another type, a value type, and any type.
  add_function("load_as_buffer", "0v_r",
               code().op(Op::global_load_ref).u32(1).u32(1).u16(moved(0)).ret({moved(0)}));
  add_function("load_as_i32", "0v_r",
               code().op(Op::global_load_ref).u32(1).u32(2).u16(ref(0)).ret({moved(0)}));
  add_function("load_as_any", "0v_r",
               code().op(Op::global_load_ref).u32(1).u32(3).u16(ref(0)).ret({moved(0)}));
  add_function("store_as_buffer", "0r_v", code().op(Op::global_store_ref).u32(1).u32(1).u16(moved(0)).ret());
  machine_.add(parts.build());

  const Variant kept = i32(!honours_moves());
  {
    const Variant thing = machine_.thing();
    machine_.expect("store", {thing}, {kept});
    machine_.expect("load", {}, {thing});
    machine_.expect("load_at", {i32(1)}, {thing});
    machine_.expect("load_at", {i32(0)}, {null()});
    for (const char* wrong : {"load_as_buffer", "load_as_i32", "load_as_any"}) {
      machine_.expect_failure(wrong, {}, Code::INVALID_ARGUMENT);
    }
    machine_.expect("take", {}, {thing});
    machine_.expect("load", {}, {honours_moves() ? null() : thing});
    if (honours_moves()) machine_.expect("load_as_any", {}, {null()});  // null has every type
  }
}

TEST_P(Refs, AGlobalReleasesWhatItHeld) {
  add(R"(
vm.func @f(%r0: !test.thing) -> () {
  vm.global.store.ref %r0, .refs[0] : !test.thing
  vm.return
}
)");
  machine_.expect("f", {machine_.thing()}, {});
  EXPECT_EQ(machine_.alive, 1);
  machine_.expect("f", {machine_.thing()}, {});
  EXPECT_EQ(machine_.alive, 1);
  machine_.expect("f", {null()}, {});
  EXPECT_EQ(machine_.alive, 0);
  machine_.expect("f", {machine_.thing()}, {});
  machine_.context = nullptr;
  EXPECT_EQ(machine_.alive, 0);
}

TEST_P(Refs, SelectTakesOneAndReleasesTheOtherIfMarked) {
  add(R"(
vm.func @f(%r0: !test.thing, %r1: !test.thing, %i0: i32) -> (!test.thing, i32, i32) {
  %r2 = vm.select.ref %i0 ? %R0 : %R1 -> !test.thing
  %i1 = vm.cmp.nz.ref %r0
  %i2 = vm.cmp.nz.ref %r1
  vm.return %R2, %i1, %i2
}
vm.func @own(%r0: !test.thing, %r1: !test.thing, %i0: i32) -> (!test.thing, i32) {
  %r1 = vm.select.ref %i0 ? %R0 : %R1 -> !test.thing
  %i1 = vm.cmp.nz.ref %r0
  vm.return %R1, %i1
}
vm.func @wrong(%r0: !test.thing, %r1: !test.thing, %i0: i32) -> () {
  %r2 = vm.select.ref %i0 ? %R0 : %R1 -> !vm.buffer
  vm.return
}
)");
  const Variant a = machine_.thing();
  const Variant b = machine_.thing();
  const Variant kept = i32(!honours_moves());
  machine_.expect("f", {a, b, i32(1)}, {a, kept, kept});
  machine_.expect("f", {a, b, i32(0)}, {b, kept, kept});
  // The result register is one of the operands: it holds the selected ref.
  machine_.expect("own", {a, b, i32(1)}, {a, kept});
  machine_.expect("own", {a, b, i32(0)}, {b, kept});
  machine_.expect_failure("wrong", {a, null(), i32(1)}, Code::INVALID_ARGUMENT);
  machine_.expect("wrong", {a, null(), i32(0)}, {});
  EXPECT_TRUE(a.object()->unique());
  EXPECT_TRUE(b.object()->unique());
}

// switch.ref has no text form. Every version honours the MOVE bit of the chosen entry; from version 16 on,
// also that of the default.
TEST_P(Refs, SwitchMovesWhatItChooses) {
  ModuleParts parts;
  parts.bytecode_version = GetParam() << 16;
  parts.types = {"!test.thing", "!vm.buffer"};
  for (const uint32_t type : {0u, 1u}) {
    parts.exports.emplace_back(type == 0 ? "f" : "wrong", static_cast<int>(type));
    parts.functions.push_back({CodeBuilder()
                                   .block()
                                   .op(Op::switch_ref)
                                   .u16(0)
                                   .u32(type)
                                   .u16(moved(0))
                                   .list({moved(1), moved(2)})
                                   .u16(ref(3))
                                   .op(Op::cmp_nz_ref, {ref(0), 1})
                                   .op(Op::cmp_nz_ref, {ref(1), 2})
                                   .op(Op::cmp_nz_ref, {ref(2), 3})
                                   .ret({moved(3), 1, 2, 3})
                                   .bytes(),
                               "0rrri_riii", 4, 4});
  }
  machine_.add(parts.build());
  const Variant a = machine_.thing();
  const Variant b = machine_.thing();
  const Variant c = machine_.thing();
  machine_.expect("f", {a, b, c, i32(0)}, {b, i32(1), i32(0), i32(1)});
  machine_.expect("f", {a, b, c, i32(1)}, {c, i32(1), i32(1), i32(0)});
  for (const int32_t index : {2, -1}) {
    machine_.expect("f", {a, b, c, i32(index)}, {a, i32(!honours_moves()), i32(1), i32(1)});
  }
  machine_.expect_failure("wrong", {a, b, c, i32(0)}, Code::INVALID_ARGUMENT);
}

TEST_P(Refs, TraceAndPrintReleaseWhatIsMarked) {
  add(R"(
vm.func @f(%r0: !test.thing, %r1: !test.thing) -> (i32, i32) {
  vm.trace "event", %i0, %R0
  vm.print "event", %r1
  %i0 = vm.cmp.nz.ref %r0
  %i1 = vm.cmp.nz.ref %r1
  vm.return %i0, %i1
}
)");
  machine_.expect("f", {machine_.thing(), machine_.thing()}, {i32(0), i32(1)});
  EXPECT_EQ(machine_.alive, 0);
}

TEST(RefsFromSixteen, DiscardReleasesMarkedOrNotAndAssignCopiesOrMoves) {
  for (const uint32_t version : {16u, 17u}) {
    Machine machine(things(R"(
vm.func @discard(%r0: !test.thing, %r1: !test.thing) -> (i32, i32) {
  vm.discard.refs %r0, %R1
  %i0 = vm.cmp.nz.ref %r0
  %i1 = vm.cmp.nz.ref %r1
  vm.return %i0, %i1
}
vm.func @assign(%r0: !test.thing) -> (i32, i32, i32) {
  %r1 = vm.assign.ref %r0
  %r0 = vm.assign.ref %R0
  %i0 = vm.cmp.eq.ref %r0, %r1
  %r2 = vm.assign.ref %R0
  %i1 = vm.cmp.nz.ref %r0
  %i2 = vm.cmp.eq.ref %r1, %r2
  vm.return %i0, %i1, %i2
}
)"),
                    version);
    machine.expect("discard", {machine.thing(), machine.thing()}, {i32(0), i32(0)});
    machine.expect("assign", {machine.thing()}, {i32(1), i32(0), i32(1)});
    EXPECT_EQ(machine.alive, 0);
  }
}

TEST_P(Refs, AnErrorReleasesEveryFrame) {
  add(R"(
vm.export @f
vm.func @f(%r0: !test.thing) -> () {
  vm.call @g(%r0)
  vm.return
}
vm.func @g(%r0: !test.thing) -> () {
  %i0 = vm.const.i32 5
  vm.fail %i0, "no"
}
)");
  machine_.expect_failure("f", {machine_.thing()}, Code::NOT_FOUND);
  EXPECT_EQ(machine_.alive, 0);
}

// ---- fail

TEST(Fail, CodesAndFallThrough) {
  Machine machine(function("(%i0: i32) -> (i32)", R"(
    vm.fail %i0, "reason"
  ^bb1:
    %i1 = vm.const.i32 1
    vm.return %i1
  )"));
  machine.expect("f", {i32(0)}, {i32(1)});
  for (int32_t code = 1; code <= 18; ++code) {
    if (code == 17) continue;
    machine.expect_failure("f", {i32(code)}, static_cast<Code>(code), "; reason; ");
  }
  machine.expect_failure("f", {i32(33)}, Code::CANCELLED);
  for (const int32_t code : {17, 19, 31, 32, 64, -1}) {
    const std::string text = machine.expect_failure("f", {i32(code)}, Code::UNKNOWN);
    EXPECT_NE(text.find(fmt::format("{}", static_cast<uint32_t>(code))), std::string::npos) << text;
  }
}

TEST(Fail, NothingAfterwardsIsAnErrorToo) {
  Machine machine(function("(%i0: i32) -> ()", "vm.fail %i0, \"reason\"\n"));
  machine.expect_failure("f", {i32(0)}, Code::INVALID_ARGUMENT);
  machine.expect_failure("f", {i32(13)}, Code::INTERNAL);
}

TEST(Fail, InstructionsSayWhere) {
  Machine machine(function("(%i0: i32) -> (i32)",
                           "%i1 = vm.const.i32.zero\n%i0 = vm.div.i32.s %i0, %i1\nvm.return %i0\n"));
  machine.expect_failure("f", {i32(1)}, Code::INVALID_ARGUMENT, "at m.f+00000004");
}

}  // namespace
}  // namespace halyard::vm::test
