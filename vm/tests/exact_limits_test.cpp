// Limits at their exact values: what just fits runs, one more does not.
#include "machine_testing.h"
#include "module_builder.h"
#include "vm/decode/code.h"

namespace halyard::vm::test {
namespace {

TEST(ExactLimits, OfTheStack) {
  constexpr const char* kText = R"(
vm.module @m
vm.func @f(%i0: i32) -> (i32) {
  .registers 512, 0
  %i500 = vm.add.i32 %i0, %i0
  vm.return %i500
}
)";
  Machine measured(kText);
  const auto module = ASSERT_VALUE(measured.load(kText));
  const uint64_t bytes = ASSERT_VALUE(module->code(0))->frame_bytes;
  ASSERT_GT(bytes, 1024u);  // more than a stack begins with
  for (const uint64_t limit : {bytes - 1, bytes}) {
    Machine machine(Limits{.stack_bytes = limit});
    machine.add(kText);
    if (limit == bytes)
      machine.expect("f", {i32(4)}, {i32(8)});
    else
      machine.expect_failure("f", {i32(4)}, Code::RESOURCE_EXHAUSTED, fmt::format("{}", limit));
  }
}

TEST(ExactLimits, OfGlobals) {
  const std::string text = "vm.module @m\nvm.state 40, 3\nvm.func @f() -> () {\n  vm.return\n}\n";
  EXPECT_OK(Machine(Limits{.buffer_bytes = 40, .list_elements = 3}).try_add(text));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "needs 40 bytes and 3 refs",
               Machine(Limits{.buffer_bytes = 39, .list_elements = 3}).try_add(text));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "the limits are 40 and 2",
               Machine(Limits{.buffer_bytes = 40, .list_elements = 2}).try_add(text));
}

// Of the arguments or the results of an import, as a struct of C: each item is aligned to its size, a ref
// takes 16 bytes.
TEST(ExactLimits, OfSignatures) {
  const auto linked = [](const std::string& arguments) {
    Machine machine;
    ModuleParts parts;
    parts.name = "lib";
    parts.exports.emplace_back("f", 0);
    const std::string convention = "0" + arguments + "_v";
    parts.functions.push_back({CodeBuilder().block().ret().bytes(), convention, 8192, 4096});
    machine.add(parts.build());
    return machine.try_add(fmt::format(
        "vm.module @m\nvm.import @lib.f cconv \"{}\"\nvm.func @g() -> () {{\n  vm.return\n}}\n", convention));
  };
  for (const auto& [type, bytes] : {std::pair{'i', 4u}, {'f', 4u}, {'I', 8u}, {'F', 8u}, {'r', 16u}}) {
    EXPECT_OK(linked(std::string(16384 / bytes, type))) << type;
    EXPECT_FAILS(INVALID_ARGUMENT, "16384", linked(std::string(16384 / bytes + 1, type))) << type;
  }
  // Four bytes before each of eight are lost, between neighbours of four none.
  std::string mixed;
  for (int i = 0; i < 1024; ++i) mixed += "iI";
  EXPECT_OK(linked(mixed));
  EXPECT_FAILS(INVALID_ARGUMENT, "16384", linked(mixed + "i"));
  EXPECT_OK(linked("if" + mixed.substr(2) + "I"));
}

TEST(ExactLimits, OfBuffersAndListsInPrograms) {
  constexpr const char* kText = R"(
vm.module @m
vm.type !vm.list<i32>
vm.func @buffer(%i0:1: i64) -> (i64) {
  %i2 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i0:1, %i2
  %i4:5 = vm.buffer.length %r0
  vm.return %i4:5
}
vm.func @list(%i0: i32) -> (i32) {
  %i2 = vm.const.i32.zero
  %r0 = vm.list.alloc %i2 : !vm.list<i32>
  vm.list.resize %r0, %i0
  %i1 = vm.list.size %r0
  vm.return %i1
}
vm.func @room(%i0: i32) -> (i32) {
  %r0 = vm.list.alloc %i0 : !vm.list<i32>
  vm.list.reserve %r0, %i0
  %i1 = vm.list.size %r0
  vm.return %i1
}
)";
  Machine machine(Limits{.buffer_bytes = 100, .list_elements = 10});
  machine.add(kText);
  machine.expect("buffer", {i64(100)}, {i64(100)});
  machine.expect_failure("buffer", {i64(101)}, Code::RESOURCE_EXHAUSTED, "100");
  machine.expect("list", {i32(10)}, {i32(10)});
  machine.expect_failure("list", {i32(11)}, Code::RESOURCE_EXHAUSTED, "11");
  machine.expect("room", {i32(10)}, {i32(0)});
  machine.expect_failure("room", {i32(11)}, Code::RESOURCE_EXHAUSTED, "11");
}

