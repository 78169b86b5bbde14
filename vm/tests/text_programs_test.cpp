// Programs as text: assembled and run, then disassembled, assembled and run again. The text has the expected
// results: "// run: NAME INPUTS -> RESULTS" or "-> fails CODE".
#include <sstream>

#include "disassembler_testing.h"
#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

struct Run {
  std::string line;
  std::string function;
  std::vector<std::string> inputs;
  std::vector<std::string> results;
  std::string code;  // of the failure
};

std::vector<Run> runs_of(const std::string& text) {
  std::vector<Run> runs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kRun = "// run: ";
    if (!line.starts_with(kRun)) continue;
    Run run{.line = line};
    std::istringstream words(line.substr(kRun.size()));
    words >> run.function;
    bool after_arrow = false;
    for (std::string word; words >> word;) {
      if (word == "->") {
        after_arrow = true;
      } else if (!after_arrow) {
        run.inputs.push_back(word);
      } else if (word == "fails") {
        words >> run.code;
      } else {
        run.results.push_back(word);
      }
    }
    runs.push_back(run);
  }
  return runs;
}

Variant input(const std::string& text, char type) {
  switch (type) {
    case 'i':
      return i32(std::stoll(text));
    case 'I':
      return i64(std::stoll(text));
    case 'f':
      return f32(std::stof(text));
    default:
      return f64(std::stod(text));
  }
}

std::string value_text(const Variant& value) {
  const std::string text = to_text(value);
  return text.substr(0, text.find(' '));
}

void check(const Machine& machine, const Run& run) {
  SCOPED_TRACE(run.line);
  const auto callee = ASSERT_VALUE(machine.find(run.function));
  ASSERT_EQ(callee.convention.arguments.size(), run.inputs.size());
  Values inputs;
  for (size_t i = 0; i < run.inputs.size(); ++i)
    inputs.push_back(input(run.inputs[i], callee.convention.arguments[i].type));
  const Result<Values> results = machine.call(run.function, inputs);
  if (!results) {
    EXPECT_EQ(name(results.error().code()), run.code) << results.error().text();
    return;
  }
  EXPECT_EQ(run.code, "");
  std::vector<std::string> found;
  for (const Variant& value : *results) found.push_back(value_text(value));
  EXPECT_EQ(found, run.results);
}

// Loads the modules of one context in order and executes the runs of all modules. Returns the number of runs.
size_t check_programs(const std::vector<std::string>& texts, uint32_t version = 0) {
  size_t count = 0;
  Machine direct;
  Machine again;
  for (const std::string& text : texts) {
    const auto bytes = assemble(with_exports(text), {version, "program.vmasm"});
    if (!bytes) {
      ADD_FAILURE() << bytes.error().text();
      return 0;
    }
    direct.add(text, version);
    again.add(round_trip(*bytes));
    for (const Run& run : runs_of(text)) {
      check(direct, run);
      check(again, run);
      ++count;
    }
  }
  EXPECT_GT(count, 0u);
  return count;
}

