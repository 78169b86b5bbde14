// Functions that return their result instead of a status: their values, and what happens when calls are
// nested too deep.
#include <gtest/gtest.h>

#include "aot/translate.h"
#include "c_program.h"
#include "module_builder.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"
#include "vm/text/assembler.h"

namespace halyard::aot::test {
namespace {

using vm::Variant;

// f0 is fib, f1 a sum to n, f2 whether n is even (with a function that is not exported), f3 counts its calls
// in a global before and after it calls f1, f4 calls a loop, f5 has an effect at each level, f6 divides by
// the result of f1. f7 calls a function with an effect after it calls itself, f8 gives what that one has
// counted, f9 calls a function with a loop that ends for numbers other than 0 only.
constexpr std::string_view kProgram = R"(
vm.module @m
vm.type i32
vm.global.i32 mutable @before = 0 : i32
vm.global.i32 mutable @after = 0 : i32
vm.global.i32 mutable @steps = 0 : i32
vm.export @f0
vm.func @f0(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 2
  %i2 = vm.cmp.lt.i32.s %i0, %i1
  vm.cond_br %i2, ^bb1, ^bb2
^bb1:
  vm.return %i0
^bb2:
  %i3 = vm.const.i32 1
  %i4 = vm.sub.i32 %i0, %i3
  %i4 = vm.call @f0(%i4)
  %i5 = vm.sub.i32 %i0, %i1
  %i5 = vm.call @f0(%i5)
  %i4 = vm.add.i32 %i4, %i5
  vm.return %i4
}
vm.export @f1
vm.func @f1(%i0: i32) -> (i32) {
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i1 = vm.const.i32 1
  %i2 = vm.sub.i32 %i0, %i1
  %i2 = vm.call @f1(%i2)
  %i0 = vm.add.i32 %i0, %i2
  vm.br ^bb2
^bb2:
  vm.return %i0
}
vm.export @f2
vm.func @f2(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i2 = vm.sub.i32 %i0, %i1
  %i1 = vm.call @odd(%i2)
  vm.br ^bb2
^bb2:
  vm.return %i1
}
vm.func @odd(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i2 = vm.const.i32 1
  %i2 = vm.sub.i32 %i0, %i2
  %i1 = vm.call @f2(%i2)
  vm.br ^bb2
^bb2:
  vm.return %i1
}
vm.export @f3
vm.func @f3(%i0: i32) -> (i32, i32, i32) {
  %i1 = vm.const.i32 1
  %i2 = vm.global.load.i32 @before
  %i2 = vm.add.i32 %i2, %i1
  vm.global.store.i32 %i2, @before
  %i0 = vm.call @f1(%i0)
  %i3 = vm.global.load.i32 @after
  %i3 = vm.add.i32 %i3, %i1
  vm.global.store.i32 %i3, @after
  vm.return %i0, %i2, %i3
}
vm.export @f4
vm.func @f4(%i0: i32) -> (i32) {
  %i1 = vm.call @product(%i0)
  %i2 = vm.call @product(%i1)
  %i1 = vm.xor.i32 %i1, %i2
  vm.return %i1
}
vm.func @product(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 7
  %i3 = vm.const.i32 1
  vm.br ^bb1
^bb1:
  %i1 = vm.mul.i32 %i1, %i0
  %i1 = vm.add.i32 %i1, %i2
  %i2 = vm.sub.i32 %i2, %i3
  vm.cond_br %i2, ^bb1, ^bb2
^bb2:
  vm.return %i1
}
vm.export @f5
vm.func @f5(%i0: i32) -> (i32) {
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i1 = vm.const.i32 1
  %i3 = vm.global.load.i32 @after
  %i3 = vm.add.i32 %i3, %i1
  vm.global.store.i32 %i3, @after
  %i2 = vm.sub.i32 %i0, %i1
  %i2 = vm.call @f5(%i2)
  %i0 = vm.add.i32 %i0, %i2
  vm.br ^bb2
^bb2:
  vm.return %i0
}
vm.export @f6
vm.func @f6(%i0: i32, %i1: i32) -> (i32) {
  %i1 = vm.call @f1(%i1)
  %i0 = vm.div.i32.s %i0, %i1
  vm.return %i0
}
vm.export @f7
vm.func @f7(%i0: i32) -> (i32) {
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i1 = vm.const.i32 1
  %i1 = vm.sub.i32 %i0, %i1
  %i1 = vm.call @f7(%i1)
  %i1 = vm.call @step(%i1)
  vm.return %i1
^bb2:
  vm.return %i0
}
vm.func @step(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  %i2 = vm.global.load.i32 @steps
  %i2 = vm.add.i32 %i2, %i1
  vm.global.store.i32 %i2, @steps
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
}
vm.export @f8
vm.func @f8(%i0: i32) -> (i32) {
  %i0 = vm.global.load.i32 @steps
  vm.return %i0
}
vm.export @f9
vm.func @f9(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i2 = vm.sub.i32 %i0, %i1
  %i2 = vm.call @f9(%i2)
  %i2 = vm.call @wait(%i2)
  vm.return %i2
^bb2:
  vm.return %i1
}
vm.func @wait(%i0: i32) -> (i32) {
  vm.br ^bb1
^bb1:
  vm.cond_br %i0, ^bb2, ^bb1
^bb2:
  vm.return %i0
}
)";

const std::vector<Signature> kSignatures = {{"i", "i"}, {"i", "i"},  {"i", "i"}, {"i", "iii"}, {"i", "i"},
                                            {"i", "i"}, {"ii", "i"}, {"i", "i"}, {"i", "i"},   {"i", "i"}};
constexpr int kTooDeep = static_cast<int>(Code::RESOURCE_EXHAUSTED);

class DirectFunctions : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto bytes = vm::assemble(std::string(kProgram), {17, "t.vmasm"});
    ASSERT_TRUE(bytes) << bytes.error().text();
    bytes_ = *bytes;
    const auto module = vm::LoadedModule::load(Bytes::copy(bytes_), {});
    ASSERT_TRUE(module) << module.error().text();
    context_ = vm::Context::create({});
    ASSERT_TRUE(context_->add(*module));
    program_ = std::make_unique<CProgram>(bytes_, GetParam().substr(3), GetParam().substr(0, 3), kSignatures);
    ASSERT_EQ(program_->error(), "");
  }

  // The results of the interpreter and of the program are the same.
  void same(size_t function, const std::vector<uint64_t>& in) {
    std::vector<Variant> arguments;
    for (const uint64_t each : in) arguments.push_back(Variant::value(vm::ValueType::i32, each));
    std::vector<Variant> results(kSignatures[function].results.size());
    const auto callee = context_->find("m", fmt::format("f{}", function));
    ASSERT_TRUE(callee) << callee.error().text();
    const Result<> called = vm::Invocation(context_).call(*callee, arguments, results);
    std::vector<uint64_t> out(4);
    ASSERT_EQ(program_->call(function, in.data(), out.data()),
              called ? 0 : static_cast<int>(called.error().code()));
    for (size_t i = 0; i < results.size() && called; ++i)
      EXPECT_EQ(out[i], results[i].bits()) << fmt::format("f{}({}), result {}", function, in[0], i);
  }
  int status(size_t function, uint64_t argument) {
    uint64_t out[4];
    return program_->call(function, &argument, out);
  }

  std::vector<uint8_t> bytes_;
  Ref<vm::Context> context_;
  std::unique_ptr<CProgram> program_;
};

