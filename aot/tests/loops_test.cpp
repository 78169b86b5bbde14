// Generated loop nests over buffers and lists, whose checks of bounds may be made before the loops: their C
// has the interpreter's results and statuses, and leaves the same bytes behind when an access fails in the
// middle. HALYARD_SEEDS=n tests more.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <map>

#include "aot/translate.h"
#include "c_program.h"
#include "function_generator.h"
#include "module_builder.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"
#include "vm/text/assembler.h"

namespace halyard::aot::test {
namespace {

using vm::Variant;
using vm::test::Choices;

constexpr uint32_t kLoopFunctions = 12;  // of a module
constexpr int kLoopRounds = 10;

// Registers: the arguments n, m, step and offset are %i0:1 to %i6:7, the sum is %i8:9, the constants 0 and 1
// of both widths are %i10:11 to %i15. Counters begin at %i20 (i64) and %i40 (i32); %i30 to %i39 are scratch.
class NestWriter {
 public:
  explicit NestWriter(Choices& choices) : choices_(choices) {}

  std::string write(uint32_t ordinal) {
    line(fmt::format("vm.func @f{}(%i0:1: i64, %i2:3: i64, %i4:5: i64, %i6:7: i64) -> (i64) {{", ordinal));
    line("^entry:");
    line("%i10:11 = vm.const.i64.zero");
    line("%i12:13 = vm.const.i64 1");
    line("%i14 = vm.const.i32.zero");
    line("%i15 = vm.const.i32 1");
    line("%i8:9 = vm.const.i64.zero");
    line(fmt::format("%i16 = vm.const.i32 {}", choices_.pick(std::vector<int>{2, 40, 500})));
    line("%r0 = vm.global.load.ref .refs[0] : !vm.buffer");
    line("%r1 = vm.global.load.ref .refs[1] : !vm.buffer");
    line("%r2 = vm.global.load.ref .refs[2] : !vm.list<i32>");
    line("%r3 = vm.global.load.ref .refs[3] : !vm.list<i64>");
    depth_ = 1 + choices_.below(3);
    loop(0, "done");
    line("^done:");
    line("vm.return %i8:9");
    line("}");
    return std::move(text_);
  }

 private:
  struct Counter {
    bool wide = true;
    std::string reg;
  };

  void line(std::string_view text) { text_ += fmt::format("{}\n", text); }
  template <typename T>
  T one_of(std::initializer_list<T> all) {
    return choices_.pick(std::vector<T>(all));
  }

  // An i64 that the loops inside do not change, or a counter.
  std::string wide_value(uint32_t level) {
    if (level > 0 && choices_.one_in(3)) {
      const Counter& outer = counters_[choices_.below(level)];
      if (outer.wide) return outer.reg;
      line(fmt::format("%i30:31 = vm.ext.i32.i64.{} {}", one_of({"s", "u"}), outer.reg));
      return "%i30:31";
    }
    return one_of<std::string>({"%i0:1", "%i2:3", "%i6:7", "%i10:11", "%i12:13"});
  }
  std::string as_counter(const Counter& counter, const std::string& value, const std::string& scratch) {
    if (counter.wide) return value;
    line(fmt::format("{} = vm.trunc.i64.i32 {}", scratch, value));
    return scratch;
  }

