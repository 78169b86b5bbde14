// Calls: internal and between bytecode modules, from outside, their traces, and suspension. Specified by
// calling-convention.md, sections 3 to 7, verifier-and-execution.md, 4 to 7, and rulings.md, 1 and 26.
#include "machine_testing.h"
#include "module_builder.h"

namespace halyard::vm::test {
namespace {

// ---- internal

// Whole 64-bit values, in the registers of the callee's signature (rulings.md, 1). The reference gives 2 and
// 0.
TEST(InternalCall, PassesWholeValues) {
  Machine machine(R"(
vm.module @m
vm.export @one
vm.export @two
vm.export @mixed
vm.func @one(%i0:1: i64) -> (i64) {
  %i2:3 = vm.call @id(%i0:1)
  vm.return %i2:3
}
vm.func @id(%i0:1: i64) -> (i64) {
  vm.return %i0:1
}
vm.func @two(%i0:1: i64, %i2:3: i64) -> (i64, i64) {
  %i6:7, %i4:5 = vm.call @swap(%i0:1, %i2:3)
  vm.return %i6:7, %i4:5
}
vm.func @swap(%i0:1: i64, %i2:3: i64) -> (i64, i64) {
  vm.return %i2:3, %i0:1
}
vm.func @mixed(%i0:1: i64, %i2:3: f64, %i4: i32) -> (f64, i32, i64) {
  %i8:9, %i10, %i12:13 = vm.call @rotate(%i0:1, %i4, %i2:3)
  vm.return %i8:9, %i10, %i12:13
}
vm.func @rotate(%i0:1: i64, %i2: i32, %i4:5: f64) -> (f64, i32, i64) {
  vm.return %i4:5, %i2, %i0:1
}
)");
  machine.expect("one", {i64(4294967298)}, {i64(4294967298)});
  machine.expect("two", {i64(0x100000001), i64(0x200000002)}, {i64(0x200000002), i64(0x100000001)});
  machine.expect("mixed", {i64(-5), f64(2.5), i32(7)}, {f64(2.5), i32(7), i64(-5)});
}

// (i32, i64): the pair starts at the next even register.
TEST(InternalCall, RoundsPairsUpToEven) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    ModuleParts parts;
    parts.bytecode_version = version << 16;
    parts.exports.emplace_back("f", 0);
    parts.functions.push_back(
        {CodeBuilder().block().op(Op::call).u32(1).list({0, 2}).list({8, 4}).ret({8, 4}).bytes(), "0iI_iI",
         16, 0});
    parts.functions.push_back({CodeBuilder().block().ret({0, 2}).bytes(), "0iI_iI", 4, 0});
    Machine machine;
    machine.add(parts.build());
    machine.expect("f", {i32(3), i64(0x500000006)}, {i32(3), i64(0x500000006)});
  }
}

// Without a signature, every entry takes one register. Entries without a register in the callee are dropped;
// results without a register in the caller are an error.
TEST(InternalCall, WithoutASignatureGoesByTheLists) {
  ModuleParts parts;
  parts.exports = {{"f", 0}, {"too_many", 1}};
  const auto caller = [](std::initializer_list<uint16_t> results) {
    return CodeBuilder()
        .block()
        .op(Op::call)
        .u32(2)
        .list({0, ref(0), 1})
        .list(results)
        .ret({8, 9, ref(1)})
        .bytes();
  };
  parts.functions.push_back({caller({8, 9, ref(1)}), "0iir_iir", 16, 2});
  parts.functions.push_back({caller({8, 9}), "0iir_iir", 16, 2});
  parts.functions.push_back({CodeBuilder().block().ret({1, 0, moved(0)}).bytes(), std::nullopt, 2, 1});
  Machine machine;
  machine.add(parts.build());
  const Variant thing = machine.thing();
  machine.expect("f", {i32(3), i32(4), thing}, {i32(4), i32(3), thing});
  machine.expect_failure("too_many", {i32(3), i32(4), thing}, Code::FAILED_PRECONDITION);
  EXPECT_TRUE(thing.object()->unique());
}

