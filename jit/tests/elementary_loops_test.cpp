// Loops over elementary functions, compiled and interpreted: the same bits for numbers of all kinds, whether
// the loop fills several vectors or is shorter than one, and with a rest.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "loop_programs.h"
#include "program.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

// r1[i] = f(r0[i]) for i below i0; `limit` is i0, or a constant that the compiler knows. Gives i.
std::string program_of(std::string_view function, std::string_view limit) {
  return program("f32", "%i6:7",
                 std::string(limit) + loop(1, "%i6:7", "%i0:1",
                                           fmt::format(R"(
  %i11 = vm.buffer.load.f32 %r0, %i6:7
  %i11 = vm.{}.f32 %i11
  vm.buffer.store.f32 %i11, %r1, %i6:7
)",
                                                       function)));
}

constexpr size_t kMost = 300;  // elements of a buffer

std::vector<float> numbers() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> all = {0.0f,
                            -0.0f,
                            1.0f,
                            -1.0f,
                            Limits::infinity(),
                            -Limits::infinity(),
                            Limits::max(),
                            Limits::min(),
                            Limits::denorm_min(),
                            Limits::quiet_NaN(),
                            88.8f,
                            -104.0f};
  for (uint32_t bits = 0x2545f491; all.size() < kMost; bits = bits * 0x9e3779b9 + 0x7f4a7c15)
    all.push_back(all.size() % 3 == 0 ? std::bit_cast<float>(bits)
                                      : static_cast<float>(static_cast<int32_t>(bits)) / 1e8f);
  return all;
}

std::vector<uint32_t> outputs(const TestProgram& program, std::vector<float>& from, int64_t count) {
  std::vector<uint32_t> to(kMost, 0x11111111);
  const auto wrap = [](auto& of) {
    return Variant::ref(
        Buffer::wrap({reinterpret_cast<uint8_t*>(of.data()), of.size() * sizeof(of[0])}, true, {}));
  };
  const std::array<Variant, 5> arguments = {wrap(from), wrap(to), Variant::i64(count), Variant::i64(0),
                                            Variant::i64(0)};
  EXPECT_OK(program.call(arguments));
  return to;
}

class ElementaryLoops : public testing::TestWithParam<const char*> {
 protected:
  void compare(const std::string& text, int64_t count) {
    const TestProgram compiled(text, {.compiler = compiler_}), interpreted(text);
    ASSERT_TRUE(compiled.is_compiled());
    EXPECT_EQ(outputs(compiled, from_, count), outputs(interpreted, from_, count)) << count;
  }

  const Compiler* const compiler_ = *Compiler::find();
  std::vector<float> from_ = numbers();
};

TEST_P(ElementaryLoops, GiveTheSameForAnyKnownCount) {
  for (const int64_t count : {1, 7, 16, 31, 32, 48, 63, 64, 65, 100, 128, 200, 257, 300})
    compare(program_of(GetParam(), fmt::format("%i0:1 = vm.const.i64 {}", count)), count);
}

TEST_P(ElementaryLoops, GiveTheSameForAnyCount) {
  const std::string text = program_of(GetParam(), "");
  for (const int64_t count : {0, 1, 15, 64, 65, 71, 127, 300}) compare(text, count);
}

INSTANTIATE_TEST_SUITE_P(Functions, ElementaryLoops,
                         testing::Values("exp", "exp2", "expm1", "tanh", "log", "log10", "log1p", "log2",
                                         "erf", "atan", "sin", "cos"),
                         [](const auto& each) { return std::string(each.param); });

// The number of vectors that an iteration of the vectorized loop loads.
size_t vectors_of(const std::string& text) {
  const auto compiler = *Compiler::find();
  const TestProgram program(text, {.compiler = compiler});
  const Result<Compiler::Explanation> explained = compiler->explain(**program.module->code(0));
  EXPECT_TRUE(explained);
  if (!explained) return 0;
  const size_t begin = explained->ir.find("vector.body:"), end = explained->ir.find("\n\n", begin);
  if (begin == std::string::npos) return 0;
  size_t loads = 0;
  for (size_t at = begin; (at = explained->ir.find("load <", at)) < end; ++at) ++loads;
  return loads;
}

TEST(ElementaryLoops, FillSeveralVectors) {
  EXPECT_EQ(vectors_of(program_of("exp", "%i0:1 = vm.const.i64 1024")), 4u);
}

}  // namespace
}  // namespace halyard::vm::test