  void loop(uint32_t level, const std::string& after) {
    Counter& counter = counters_[level];
    counter.wide = choices_.below(3) != 0;
    counter.reg = counter.wide ? fmt::format("%i{}:{}", 20 + 2 * level, 21 + 2 * level)
                               : fmt::format("%i{}", 40 + level);
    const char* const type = counter.wide ? "i64" : "i32";
    const std::string start = choices_.one_in(3) ? wide_value(level) : std::string("%i10:11");
    if (counter.wide) {
      line(fmt::format("{} = vm.add.i64 {}, %i10:11", counter.reg, start));
    } else {
      line(fmt::format("{} = vm.trunc.i64.i32 {}", counter.reg, start));
    }
    const bool top = choices_.one_in(2);
    const bool negated = choices_.one_in(4);
    const std::string sign = one_of({"s", "s", "u"});
    const std::string end = fmt::format("end{}", level);
    const auto test = [&](const std::string& go) {
      const std::string bound = as_counter(counter, choices_.one_in(2) ? "%i0:1" : wide_value(level), "%i32");
      if (negated) {
        line(fmt::format("%i33 = vm.cmp.lt.{}.{} {}, {}", type, sign, bound, counter.reg));
        line(fmt::format("vm.cond_br %i33, ^{}, ^{}", end, go));
      } else {
        line(fmt::format("%i33 = vm.cmp.lt.{}.{} {}, {}", type, sign, counter.reg, bound));
        line(fmt::format("vm.cond_br %i33, ^{}, ^{}", go, end));
      }
    };
    line(fmt::format("vm.br ^head{}", level));
    line(fmt::format("^head{}:", level));
    line("%i16 = vm.sub.i32 %i16, %i15");
    line("%i33 = vm.cmp.eq.i32 %i16, %i14");
    line(fmt::format("vm.cond_br %i33, ^done, ^top{}", level));
    line(fmt::format("^top{}:", level));
    if (top) {
      test(fmt::format("body{}", level));
      line(fmt::format("^body{}:", level));
    }
    accesses(level);
    if (level + 1 < depth_) {
      loop(level + 1, fmt::format("rest{}", level));
      line(fmt::format("^rest{}:", level));
      if (choices_.one_in(2)) accesses(level);
    }
    const std::string step = one_of<std::string>({"%i12:13", "%i12:13", "%i4:5"});
    // In place, or through a move.
    const bool moves = top && choices_.one_in(2);
    const std::string next = counter.wide ? "%i34:35" : "%i34";
    const std::string amount = as_counter(counter, step, "%i36");
    line(fmt::format("{} = vm.add.{} {}, {}", moves ? next : counter.reg, type, counter.reg, amount));
    if (!top) {
      test(fmt::format("head{}", level));
    } else {
      line(fmt::format("vm.br ^head{}({})", level, moves ? fmt::format("{} -> {}", next, counter.reg) : ""));
    }
    line(fmt::format("^{}:", end));
    line(fmt::format("vm.br ^{}", after));
  }

  // The sum of some counters, each times something, in %i30:31.
  void index(uint32_t level) {
    line(fmt::format("%i36:37 = vm.add.i64 {}, %i10:11", one_of({"%i10:11", "%i10:11", "%i6:7", "%i12:13"})));
    for (uint32_t i = 0; i <= level; ++i) {
      if (i != level && choices_.one_in(3)) continue;
      if (counters_[i].wide) {
        line(fmt::format("%i30:31 = vm.mul.i64 {}, {}", counters_[i].reg,
                         one_of({"%i12:13", "%i12:13", "%i2:3"})));
      } else {
        line(fmt::format("%i30:31 = vm.ext.i32.i64.{} {}", one_of({"s", "u"}), counters_[i].reg));
      }
      line("%i36:37 = vm.add.i64 %i36:37, %i30:31");
    }
    line("%i30:31 = vm.add.i64 %i36:37, %i10:11");
  }

  void accesses(uint32_t level) {
    for (uint32_t n = 1 + choices_.below(2); n > 0; --n) {
      index(level);
      const char* const ref = one_of({"%r0", "%r1"});
      switch (choices_.below(6)) {
        case 0:
          line(fmt::format("%i32 = vm.buffer.load.i8.u {}, %i30:31", ref));
          add_narrow();
          break;
        case 1:
          line(fmt::format("%i36:37 = vm.buffer.load.i64 {}, %i30:31", ref));
          line("%i8:9 = vm.add.i64 %i8:9, %i36:37");
          break;
        case 2:
          line("%i32 = vm.trunc.i64.i32 %i8:9");
          line(fmt::format("vm.buffer.store.i16 %i32, {}, %i30:31", ref));
          break;
        case 3:
          line(fmt::format("vm.buffer.store.i32 {}, {}, %i30:31",
                           counters_[level].wide ? "%i16" : counters_[level].reg, ref));
          break;
        case 4:
          line("%i34 = vm.trunc.i64.i32 %i30:31");
          if (choices_.one_in(2)) {
            line(fmt::format("%i32 = vm.list.get.i32 {}, %i34", one_of({"%r2", "%r2", "%r3"})));
            add_narrow();
          } else {
            line(fmt::format("vm.list.set.i32 {}, %i34, %i16", one_of({"%r2", "%r2", "%r3"})));
          }
          if (choices_.one_in(8)) line("vm.list.resize %r2, %i34");
          break;
        default:
          line("%i34 = vm.trunc.i64.i32 %i30:31");
          if (choices_.one_in(2)) {
            line("%i36:37 = vm.list.get.i64 %r3, %i34");
            line("%i8:9 = vm.add.i64 %i8:9, %i36:37");
          } else {
            line("vm.list.set.i64 %r3, %i34, %i8:9");
          }
          break;
      }
    }
  }
  void add_narrow() {
    line("%i30:31 = vm.ext.i32.i64.s %i32");
    line("%i8:9 = vm.add.i64 %i8:9, %i30:31");
  }