TEST(InternalCall, CopiesOrMovesRefs) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    Machine machine(R"(
vm.module @m
vm.export @f
vm.func @f(%r0: !test.thing, %r1: !test.thing) -> (i32, i32, !test.thing) {
  %r1 = vm.call @second(%r0, %R1)
  %i0 = vm.cmp.nz.ref %r0
  %i1 = vm.cmp.nz.ref %r1
  vm.return %i0, %i1, %R1
}
vm.func @second(%r0: !test.thing, %r1: !test.thing) -> (!test.thing) {
  vm.return %R1
}
)",
                    version);
    const Variant second = machine.thing();
    machine.expect("f", {machine.thing(), second}, {i32(1), i32(1), second});
    EXPECT_TRUE(second.object()->unique());
    EXPECT_EQ(machine.alive, 1);
  }
}

const char* const kRecursion = R"(
vm.module @m
vm.func @down(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i2 = vm.sub.i32 %i0, %i1
  %i3 = vm.call @down(%i2)
  %i3 = vm.add.i32 %i3, %i1
  vm.return %i3
^bb2:
  vm.return %i0
}
)";

TEST(InternalCall, NestsDeepButNotForEver) {
  Machine machine(kRecursion);
  machine.expect("down", {i32(5000)}, {i32(5000)});
  const std::string text = machine.expect_failure("down", {i32(-1)}, Code::RESOURCE_EXHAUSTED);
  EXPECT_NE(text.find("more"), std::string::npos);
  EXPECT_LT(text.size(), 10000u);
  machine.expect("down", {i32(5000)}, {i32(5000)});
}

TEST(InternalCall, TheStackIsLimited) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{64}, uint64_t{1000}, uint64_t{20000}}) {
    Machine machine(Limits{.stack_bytes = bytes});
    machine.add(kRecursion);
    machine.expect_failure("down", {i32(5000)}, Code::RESOURCE_EXHAUSTED);
    if (bytes >= 1000) machine.expect("down", {i32(3)}, {i32(3)});
  }
}

// A moved argument leaves its register, whether or not the callee uses it.
TEST(InternalCall, MovesWithoutASignatureToo) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    Machine machine;
    ModuleParts parts;
    parts.bytecode_version = version << 16;
    parts.types = {"!test.thing"};
    parts.functions.push_back({.code = CodeBuilder()
                                           .block()
                                           .op(Op::call)
                                           .u32(1)
                                           .list({moved(0), moved(1)})
                                           .list({})
                                           .op(Op::cmp_nz_ref, {ref(0), 0})
                                           .op(Op::cmp_nz_ref, {ref(1), 1})
                                           .ret({0, 1})
                                           .bytes(),
                               .convention = "0rr_ii",
                               .values = 2,
                               .refs = 2});
    parts.functions.push_back({.convention = "", .refs = 2});
    parts.exports.emplace_back("f", 0);
    machine.add(parts.build());
    machine.expect("f", {machine.thing(), machine.thing()}, {i32(0), i32(0)});
    EXPECT_EQ(machine.alive, 0);
  }
}

// Functions are verified when they are first called; an invalid one fails its caller.
TEST(InternalCall, OfAnInvalidFunctionFails) {
  ModuleParts parts;
  parts.exports.emplace_back("f", 0);
  parts.functions.push_back(
      {CodeBuilder().block().op(Op::call).u32(1).list({}).list({}).ret().bytes(), "0v_v", 0, 0});
  parts.functions.push_back({CodeBuilder().block().op(Op::add_i32, {9, 9, 9}).ret().bytes(), "0v_v", 2, 0});
  Machine machine;
  machine.add(parts.build());
  for (int times = 0; times < 2; ++times)
    machine.expect_failure("f", {}, Code::OUT_OF_RANGE, "the function has 2 value registers");
}

// ---- imports from bytecode

