// Compiled functions that are kept in a folder: which other function is the same one, what is not compiled if
// only the folder may be asked, and what is counted. And what the compiler tells about a function.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fixtures.h"
#include "program.h"
#include "vm/decode/words.h"

namespace halyard::vm::test {
namespace {

constexpr std::string_view kSum = R"(vm.module @m
vm.export @f
vm.func @f(%i0:1: i64) -> (i64) {
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 1
  vm.br ^bb1
^bb1:
  %i8 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i8, ^bb2, ^bb3
^bb2:
  %i4:5 = vm.add.i64 %i4:5, %i2:3
  %i2:3 = vm.add.i64 %i2:3, %i6:7
  vm.br ^bb1
^bb3:
  vm.return %i4:5
}
)";
constexpr std::string_view kFactorial = R"(vm.module @m
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  %i2 = vm.cmp.lt.i32.s %i0, %i1
  vm.cond_br %i2, ^bb1, ^bb2
^bb1:
  vm.return %i1
^bb2:
  %i3 = vm.sub.i32 %i0, %i1
  %i3 = vm.call @m:0(%i3)
  %i0 = vm.mul.i32 %i0, %i3
  vm.return %i0
}
)";

const Compiler& the_compiler() { return **Compiler::find(); }

struct Decoded {
  explicit Decoded(std::string_view text, Entries entries = Entries::calls)
      : module(load(text, {.verify_eagerly = true})),
        code(*decode_function(*module, 0, {.fuse = false, .entries = entries})) {}
  Ref<LoadedModule> module;
  std::unique_ptr<FunctionCode> code;
};

// How the counters change.
struct Counted {
  uint64_t functions, cached, refused;
  bool operator==(const Counted&) const = default;
};
Counted counted(const auto& work) {
  const halyard_jit_stats_t before = Compiler::stats();
  work();
  const halyard_jit_stats_t after = Compiler::stats();
  return {after.functions - before.functions, after.cached - before.cached, after.refused - before.refused};
}
std::ostream& operator<<(std::ostream& out, const Counted& counts) {
  return out << counts.functions << " functions, " << counts.cached << " cached, " << counts.refused
             << " refused";
}

constexpr Counted kCompiled = {1, 0, 0}, kFound = {1, 1, 0}, kRefused = {0, 0, 1}, kNotThere = {0, 0, 0};

class CachedFunctionsTest : public testing::Test {
 protected:
  Counted compile(const FunctionCode& code, bool cached_only = false) {
    return counted([&] {
      made_ = the_compiler().compile(code, {.cache = folder_.path() / "cache", .cached_only = cached_only});
    });
  }
  const TemporaryFolder folder_;
  Result<CompiledFunction> made_ = fail(Code::UNKNOWN, "nothing was compiled");
};

TEST_F(CachedFunctionsTest, AreFoundAgain) {
  const Decoded sum(kSum), same(kSum), other(replaced(std::string(kSum), "vm.const.i64 1", "vm.const.i64 2"));
  EXPECT_EQ(compile(*sum.code), kCompiled);
  EXPECT_OK(made_);
  EXPECT_EQ(compile(*same.code), kFound);
  EXPECT_OK(made_);
  EXPECT_EQ(compile(*other.code), kCompiled) << "another number";
  EXPECT_EQ(counted([&] { made_ = the_compiler().compile(*sum.code, {}); }), kCompiled) << "without a folder";
}

TEST_F(CachedFunctionsTest, NothingIsCompiledIfOnlyTheFolderMayBeAsked) {
  const Decoded sum(kSum);
  EXPECT_EQ(compile(*sum.code, true), kNotThere) << "it is not refused either";
  EXPECT_FAILS(UNIMPLEMENTED, "it is not in the cache", made_);
  EXPECT_EQ(compile(*sum.code), kCompiled);
  EXPECT_EQ(compile(*sum.code, true), kFound);
}

TEST_F(CachedFunctionsTest, WhatCannotBeCompiledIsCountedAndExplained) {
  const Decoded nothing("vm.module @m\nvm.export @f\nvm.func @f() -> () {\n  vm.return\n}\n");
  EXPECT_EQ(compile(*nothing.code), kRefused);
  EXPECT_FAILS(UNIMPLEMENTED, "it has no instruction that is compiled", made_);
  const auto explained = the_compiler().explain(*nothing.code);
  EXPECT_FAILS(UNIMPLEMENTED, "'m.f' stays interpreted: it has no instruction that is compiled", explained);
}

TEST_F(CachedFunctionsTest, OthersAreExplained) {
  const Decoded sum(kSum);
  const auto explained = ASSERT_VALUE(the_compiler().explain(*sum.code));
  EXPECT_NE(explained.ir.find("define "), std::string::npos) << explained.ir;
  EXPECT_NE(explained.assembly.find("ret"), std::string::npos) << explained.assembly;
}

// The interpreter's frame may have more slots if a function has several versions. The code differs only if it
// makes frames: if the function calls itself.
TEST_F(CachedFunctionsTest, TheSizeOfFramesCountsOnlyWhereCodeMakesThem) {
  const auto with_larger_frame = [](FunctionCode& code) {
    ++code.ref_slots;
    int returns = 0;
    for (uint32_t at = 0; at < code.words.size(); at += word_count(code.words[at])) {
      const uint16_t op = code.words[at].op;
      for (const DecodedOp each : {DecodedOp::return_none, DecodedOp::return_32, DecodedOp::return_64})
        if (op == static_cast<uint16_t>(each)) {
          ++const_cast<Word&>(code.words[at]).b;  // they are this test's alone
          ++returns;
        }
    }
    return returns;
  };
  for (const std::string_view returned : {"", "%i4", "%i4:5"}) {
    std::string text(kSum);
    text = replaced(text, "vm.return %i4:5", "vm.return " + std::string(returned));
    text = replaced(text, "-> (i64) {",
                    returned.empty()    ? "-> () {"
                    : returned == "%i4" ? "-> (i32) {"
                                        : "-> (i64) {");
    const Decoded sum(text);
    EXPECT_EQ(compile(*sum.code), kCompiled) << returned;
    EXPECT_EQ(with_larger_frame(*sum.code), 1);
    EXPECT_EQ(compile(*sum.code), kFound) << returned;
  }
  const Decoded factorial(kFactorial);
  ASSERT_TRUE(calls_itself(*factorial.code));
  EXPECT_EQ(compile(*factorial.code), kCompiled);
  ++factorial.code->value_slots;
  EXPECT_EQ(compile(*factorial.code), kCompiled);
}

}  // namespace
}  // namespace halyard::vm::test