  Choices& choices_;
  std::string text_;
  uint32_t depth_ = 1;
  Counter counters_[3];
};

// `reset` makes the buffers and lists, `hash` tells what is in them.
constexpr std::string_view kFrame = R"(
vm.module @m
vm.type i32
vm.type i64
vm.type !vm.buffer
vm.type !vm.list<i32>
vm.type !vm.list<i64>
vm.export @f0
vm.func @f0(%i0:1: i64, %i2:3: i64) -> (i64) {
  %i4 = vm.const.i32 16
  %i5 = vm.const.i32 5
  %i6:7 = vm.const.i64.zero
  %r0 = vm.buffer.alloc %i0:1, %i4
  vm.buffer.fill.i8 %r0, %i6:7, %i0:1, %i5
  %r1 = vm.buffer.alloc %i2:3, %i4
  %i10 = vm.trunc.i64.i32 %i0:1
  %i11 = vm.trunc.i64.i32 %i2:3
  %r2 = vm.list.alloc %i10 : !vm.list<i32>
  vm.list.resize %r2, %i10
  %r3 = vm.list.alloc %i11 : !vm.list<i64>
  vm.list.resize %r3, %i11
  vm.global.store.ref %r0, .refs[0] : !vm.buffer
  vm.global.store.ref %r1, .refs[1] : !vm.buffer
  vm.global.store.ref %r2, .refs[2] : !vm.list<i32>
  vm.global.store.ref %r3, .refs[3] : !vm.list<i64>
  vm.return %i6:7
}
vm.export @f1
vm.func @f1() -> (i64, i64, i64) {
^entry:
  %r0 = vm.global.load.ref .refs[0] : !vm.buffer
  %r1 = vm.global.load.ref .refs[1] : !vm.buffer
  %r2 = vm.global.load.ref .refs[2] : !vm.list<i32>
  %r3 = vm.global.load.ref .refs[3] : !vm.list<i64>
  %i0:1 = vm.const.i64.zero
  %i2:3 = vm.buffer.length %r0
  %i4:5 = vm.buffer.hash %r0, %i0:1, %i2:3
  %i2:3 = vm.buffer.length %r1
  %i6:7 = vm.buffer.hash %r1, %i0:1, %i2:3
  %i20:21 = vm.const.i64 31
  %i10 = vm.list.size %r2
  %i14 = vm.const.i32 1
  %i11 = vm.const.i32.zero
  vm.br ^narrow
^narrow:
  %i12 = vm.cmp.lt.i32.u %i11, %i10
  vm.cond_br %i12, ^narrow_body, ^wide_begin
^narrow_body:
  %i16 = vm.list.get.i32 %r2, %i11
  %i18:19 = vm.ext.i32.i64.u %i16
  %i0:1 = vm.mul.i64 %i0:1, %i20:21
  %i0:1 = vm.add.i64 %i0:1, %i18:19
  %i11 = vm.add.i32 %i11, %i14
  vm.br ^narrow
^wide_begin:
  %i10 = vm.list.size %r3
  %i11 = vm.const.i32.zero
  vm.br ^wide
^wide:
  %i12 = vm.cmp.lt.i32.u %i11, %i10
  vm.cond_br %i12, ^wide_body, ^end
^wide_body:
  %i18:19 = vm.list.get.i64 %r3, %i11
  %i0:1 = vm.mul.i64 %i0:1, %i20:21
  %i0:1 = vm.add.i64 %i0:1, %i18:19
  %i11 = vm.add.i32 %i11, %i14
  vm.br ^wide
^end:
  vm.return %i4:5, %i6:7, %i0:1
}
)";

// Blocks have numbers in the language.
std::string with_numbers(std::string_view text) {
  std::string made;
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("vm.func")) numbers.clear();
    made += text[i];
    if (text[i] != '^') continue;
    std::string name;
    while (std::isalnum(static_cast<unsigned char>(text[i + 1])) || text[i + 1] == '_') name += text[++i];
    made += fmt::format("bb{}", numbers.emplace(name, numbers.size()).first->second);
  }
  return made;
}