TEST(ImportedCall, PassesByTheProvidersSignature) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    Machine machine(R"(
vm.module @lib
vm.global.i32 mutable @count
vm.func @mix(%i0:1: i64, %i2: i32, %r0: !test.thing, %i4:5: f64) -> (f64, !test.thing, i64, i32) {
  %i6 = vm.global.load.i32 @count
  %i6 = vm.add.i32 %i6, %i2
  vm.global.store.i32 %i6, @count
  vm.return %i4:5, %R0, %i0:1, %i6
}
)",
                    version);
    for (const char* convention : {"0IirF_FrIi", ""}) {
      machine.add(fmt::format(R"(
vm.module @user{}
vm.import @lib.mix cconv "{}"
vm.global.i32 mutable @mine
vm.func @f(%i0:1: i64, %i2:3: f64, %i4: i32, %r0: !test.thing) -> (f64, !test.thing, i64, i32, i32, i32) {{
  %i8:9, %r1, %i10:11, %i12 = vm.call @lib.mix(%i0:1, %i4, %R0, %i2:3)
  %i13 = vm.cmp.nz.ref %r0
  %i14 = vm.global.load.i32 @mine
  vm.return %i8:9, %R1, %i10:11, %i12, %i13, %i14
}}
)",
                              convention[0] ? 1 : 2, convention),
                  version);
      const Variant thing = machine.thing();
      const int32_t so_far = convention[0] ? 7 : 14;
      // Imports of bytecode 15 borrow their arguments: the register keeps its ref.
      machine.expect("f", {i64(-5), f64(2.5), i32(7), thing},
                     {f64(2.5), thing, i64(-5), i32(so_far), i32(version == 15), i32(0)});
      EXPECT_TRUE(thing.object()->unique());
    }
  }
}

TEST(ImportedCall, OptionalImports) {
  Machine machine("vm.module @lib\nvm.export @there\nvm.func @there() -> () {\n vm.return\n}\n");
  machine.add(R"(
vm.module @m
vm.import optional @lib.there cconv "0v_v"
vm.import optional @lib.missing cconv "0v_v"
vm.import optional @nowhere.f cconv "0v_v"
vm.func @resolved() -> (i32, i32, i32) {
  %i0 = vm.import.resolved @lib.there
  %i1 = vm.import.resolved @lib.missing
  %i2 = vm.import.resolved @nowhere.f
  vm.return %i0, %i1, %i2
}
vm.func @call_there() -> () {
  vm.call @lib.there()
  vm.return
}
vm.func @call_missing() -> () {
  vm.call @lib.missing()
  vm.return
}
)");
  machine.expect("resolved", {}, {i32(1), i32(0), i32(0)});
  machine.expect("call_there", {}, {});
  machine.expect_failure("call_missing", {}, Code::NOT_FOUND, "lib.missing");
}

// ---- from outside

TEST(OutsideCall, ArgumentsAreCheckedAndCoerced) {
  Machine machine(R"(
vm.module @m
vm.func @f(%i0:1: i64, %i2:3: f64, %i4: i32, %i5: f32, %r0: !vm.buffer) -> (i64, f64, i32, f32) {
  vm.return %i0:1, %i2:3, %i4, %i5
}
)");
  machine.expect("f", {i64(-5), f64(0.5), i32(7), f32(1.5), null()}, {i64(-5), f64(0.5), i32(7), f32(1.5)});
  machine.expect("f", {i32(-5), f32(0.5), i64(0x100000007), f64(1.5), null()},
                 {i64(-5), f64(0.5), i32(7), f32(1.5)});
  machine.expect("f", {Variant::value(ValueType::i8, 0xFE), i32(3), f32(3), i32(3), null()},
                 {i64(-2), f64(0), i32(0), f32(0)});
  machine.expect_failure("f", {i64(1)}, Code::INVALID_ARGUMENT, "expected 5 arguments, found 1");
  machine.expect_failure("f", {null(), f64(0), i32(0), f32(0), null()}, Code::FAILED_PRECONDITION);
  machine.expect_failure("f", {machine.thing(), f64(0), i32(0), f32(0), null()}, Code::FAILED_PRECONDITION);
  machine.expect_failure("f", {i64(0), f64(0), i32(0), f32(0), i32(0)}, Code::FAILED_PRECONDITION);

  const Callable callee = *machine.find("f");
  Values results(3);
  const Values arguments = {i64(0), f64(0), i32(0), f32(0), null()};
  EXPECT_EQ(Invocation(machine.context).call(callee, arguments, results).error().code(),
            Code::INVALID_ARGUMENT);
}

