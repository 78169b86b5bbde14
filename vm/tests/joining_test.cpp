// Joined instructions against the same programs with every instruction on its own: LoadOptions::fuse is the
// switch that turns joining off.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

// Results or failure of a call, as text.
std::string outcome(const std::string& text, bool fuse, const std::string& function,
                    const Values& arguments) {
  Machine machine;
  machine.fuse = fuse;
  machine.add(text);
  const Result<Values> results = machine.call(function, arguments);
  if (!results) return results.error().text();
  std::string outcome;
  for (const Variant& result : *results) outcome += to_text(result) + " ";
  return outcome;
}

std::string benchmark_programs() {
  const char* given = std::getenv("HALYARD_FIXTURES");
  const std::filesystem::path fixtures = given ? given : HALYARD_SOURCE_DIR "/../shared/fixtures";
  std::ifstream file(fixtures / "../bench/core.vmasm");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Joining, BenchmarkProgramsGiveTheSame) {
  const std::string text = benchmark_programs();
  if (text.empty()) GTEST_SKIP() << "the benchmark programs are not here";
  const std::pair<const char*, std::vector<int>> programs[] = {
      {"loop_sum", {1, 1000, 70000}}, {"fib", {0, 1, 15}},      {"sieve", {3, 10, 1000, 4099}},
      {"matmul_f32", {1, 7, 24}},     {"orbit_f64", {1, 1000}}, {"list_sum", {1, 1000}}};
  for (const auto& [function, sizes] : programs) {
    for (const int size : sizes)
      EXPECT_EQ(outcome(text, true, function, {i32(size)}), outcome(text, false, function, {i32(size)}))
          << function << ' ' << size;
  }
}

struct Case {
  const char* name;
  const char* body;  // of a function from i32 to i32
  std::vector<int> inputs;
};

// Where what joining leaves out or puts together can be seen from outside.
const Case kCases[] = {
    {"HalvesOfPairsInSwitches",  // an edge moves into the high half of a pair that only a list names
     R"(
  %i2:3 = vm.const.i64 0x110586779D273C2F
  %i4:5 = vm.const.i64.zero
  vm.cond_br %i0, ^bb1(%i2 -> %i3), ^bb1()
^bb1:
  %i1 = vm.const.i32.zero
  %i6:7 = vm.switch.i64 %i1[%i2:3] else %i4:5
  %i1 = vm.const.i32 32
  %i6:7 = vm.shr.i64.u %i6:7, %i1
  %i0 = vm.trunc.i64.i32 %i6:7
  vm.return %i0
)",
     {0, 1}},
    {"IndicesThatAreKept",
     R"(
  %i2:3 = vm.const.i64 32
  %i1 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i2:3, %i1
  %i4:5 = vm.ext.i32.i64.s %i0
  %i6:7 = vm.ext.i32.i64.s %i0
  %i8:9 = vm.add.i64 %i4:5, %i6:7
  vm.buffer.store.i32 %i0, %r0, %i8:9
  %i10 = vm.buffer.load.i32 %r0, %i8:9
  %i8:9 = vm.add.i64 %i8:9, %i4:5
  vm.buffer.store.i32 %i8, %r0, %i8:9
  %i11 = vm.buffer.load.i32 %r0, %i8:9
  %i4:5 = vm.add.i64 %i4:5, %i6:7
  %i4 = vm.buffer.load.i32 %r0, %i4:5
  %i12 = vm.add.i32 %i10, %i11
  %i12 = vm.add.i32 %i12, %i4
  %i12 = vm.add.i32 %i12, %i5
  vm.return %i12
)",
     {0, 1, 2, 3, -1}},
};

TEST(Joining, CasesGiveTheSame) {
  for (const Case& each : kCases) {
    const std::string text =
        std::string("vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {") + each.body + "}\n";
    for (const int input : each.inputs)
      EXPECT_EQ(outcome(text, true, "f", {i32(input)}), outcome(text, false, "f", {i32(input)}))
          << each.name << ' ' << input;
  }
}

}  // namespace
}  // namespace halyard::vm::test