TEST_P(DirectFunctions, HaveTheInterpretersResults) {
  for (const uint64_t n : {0, 1, 2, 3, 10, 20}) same(0, {n});
  for (const uint64_t n : {0, 1, 5, 500}) {
    same(1, {n});
    same(2, {n});
    same(3, {n});
    same(4, {n});
    same(5, {n});
    same(6, {100, n});  // with 0, a division by zero
    same(7, {n});
    same(8, {0});
    same(9, {n});
  }
}

TEST_P(DirectFunctions, FailWhenCallsAreNestedTooDeep) {
  // The limit is 10,000 calls, of any shape; a failure leaves the program as it was.
  EXPECT_EQ(status(1, 9'999), 0);
  EXPECT_EQ(status(1, 10'000), kTooDeep);
  EXPECT_EQ(status(0, 20'000), kTooDeep);  // at once, although it would make very many calls
  EXPECT_EQ(status(2, 9'999), 0);
  EXPECT_EQ(status(2, 10'000), kTooDeep);
  EXPECT_EQ(status(5, 9'999), 0);
  EXPECT_EQ(status(5, 10'000), kTooDeep);
  EXPECT_EQ(status(1, 9'999), 0);
}

TEST_P(DirectFunctions, StopTheFunctionThatCallsThem) {
  const uint64_t few = 3;
  const uint64_t many = 10'000;
  uint64_t out[4] = {};
  ASSERT_EQ(program_->call(3, &few, out), 0);
  EXPECT_EQ(out[0], 6u);
  EXPECT_EQ(program_->call(3, &many, out), kTooDeep);
  // What follows the call did not run.
  ASSERT_EQ(program_->call(3, &few, out), 0);
  EXPECT_EQ(out[1], 3u);
  EXPECT_EQ(out[2], 2u);
}

TEST_P(DirectFunctions, StopBeforeTheEffectsAndLoopsOfTheFunctionsTheyCall) {
  const uint64_t none = 0;
  uint64_t out[4] = {};
  EXPECT_EQ(status(7, 20'000), kTooDeep);
  ASSERT_EQ(program_->call(8, &none, out), 0);
  EXPECT_EQ(out[0], 0u);
  EXPECT_EQ(status(9, 20'000), kTooDeep);
}

TEST(DirectFunctionsText, ReturnTheirResults) {
  const auto bytes = vm::assemble(std::string(kProgram), {17, "t.vmasm"});
  ASSERT_TRUE(bytes);
  const auto files = translate(*bytes, {.name = "m"});
  ASSERT_TRUE(files);
  std::string text;
  for (const File& file : *files) text += file.text;
  for (const char* const function : {"fn0_f0", "fn1_f1", "fn2_f2", "fn3", "fn5_f4", "fn6"})
    EXPECT_NE(text.find(fmt::format("static uint32_t {}(vm_state* s, uint32_t", function)), std::string::npos)
        << function;
  // Those with effects or loops, also of functions that they call, that may be nested too deep, and those
  // that may fail otherwise, return a status.
  for (const char* const function : {"f3", "f5", "f6", "f7", "f9"}) {
    const size_t at = text.find(fmt::format("_{}(vm_state* s", function));
    ASSERT_NE(at, std::string::npos) << function;
    EXPECT_EQ(text.substr(text.rfind('\n', at) + 1, 11), "static int ") << function;
  }
}

std::vector<std::string> builds() {
  std::vector<std::string> all;
  for (const std::string& compiler : compilers())
    for (const char* const level : {"-O0", "-O2"}) all.push_back(level + compiler);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Compilers, DirectFunctions, ::testing::ValuesIn(builds()), [](const auto& build) {
  std::string name = build.param;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace halyard::aot::test