// Every access of every width at both ends of a buffer and one element behind, and what its failure says.
TEST(ExactLimits, OfAccesses) {
  struct Access {
    const char* load;
    const char* store;
    uint32_t width;
    const char* reg;
  };
  const Access accesses[] = {{"load.i8.u", "store.i8", 1, "%i4"},   {"load.i8.s", "store.i8", 1, "%i4"},
                             {"load.i16.u", "store.i16", 2, "%i4"}, {"load.i16.s", "store.i16", 2, "%i4"},
                             {"load.i32", "store.i32", 4, "%i4"},   {"load.i64", "store.i64", 8, "%i4:5"},
                             {"load.f32", "store.f32", 4, "%i4"},   {"load.f64", "store.f64", 8, "%i4:5"}};
  for (const Access& access : accesses) {
    // At an index in a register, at a sum, at a sum that is kept, and at a product and a sum.
    const char* const indexes[] = {
        "", "  %i0:1 = vm.add.i64 %i6:7, %i0:1\n",
        "  %i8:9 = vm.add.i64 %i0:1, %i6:7\n  %i0:1 = vm.or.i64 %i8:9, %i8:9\n",
        "  %i8:9 = vm.mul.i64 %i0:1, %i10:11\n  %i0:1 = vm.add.i64 %i8:9, %i6:7\n"};
    for (const char* index : indexes) {
      Machine machine(fmt::format(R"(
vm.module @m
vm.func @f(%i0:1: i64, %i2: i32) -> (i64) {{
  %i6:7 = vm.const.i64.zero
  %i10:11 = vm.const.i64 1
  %i12:13 = vm.const.i64 32
  %i14 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i12:13, %i14
  {3} = vm.buffer.{0} %r0, %i6:7
  vm.cond_br %i2, ^bb1, ^bb2
^bb1:
{4}  {3} = vm.buffer.{0} %r0, %i0:1
  vm.return %i0:1
^bb2:
{4}  vm.buffer.{1} {3}, %r0, %i0:1
  vm.return %i0:1
}}
)",
                                  access.load, access.store, access.width, access.reg, index));
      const int64_t count = 32 / access.width;
      for (const int loads : {0, 1}) {
        for (const int64_t at : {int64_t{0}, count - 1})
          machine.expect("f", {i64(at), i32(loads)}, {i64(at)});
        for (const int64_t at : {count, int64_t{-1}, INT64_MAX, INT64_MIN, INT64_MAX / access.width + 1})
          machine.expect_failure(
              "f", {i64(at), i32(loads)}, Code::OUT_OF_RANGE,
              fmt::format("1 elements of {} bytes at element {} are not within a buffer of 32 bytes",
                          access.width, static_cast<uint64_t>(at)));
      }
    }
  }
}

// A list that names fewer arguments than the callee has registers leaves the others zero.
TEST(ExactLimits, OfListsOfArguments) {
  ModuleParts parts;
  parts.exports.emplace_back("f", 0);
  parts.functions.push_back(
      {CodeBuilder().block().op(Op::call).u32(1).list({0}).list({2, 3, 1}).ret({2, 3}).bytes(), "0ii_ii", 4,
       0});
  parts.functions.push_back({CodeBuilder().block().ret({0, 1, 2}).bytes(), std::nullopt, 4, 0});
  Machine machine;
  machine.add(parts.build());
  machine.expect("f", {i32(3), i32(4)}, {i32(3), i32(0)});
}

TEST(ExactLimits, AModuleForInspectionDoesNotRun) {
  Machine machine;
  ModuleParts parts;
  parts.functions.emplace_back();
  const Ref<BytecodeModule> module =
      ASSERT_VALUE(BytecodeModule::load(Bytes::own(parts.build()), machine.types));
  EXPECT_FAILS(FAILED_PRECONDITION, "was opened for inspection", machine.context->add(module));
}

}  // namespace
}  // namespace halyard::vm::test