TEST(TextPrograms, ArgumentsAliasesAndComments) {
  check_programs({R"(
// run: difference 7 2 -> i32=5
// run: minus 2 7 -> i32=-5
// run: product 3000000000 5 -> i64=15000000000
// run: both 8589934592 3 -> i64=8589934595 i32=3
vm.module @numbers version 2
vm.export @difference
vm.export @minus = @difference   // the same function
vm.export @product
vm.export @both
vm.func @difference(%i0: i32, %i1: i32) -> (i32) {
  %i0 = vm.sub.i32 %i0, %i1   # in place
  vm.return %i0
}
vm.func @product(%i0:1: i64, %i2:3: i64) -> (i64) {
^bb0:
  [00000001] %i0:1 = mul.i64 %i0:1, %i2:3
  [00000008] return %i0:1
}
vm.func @both(%i0:1: i64, %i2: i32) -> (i64, i32) {
  %i4:5 = vm.ext.i32.i64.u %i2
  %i0:1 = vm.add.i64 %i0:1, %i4:5
  vm.return %i0:1, %i2
}
)"});
}

TEST(TextPrograms, IntegerConstantsAndOperations) {
  check_programs({R"(
// run: literals -> i32=-2 i32=64 i32=255 i64=-9223372036854775808
// run: divide -17 5 -> i32=-3 i32=-2
// run: divide 1 0 -> fails INVALID_ARGUMENT
// run: shift 36 -> i32=48 i32=-1 i32=268435455
// run: narrow 70000 -> i32=112 i32=4464 i32=112
// run: order -5 3 -> i32=1 i32=0 i32=0
vm.module @integers
vm.func @literals() -> (i32, i32, i32, i64) {
  %i0 = vm.const.i32 0xFFFFFFFE
  %i1 = vm.const.i32 0100
  %i2 = vm.const.i32 0xff
  %i4:5 = vm.const.i64 -0x8000000000000000
  vm.return %i0, %i1, %i2, %i4:5
}
vm.func @divide(%i0: i32, %i1: i32) -> (i32, i32) {
  %i2 = vm.div.i32.s %i0, %i1
  %i3 = vm.rem.i32.s %i0, %i1
  vm.return %i2, %i3
}
vm.func @shift(%i0: i32) -> (i32, i32, i32) {
  %i1 = vm.const.i32 3
  %i1 = vm.shl.i32 %i1, %i0   // by 4: only five bits count
  %i2 = vm.const.i32 -1
  %i3 = vm.shr.i32.s %i2, %i0
  %i4 = vm.shr.i32.u %i2, %i0
  vm.return %i1, %i3, %i4
}
vm.func @narrow(%i0: i32) -> (i32, i32, i32) {
  %i1 = vm.trunc.i32.i8 %i0
  %i2 = vm.trunc.i32.i16 %i0
  %i3 = vm.ext.i8.i32.s %i0
  vm.return %i1, %i2, %i3
}
vm.func @order(%i0: i32, %i1: i32) -> (i32, i32, i32) {
  %i2 = vm.cmp.lt.i32.s %i0, %i1
  %i3 = vm.cmp.lt.i32.u %i0, %i1
  %i4 = vm.cmp.eq.i32 %i0, %i1
  vm.return %i2, %i3, %i4
}
)"});
}

TEST(TextPrograms, Floats) {
  check_programs({R"(
// run: line 3 -> f32=10
// run: widen 0.5 -> f64=0.25
// run: halves 3.5 -> f32=4 f32=4 i32=4
// run: halves 4.5 -> f32=5 f32=4 i32=5
// run: unordered -> i32=1 i32=0 i32=1
// run: bits -> i32=2143289345 i32=1 i32=-2147483648
vm.module @floats
vm.func @line(%i0: f32) -> (f32) {
  %i1 = vm.const.f32 0x1.4p1
  %i2 = vm.const.f32 2.5e0
  %i3 = vm.fma.f32 %i0, %i1, %i2
  vm.return %i3
}
vm.func @widen(%i0: f32) -> (f64) {
  %i2:3 = vm.ext.f32.f64 %i0
  %i2:3 = vm.mul.f64 %i2:3, %i2:3
  vm.return %i2:3
}
vm.func @halves(%i0: f32) -> (f32, f32, i32) {
  %i1 = vm.round.f32 %i0
  %i2 = vm.round.f32.even %i0
  %i3 = vm.cast.f32.si32 %i0
  vm.return %i1, %i2, %i3
}
vm.func @unordered() -> (i32, i32, i32) {
  %i0 = vm.const.f32 nan
  %i1 = vm.cmp.ne.f32.u %i0, %i0
  %i2 = vm.cmp.eq.f32.o %i0, %i0
  %i3 = vm.cmp.nan.f32 %i0
  vm.return %i1, %i2, %i3
}
vm.func @bits() -> (i32, i32, i32) {
  %i0 = vm.const.f32 bits(0x7FC00001)
  %i0 = vm.bitcast.f32.i32 %i0
  %i1 = vm.const.f32 bits(1)
  %i1 = vm.bitcast.f32.i32 %i1
  %i2 = vm.const.f32 -0.0
  %i2 = vm.bitcast.f32.i32 %i2
  vm.return %i0, %i1, %i2
}
)"});
}

TEST(TextPrograms, RodataAndBuffers) {
  check_programs({R"(
// run: byte 1 -> i32=10
// run: byte 4 -> fails OUT_OF_RANGE
// run: signed 0 -> i32=-246
// run: letter 2 -> i32=34
// run: filled -> i64=3 i32=9
// run: change -> fails PERMISSION_DENIED
// run: hash -> i64=8246050544436514353
vm.module @buffers
vm.rodata[0] = 0AFF0a7F
vm.rodata[1] =
vm.rodata[2] = e"ab\"c"
vm.func @byte(%i0:1: i64) -> (i32) {
  %i2:3 = vm.const.i64 2
  %i0:1 = vm.mul.i64 %i0:1, %i2:3
  %r0 = vm.const.ref.rodata 0
  %i2 = vm.buffer.load.i8.u %r0, %i0:1
  vm.return %i2
}
vm.func @signed(%i0:1: i64) -> (i32) {
  %r0 = vm.const.ref.rodata 0
  %i2 = vm.buffer.load.i16.s %r0, %i0:1
  vm.return %i2
}
vm.func @letter(%i0:1: i64) -> (i32) {
  %r0 = vm.const.ref.rodata 2
  %i2 = vm.buffer.load.i8.u %r0, %i0:1
  vm.return %i2
}
vm.func @filled() -> (i64, i32) {
  %i0:1 = vm.const.i64 12
  %i2 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i0:1, %i2
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 3
  %i8 = vm.const.i32 9
  vm.buffer.fill.i32 %r0, %i4:5, %i6:7, %i8
  %i9 = vm.buffer.load.i32 %r0, %i4:5
  vm.buffer.store.i64 %i6:7, %r0, %i4:5
  %i10:11 = vm.buffer.load.i64 %r0, %i4:5
  vm.discard.refs %r0
  vm.return %i10:11, %i9
}
vm.func @change() -> () {
  %r0 = vm.const.ref.rodata 0
  %i0:1 = vm.const.i64.zero
  %i2 = vm.const.i32 1
  vm.buffer.store.i32 %i2, %r0, %i0:1
  vm.return
}
vm.func @hash() -> (i64) {
  %r0 = vm.const.ref.rodata 1
  %i0:1 = vm.const.i64.zero
  %i2:3 = vm.buffer.length %r0
  %i4:5 = vm.buffer.hash %r0, %i0:1, %i2:3
  vm.return %i4:5
}
)"});
}

TEST(TextPrograms, GlobalsAndInitialisation) {
  check_programs({R"(
// run: read -> i32=40 i64=-3 i32=40
// run: read_at 12 -> i32=-1
// run: read_at 13 -> fails OUT_OF_RANGE
// run: refs -> i32=0 i32=1 i32=0
vm.module @globals
vm.global.i64 mutable @second = 0 : i64
vm.global.f32 private @zero
vm.global.i32 private mutable @first = 0 : i32
vm.rodata[0] = 2A
vm.func @__init() -> () {
  %i0 = vm.const.i32 40
  vm.global.store.i32 %i0, @first
  %i2:3 = vm.const.i64 -3
  vm.global.store.i64 %i2:3, @second
  vm.return
}
vm.func @read() -> (i32, i64, i32) {
  %i0 = vm.global.load.i32 @first
  %i2:3 = vm.global.load.i64 @second
  %i4 = vm.global.load.i32 .rwdata[4]
  vm.return %i0, %i2:3, %i4
}
vm.func @read_at(%i0: i32) -> (i32) {
  %i0 = vm.global.load.indirect.i32 %i0
  vm.return %i0
}
vm.func @refs() -> (i32, i32, i32) {
  %r0 = vm.global.load.ref .refs[2] : !vm.buffer
  %i0 = vm.cmp.nz.ref %r0
  %r0 = vm.const.ref.rodata 0
  vm.global.store.ref %R0, .refs[2] : !vm.buffer
  %i3 = vm.const.i32 2
  %R1 = vm.global.load.indirect.ref %i3 : !vm.buffer
  %i1 = vm.cmp.nz.ref %r1
  %r2 = vm.global.load.ref .refs[2] : !vm.buffer
  %i2 = vm.cmp.nz.ref %r2
  vm.return %i0, %i1, %i2
}
)"});
}

TEST(TextPrograms, Lists) {
  check_programs({R"(
// run: bytes 300 -> i32=44
// run: floats -> f32=0.5 i32=0
// run: at 2 -> i32=0
// run: at 3 -> fails OUT_OF_RANGE
// run: anything -> i32=2 i32=1
// run: other_type -> i32=0
vm.module @lists
vm.type !vm.list<i16>
vm.rodata[0] = 00
vm.func @bytes(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %r0 = vm.list.alloc %i1 : !vm.list<i8>
  vm.list.resize %r0, %i1
  vm.list.set.i32 %r0, %i2, %i0
  %i0 = vm.list.get.i32 %r0, %i2
  vm.return %i0
}
vm.func @floats() -> (f32, i32) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %r0 = vm.list.alloc %i1 : !vm.list<f32>
  vm.list.resize %r0, %i1
  %i0 = vm.const.f32 0.5
  vm.list.set.f32 %r0, %i2, %i0
  %i3 = vm.list.get.f32 %r0, %i2
  %i4 = vm.list.get.i32 %r0, %i2
  vm.return %i3, %i4
}
vm.func @at(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 3
  %r0 = vm.list.alloc %i1 : !vm.list<i64>
  vm.list.reserve %r0, %i1
  vm.list.resize %r0, %i1
  %i0 = vm.list.get.i32 %r0, %i0
  vm.return %i0
}
vm.func @anything() -> (i32, i32) {
  %i0 = vm.const.i32 2
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %r0 = vm.list.alloc %i0 : !vm.list<!vm.opaque>
  vm.list.resize %r0, %i0
  %r1 = vm.const.ref.rodata 0
  vm.list.set.ref %r0, %i1, %R1
  vm.list.set.i32 %r0, %i2, %i0
  %r1 = vm.list.get.ref %r0, %i1 : !vm.buffer
  %i3 = vm.cmp.nz.ref %r1
  %i4 = vm.list.size %r0
  vm.return %i4, %i3
}
vm.func @other_type() -> (i32) {
  %i0 = vm.const.i32 1
  %i1 = vm.const.i32.zero
  %r0 = vm.list.alloc %i0 : !vm.list<!vm.buffer>
  vm.list.resize %r0, %i0
  %r1 = vm.const.ref.rodata 0
  vm.list.set.ref %r0, %i1, %r1
  %r1 = vm.list.get.ref %r0, %i1 : !vm.list<i16>
  %i0 = vm.cmp.nz.ref %r1
  vm.return %i0
}
)"});
}

TEST(TextPrograms, SelectAndSwitch) {
  check_programs({R"(
// run: select 5 -> i32=1 i64=8589934592
// run: select 0 -> i32=2 i64=3
// run: switch 0 -> i32=10
// run: switch 2 -> i32=0
// run: switch -1 -> i32=0
// run: wide 0 -> i64=8589934592
// run: wide 1 -> i64=3
// run: refs 1 -> i32=1 i32=0
// run: refs 7 -> i32=0 i32=1
vm.module @choices
vm.rodata[0] = 00
vm.func @select(%i0: i32) -> (i32, i64) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 2
  %i1 = vm.select.i32 %i0 ? %i1 : %i2
  %i4:5 = vm.const.i64 8589934592
  %i6:7 = vm.const.i64 3
  %i4:5 = vm.select.i64 %i0 ? %i4:5 : %i6:7
  vm.return %i1, %i4:5
}
vm.func @switch(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 10
  %i2 = vm.const.i32 20
  %i3 = vm.const.i32.zero
  %i0 = vm.switch.i32 %i0[%i1, %i2] else %i3
  vm.return %i0
}
vm.func @wide(%i0: i32) -> (i64) {
  %i2:3 = vm.const.i64 8589934592
  %i4:5 = vm.const.i64 3
  %i2:3 = vm.switch.i64 %i0[%i2] else %i4:5
  vm.return %i2:3
}
vm.func @refs(%i0: i32) -> (i32, i32) {
  %r0 = vm.const.ref.zero
  %r1 = vm.const.ref.rodata 0
  %r2 = vm.switch.ref %i0[%r0, %R1] else %r0 -> !vm.buffer
  %i1 = vm.cmp.nz.ref %r2
  %i2 = vm.cmp.nz.ref %r1
  vm.return %i1, %i2
}
)"});
}

TEST(TextPrograms, ControlFlow) {
  check_programs({R"(
// run: sum 4 -> i32=10
// run: sum -1 -> i32=0
// run: table 0 -> i32=7
// run: table 1 -> i32=8
// run: table 2 -> i32=9
// run: exchange 3 4 -> i32=4 i32=4
// run: carry 8589934592 -> i64=8589934592
// run: hooks 1 -> i32=1
// run: refuse 0 -> i32=0
// run: refuse 8 -> fails RESOURCE_EXHAUSTED
vm.module @flow
vm.func @sum(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32 1
  %i3 = vm.const.i32.zero
  vm.br ^bb1(%i0 -> %i4)
^bb1:
  %i5 = vm.cmp.lt.i32.s %i3, %i4
  vm.cond_br %i5, ^bb2(%i1 -> %i6), ^bb3
^bb2:
  %i1 = vm.add.i32 %i6, %i4
  %i7 = vm.sub.i32 %i4, %i2
  vm.br ^bb1(%i7 -> %i4)
^bb3:
  vm.return %i1
}
vm.func @table(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 7
  %i2 = vm.const.i32 8
  %i3 = vm.const.i32 9
  vm.br_table %i0 { default: ^bb1(%i3 -> %i0), 0: ^bb1(%i1 -> %i0), 1: ^bb1(%i2 -> %i0) }
^bb1:
  vm.return %i0
}
vm.func @exchange(%i0: i32, %i1: i32) -> (i32, i32) {
  vm.br ^bb1(%i1 -> %i0, %i0 -> %i1)   // one after the other
^bb1:
  vm.return %i0, %i1
}
vm.func @carry(%i0:1: i64) -> (i64) {
  vm.br ^bb1(%i0 -> %i2, %i1 -> %i3)
^bb1:
  vm.return %i2:3
}
vm.func @hooks(%i0: i32) -> (i32) {
  vm.trace "here", %i0
  vm.print "there"
  vm.break ^bb1
^bb1:
  vm.cond_break %i0, ^bb2(%i0 -> %i1)
^bb2:
  vm.return %i1
}
vm.func @refuse(%i0: i32) -> (i32) {
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  vm.fail %i0, "no // more # of \this"
^bb2:
  vm.return %i0
}
)"});
}

TEST(TextPrograms, RefsAndMoves) {
  const char* program = R"(
// run: cast -> fails INVALID_ARGUMENT
// run: identity -> i32=1 i32=0
vm.module @refs
vm.rodata[0] = 01
vm.rodata[1] = 01
vm.func @cast() -> () {
  %r0 = vm.const.ref.rodata 0
  %r0 = vm.cast.any.ref %r0 : !vm.ref<?> -> !vm.list<f32>
  vm.return
}
vm.func @identity() -> (i32, i32) {
  %r0 = vm.const.ref.rodata 0
  %r1 = vm.const.ref.rodata 0
  %r2 = vm.const.ref.rodata 1
  %i0 = vm.cmp.eq.ref %r0, %r1
  %i1 = vm.cmp.eq.ref %r1, %m2
  vm.return %i0, %i1
}
)";
  for (const uint32_t version : {15u, 16u, 17u}) check_programs({program}, version);
  check_programs({R"(
// run: moves -> i32=1 i32=0 i32=0
vm.module @moves
vm.rodata[0] = 01
vm.func @moves() -> (i32, i32, i32) {
  %r0 = vm.const.ref.rodata 0
  %r1 = vm.assign.ref %r0
  %i0 = vm.cmp.nz.ref %r0
  %r2 = vm.assign.ref %R1
  %i1 = vm.cmp.nz.ref %r1
  vm.discard.refs %r0, %R2
  %i2 = vm.cmp.nz.ref %r2
  vm.return %i0, %i1, %i2
}
)"});
}

TEST(TextPrograms, ImportsBetweenModules) {
  check_programs({R"(
// run: triple -5 -> i32=-15
vm.module @library version 4
vm.func @triple(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 3
  %i0 = vm.mul.i32 %i0, %i1
  vm.return %i0
}
vm.func @scale(%i0:1: i64, %i2: i32) -> (i64) {
  %i4:5 = vm.ext.i32.i64.s %i2
  %i0:1 = vm.mul.i64 %i0:1, %i4:5
  vm.return %i0:1
}
)",
                  R"(
// run: main 7 -> i32=21 i64=-70000000000
// run: has -> i32=1 i32=0
// run: absent -> fails NOT_FOUND
vm.module @program
vm.dependency @library 4
vm.import @library.triple cconv "0i_i"
vm.import @library.scale cconv ""
vm.import optional @library.none cconv "0v_v"
vm.func @main(%i0: i32) -> (i32, i64) {
  %i1 = vm.call @library.triple(%i0)
  %i2:3 = vm.const.i64 -10000000000
  %i2:3 = vm.call @library.scale(%i2:3, %i0)
  vm.return %i1, %i2:3
}
vm.func @has() -> (i32, i32) {
  %i0 = vm.import.resolved @library.triple
  %i1 = vm.import.resolved @library.none
  vm.return %i0, %i1
}
vm.func @absent() -> () {
  vm.call @library.none()
  vm.return
}
)"});
}

TEST(TextPrograms, CallsRecursionAndYields) {
  check_programs({R"(
// run: power 2 10 -> i32=1024
// run: through 21 -> i32=42
// run: pause 5 -> i32=5
vm.module @calls
vm.export @power
vm.export @through
vm.export @pause
vm.func @power(%i0: i32, %i1: i32) -> (i32) {
  %i2 = vm.const.i32 1
  vm.cond_br %i1, ^bb1, ^bb2
^bb1:
  %i1 = vm.sub.i32 %i1, %i2
  %i3 = vm.call @calls:0(%i0, %i1)
  %i3 = vm.mul.i32 %i0, %i3
  vm.return %i3
^bb2:
  vm.return %i2
}
vm.func @through(%i0: i32) -> (i32) {
  vm.call.yieldable @calls.twice(%i0) -> ^bb1(%i3)
^bb1:
  vm.return %i3
}
vm.func @twice(%i0: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i0
  vm.return %i0
}
vm.func @pause(%i0: i32) -> (i32) {
  vm.yield ^bb1(%i0 -> %i1)
^bb1:
  vm.return %i1
}
)"});
}

// Needs a host that provides the imports; the test only checks that it is assembled and disassembled.
// A constant that no register has, beside the result of a call, is still known after the call: it is not the
// high half of the result.
TEST(TextPrograms, ConstantsBesideResultsOfCalls) {
  check_programs({R"(
// run: narrow 5 -> i32=5 i32=6
// run: constants 5 -> i32=5 i32=9
// run: wide 5 -> i64=5 i32=10
// run: beside 5 -> i64=5 i64=8
vm.module @m
vm.func @same(%i0: i32) -> (i32) {
  vm.return %i0
}
vm.func @same_wide(%i0:1: i64) -> (i64) {
  vm.return %i0:1
}
vm.func @narrow(%i0: i32) -> (i32, i32) {
  %i1 = vm.const.i32 1
  %i0 = vm.call @same(%i0)
  %i3 = vm.add.i32 %i0, %i1
  vm.return %i0, %i3
}
vm.func @constants(%i0: i32) -> (i32, i32) {
  %i1 = vm.const.i32 1
  %i0 = vm.call @same(%i0)
  %i3 = vm.const.i32 8
  %i3 = vm.add.i32 %i3, %i1
  vm.return %i0, %i3
}
vm.func @wide(%i0:1: i64) -> (i64, i32) {
  %i2 = vm.const.i32 5
  %i0:1 = vm.call @same_wide(%i0:1)
  %i3 = vm.trunc.i64.i32 %i0:1
  %i3 = vm.add.i32 %i3, %i2
  vm.return %i0:1, %i3
}
vm.func @beside(%i0:1: i64) -> (i64, i64) {
  %i2:3 = vm.const.i64 3
  %i0:1 = vm.call @same_wide(%i0:1)
  %i4:5 = vm.add.i64 %i0:1, %i2:3
  vm.return %i0:1, %i4:5
}
)"});
}

TEST(TextPrograms, VariadicAndYieldableImports) {
  const auto bytes = ASSERT_VALUE(assemble(R"(
vm.module @spans
vm.import @host.total cconv "0CiD_i"
vm.import @host.later cconv "0rCiID_I"
vm.func @total(%i0: i32, %i2:3: i64, %r0: !vm.buffer) -> (i64) {
  %i0 = vm.call.variadic @host.total segments[3](%i0, %i0, %i0)
  vm.call.variadic.yieldable @host.later segments[65535, 1](%R0, %i0, %i2:3) -> ^bb1(%i4:5)
^bb1:
  vm.return %i4:5
}
)",
                                           {0, "spans.vmasm"}));
  const std::string text = round_trip(bytes);
  EXPECT_TRUE(contains(text, "segments[65535, 1](%R0, %i0, %i2:3) -> ^bb1(%i4:5)")) << text;
}

}  // namespace
}  // namespace halyard::vm::test