TEST(OutsideCall, ResultsAreUntouchedOnFailure) {
  Machine machine(
      "vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n vm.fail %i0, \"no\"\n^bb1:\n vm.return "
      "%i0\n}\n");
  const Callable callee = *machine.find("f");
  Invocation invocation(machine.context);
  Values results = {i64(99)};
  EXPECT_FALSE(invocation.call(callee, Values{i32(1)}, results));
  EXPECT_EQ(results[0].as_i64(), 99);
  EXPECT_TRUE(invocation.call(callee, Values{i32(0)}, results));
  EXPECT_EQ(results[0].type(), ValueType::i32);
}

// ---- errors

TEST(Trace, ShowsWhoCalled) {
  Machine machine(R"(
vm.module @demo
vm.export @outer
vm.func @outer(%i0: i32) -> () {
  vm.call @middle(%i0)
  vm.return
}
vm.func @middle(%i0: i32) -> () {
  vm.call @inner(%i0)
  vm.return
}
vm.func @inner(%i0: i32) -> () {
  vm.fail %i0, "bad input"
}
)");
  const Result<Values> result = machine.call("outer", {i32(3)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().text(),
            "INVALID_ARGUMENT; bad input; at demo@2+00000001; "
            "\n[ 1] bytecode demo@1:12 -"
            "\n[ 0] bytecode demo.outer:12 -; in the call of function 'outer'");
}

TEST(Trace, OfAnImportedFunction) {
  Machine machine(
      "vm.module @lib\nvm.export @f\nvm.func @f(%i0: i32) -> () {\n vm.fail %i0, \"lib says no\"\n}\n");
  machine.add(R"(
vm.module @demo
vm.import @lib.f cconv "0i_v"
vm.func @main(%i0: i32) -> () {
  vm.call @lib.f(%i0)
  vm.return
}
vm.func @outer(%i0: i32) -> () {
  vm.call @main(%i0)
  vm.return
}
)");
  EXPECT_EQ(machine.call("main", {i32(9)}).error().text(),
            "FAILED_PRECONDITION; lib says no; at lib.f+00000001; called as an import; in the call of "
            "function 'main'");
  EXPECT_EQ(machine.call("outer", {i32(9)}).error().text(),
            "FAILED_PRECONDITION; lib says no; at lib.f+00000001; called as an import; \n[ 0] bytecode "
            "demo.outer:12 -; "
            "in the call of function "
            "'outer'");
}

TEST(Trace, EndsWithTheDeclaration) {
  ModuleParts parts;
  parts.exports.emplace_back("f", 0);
  parts.functions.push_back({CodeBuilder().block().op(Op::fail, {0}).string("no").bytes(),
                             "0i_v",
                             1,
                             0,
                             1,
                             0,
                             {{"iree.abi.declaration", "sync func @f(%input0: i32)"}}});
  Machine machine;
  machine.add(parts.build());
  EXPECT_EQ(machine.call("f", {i32(5)}).error().text(),
            "NOT_FOUND; no; at test.f+00000001; in the call of function 'f'; `sync func @f(%input0: i32)`");
}

// Each frame shows the source location of its call, and the failing instruction shows its own.
TEST(Trace, HasPlacesInTheSource) {
  ModuleParts parts;
  parts.exports.emplace_back("f", 0);
  parts.functions.push_back(
      {.code = CodeBuilder().block().op(Op::call).u32(1).list({0}).list({}).ret({}).bytes(),
       .convention = "0i_v",
       .values = 1});
  parts.functions.push_back({.code = CodeBuilder().block().op(Op::fail, {0}).string("no").bytes(),
                             .convention = "0i_v",
                             .values = 1});
  parts.debug_names = {"", "inner"};
  parts.debug_locations = {{0, 1, "model.mlir", 12, 5}, {1, 1, "model.mlir", 3, 7}};
  Machine machine;
  machine.add(parts.build());
  EXPECT_EQ(machine.call("f", {i32(5)}).error().text(),
            "NOT_FOUND; no; at test.inner+00000001 (model.mlir:3:7); "
            "\n[ 0] bytecode test.f:12 model.mlir:12:5; in the call of function 'f'");
}

// ---- suspension

const char* const kYield = R"(
vm.module @m
vm.global.i32 mutable @steps
vm.func @f(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {
  %i1 = vm.const.i32 1
  vm.global.store.i32 %i1, @steps
  vm.yield ^bb1(%i0 -> %i2)
^bb1:
  %i3 = vm.const.i32 2
  vm.global.store.i32 %i3, @steps
  vm.yield ^bb2
^bb2:
  vm.return %i2, %R0
}
vm.func @outer(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {
  %i5, %r1 = vm.call @f(%i0, %R0)
  vm.return %i5, %R1
}
vm.func @steps() -> (i32) {
  %i0 = vm.global.load.i32 @steps
  vm.return %i0
}
vm.func @hop(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {
  vm.call.yieldable @f(%i0, %R0) -> ^bb2(%i7, %r3)
^bb1:
  vm.return %i0, %r0
^bb2:
  vm.return %i7, %R3
}
)";

TEST(Suspension, StepByStepAndInOneGo) {
  Machine machine(kYield);
  for (const char* name : {"f", "outer", "hop"}) {
    const Callable callee = *machine.find(name);
    Invocation invocation(machine.context);
    const Variant thing = machine.thing();
    const Values arguments = {i32(7), thing};
    Result<Outcome> outcome = invocation.begin(callee, arguments);
    ASSERT_TRUE(outcome && *outcome == Outcome::yielded);
    machine.expect("steps", {}, {i32(1)});  // another invocation runs in the context meanwhile
    EXPECT_EQ(invocation.begin(callee, arguments).error().code(), Code::FAILED_PRECONDITION);
    outcome = invocation.resume();
    ASSERT_TRUE(outcome && *outcome == Outcome::yielded);
    machine.expect("steps", {}, {i32(2)});
    outcome = invocation.resume();
    ASSERT_TRUE(outcome && *outcome == Outcome::done);
    Values results(2);
    invocation.take_results(results);
    EXPECT_EQ(results[0].as_i32(), 7);
    EXPECT_EQ(results[1].object(), thing.object());
    EXPECT_EQ(invocation.resume().error().code(), Code::FAILED_PRECONDITION);
    machine.expect(name, arguments, {i32(7), thing});
  }
  EXPECT_EQ(machine.alive, 0);
}

TEST(Suspension, CancelReleasesTheFrames) {
  Machine machine(kYield);
  const Callable callee = *machine.find("hop");
  Invocation invocation(machine.context);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(invocation.begin(callee, Values{i32(7), machine.thing()}));
    EXPECT_EQ(machine.alive, 1);
    invocation.drop();
    EXPECT_EQ(machine.alive, 0);
  }
  {
    Invocation dropped(machine.context);
    ASSERT_TRUE(dropped.begin(callee, Values{i32(7), machine.thing()}));
  }
  EXPECT_EQ(machine.alive, 0);
}

TEST(Suspension, AcrossModules) {
  Machine machine(kYield);
  machine.add(R"(
vm.module @user
vm.import @m.f cconv "0ir_ir"
vm.func @g(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {
  vm.call.yieldable @m.f(%i0, %R0) -> ^bb1(%i1, %r1)
^bb1:
  vm.return %i1, %R1
}
vm.func @plain(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {
  %i1, %r1 = vm.call @m.f(%i0, %R0)
  vm.return %i1, %R1
}
)");
  for (const char* name : {"g", "plain"}) {
    const Variant thing = machine.thing();
    machine.expect(name, {i32(7), thing}, {i32(7), thing});
    EXPECT_TRUE(thing.object()->unique());
  }
}

// Three modules deep: the order of execution before each suspension and after each resumption.
const char* const kDeepYield = R"(
vm.module @inner
vm.import @log.number cconv "0i_v"
vm.func @f(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {
  %i1 = vm.const.i32 1
  vm.call @log.number(%i1)
  vm.yield ^bb1
^bb1:
  %i1 = vm.const.i32 2
  vm.call @log.number(%i1)
  vm.yield ^bb2(%i0 -> %i2)
^bb2:
  %i1 = vm.const.i32 3
  vm.call @log.number(%i1)
  vm.fail %i2, "inner says no"
^bb3:
  vm.return %i1, %R0
}
)";
const char* const kAroundYield = R"(
vm.module @{0}
vm.import @log.number cconv "0i_v"
vm.import @{1}.f cconv "0ir_ir"
vm.func @f(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {{
  %i1 = vm.const.i32 {2}
  vm.call @log.number(%i1)
  %i3 = vm.const.i32 {3}
  {4}
^bb1:
  vm.call @log.number(%i3)
  %i4 = vm.add.i32 %i2, %i3
  vm.return %i4, %R1
}}
)";

Result<> log_step(std::vector<int32_t>& log, int32_t number) {
  log.push_back(number);
  return {};
}

TEST(Suspension, GoesOnInTheInnermostModuleAndReturnsOutwards) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    std::vector<int32_t> log;
    Machine machine;
    machine.add_native("log", {{"number", convention_of<&log_step>, bind<&log_step>}}, &log);
    machine.add(kDeepYield, version);
    const bool yieldable = version == 17;
    const auto call = [&](const char* callee) {
      return yieldable ? fmt::format("vm.call.yieldable @{}.f(%i0, %R0) -> ^bb1(%i2, %r1)", callee)
                       : fmt::format("%i2, %r1 = vm.call @{}.f(%i0, %R0)\n  vm.br ^bb1", callee);
    };
    machine.add(fmt::format(fmt::runtime(kAroundYield), "middle", "inner", 10, 20, call("inner")), version);
    machine.add(fmt::format(fmt::runtime(kAroundYield), "outer", "middle", 100, 200, call("middle")),
                version);
    const Callable callee = *machine.find("outer.f");
    Invocation invocation(machine.context);
    for (const int32_t status : {0, 5}) {
      log.clear();
      Result<Outcome> outcome = invocation.begin(callee, Values{i32(status), machine.thing()});
      ASSERT_TRUE(outcome && *outcome == Outcome::yielded);
      EXPECT_EQ(log, (std::vector<int32_t>{100, 10, 1}));
      outcome = invocation.resume();
      ASSERT_TRUE(outcome && *outcome == Outcome::yielded);
      EXPECT_EQ(log, (std::vector<int32_t>{100, 10, 1, 2}));
      EXPECT_EQ(machine.alive, 1);
      outcome = invocation.resume();
      if (status != 0) {  // passes through both modules and leaves no frames
        EXPECT_EQ(outcome.error().code(), Code::NOT_FOUND);
        EXPECT_EQ(log, (std::vector<int32_t>{100, 10, 1, 2, 3}));
        EXPECT_EQ(machine.alive, 0);
        continue;
      }
      ASSERT_TRUE(outcome && *outcome == Outcome::done);
      EXPECT_EQ(log, (std::vector<int32_t>{100, 10, 1, 2, 3, 20, 200}));
      Values results(2);
      invocation.take_results(results);
      EXPECT_EQ(results[0].as_i32(), 3 + 20 + 200);
      EXPECT_TRUE(results[1].object() && results[1].object()->unique());
    }
  }
}

}  // namespace
}  // namespace halyard::vm::test