uint64_t any_argument(Choices& choices) {
  constexpr uint64_t kEdges[] = {0,
                                 1,
                                 UINT64_MAX,
                                 INT64_MAX,
                                 uint64_t{1} << 63,
                                 INT32_MAX,
                                 uint64_t{1} << 31,
                                 UINT32_MAX,
                                 uint64_t{1} << 32,
                                 uint64_t{0} - 7};
  if (choices.one_in(5)) return kEdges[choices.below(std::size(kEdges))];
  return choices.below(choices.one_in(3) ? 40 : 8);
}

struct Compared {
  size_t passed = 0;  // calls
  size_t failed = 0;
  size_t copies = 0;  // of loops
};

void compare(uint64_t seed, const std::string& compiler, Compared& compared) {
  SCOPED_TRACE(fmt::format("seed {}, {}", seed, compiler));
  Choices choices(seed);
  std::string text(kFrame);
  std::vector<Signature> signatures = {{"II", "I"}, {"", "III"}};
  for (uint32_t i = 2; i < kLoopFunctions; ++i) {
    text += fmt::format("vm.export @f{}\n", i) + NestWriter(choices).write(i);
    signatures.push_back({"IIII", "I"});
  }
  text = with_numbers(text);
  const auto bytes = vm::assemble(text, {15 + choices.below(3), "t.vmasm"});
  ASSERT_TRUE(bytes) << bytes.error().text() << text;
  const auto module = vm::LoadedModule::load(Bytes::copy(*bytes), {});
  ASSERT_TRUE(module) << module.error().text();
  const Ref<vm::Context> context = vm::Context::create({});
  ASSERT_TRUE(context->add(*module));
  CProgram program(*bytes, compiler, "-O1", signatures);
  ASSERT_EQ(program.error(), "");
  const auto files = translate(*bytes, {.name = "m"});
  ASSERT_TRUE(files);
  for (const File& file : *files)
    for (size_t at = file.text.find(" goto b"); at != std::string::npos;
         at = file.text.find(" goto b", at + 1))
      compared.copies += file.text.find_first_of("_;", at) == file.text.find('_', at);
  const auto call = [&](size_t function, const std::vector<uint64_t>& in) {
    std::vector<Variant> arguments;
    for (const uint64_t each : in) arguments.push_back(Variant::value(vm::ValueType::i64, each));
    std::vector<uint64_t> out(4);
    std::vector<Variant> results(signatures[function].results.size());
    const auto callee = context->find("m", fmt::format("f{}", function));
    ASSERT_TRUE(callee) << callee.error().text();
    const Result<> called = vm::Invocation(context).call(*callee, arguments, results);
    const int status = program.call(function, in.data(), out.data());
    ++(called ? compared.passed : compared.failed);
    ASSERT_EQ(status, called ? 0 : static_cast<int>(called.error().code()))
        << fmt::format("function {}({})\n", function, fmt::join(in, ", "))
        << (called ? "" : called.error().text()) << text;
    for (size_t i = 0; i < results.size() && called; ++i)
      ASSERT_EQ(out[i], results[i].bits())
          << fmt::format("function {}({}), result {}\n", function, fmt::join(in, ", "), i) << text;
  };
  for (int round = 0; round < kLoopRounds; ++round)
    for (size_t function = 2; function < signatures.size(); ++function) {
      call(0, {choices.below(300), choices.below(100)});
      std::vector<uint64_t> in;
      for (int i = 0; i < 4; ++i) in.push_back(any_argument(choices));
      call(function, in);
      call(1, {});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(GeneratedLoops, HaveTheInterpretersResults) {
  const char* const more = std::getenv("HALYARD_SEEDS");
  const uint64_t seeds = more ? std::strtoull(more, nullptr, 10) : 6;
  const std::vector<std::string> all = compilers();
  Compared compared;
  for (uint64_t seed = 0; seed < seeds && !HasFatalFailure(); ++seed)
    compare(seed, all[seed % all.size()], compared);
  // The generator makes loops that pass, loops that fail, and loops whose checks are made before them.
  EXPECT_GT(compared.passed, seeds * kLoopFunctions * 5);
  EXPECT_GT(compared.failed, seeds * kLoopFunctions);
  EXPECT_GT(compared.copies, seeds * kLoopFunctions);
  RecordProperty("passed", static_cast<int>(compared.passed));
  RecordProperty("failed", static_cast<int>(compared.failed));
}

}  // namespace
}  // namespace halyard::aot::test
