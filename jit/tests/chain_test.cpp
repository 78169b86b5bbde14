// Which nests run as one, by what the compiler says. Their results are compared in loops_test.cpp.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "loop_programs.h"
#include "program.h"
#include "vm/compile/compiler.h"

namespace halyard::vm::test {
namespace {

// What the compiler says of chains, such as "3 nests as one, of 4 x 8; 2 results in between are not stored".
std::vector<std::string> chains(const std::string& text) {
  const auto compiler = Compiler::find();
  EXPECT_TRUE(compiler);
  const TestProgram program(text, {.compiler = *compiler});
  const Result<Compiler::Explanation> explained = (*compiler)->explain(**program.module->code(0));
  EXPECT_TRUE(explained);
  std::vector<std::string> found;
  if (!explained) return found;
  constexpr std::string_view kBegin = "; contraction: ";
  std::istringstream lines(explained->ir);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kBegin) && line.find("nests as one") != line.npos)
      found.push_back(line.substr(kBegin.size()));
  return found;
}

using Found = std::vector<std::string>;

TEST(CompiledChains, OfNestsThatFollowEachOther) {
  EXPECT_EQ(chains(chain({})), Found{"3 nests as one, of 4 x 8; 2 results in between are not stored"});
  EXPECT_EQ(chains(chain({.between = "vm.discard.refs %r0"})),
            Found{"3 nests as one, of 4 x 8; 2 results in between are not stored"});
  EXPECT_EQ(chains(with_gaps(chain({}))),
            Found{"3 nests as one, of 4 x 8; 2 results in between are not stored"});
}

TEST(CompiledChains, KeepWhatIsReadAgain) {
  const std::string copies_both = R"(
  vm.buffer.copy %r2, %i14:15, %r1, %i14:15, %i12:13
  vm.buffer.copy %r3, %i14:15, %r1, %i14:15, %i12:13
)";
  EXPECT_EQ(chains(chain({.after = copies_both})), Found{"3 nests as one, of 4 x 8"});
  EXPECT_EQ(chains(chain({.after = "vm.buffer.copy %r3, %i14:15, %r1, %i14:15, %i12:13"})),
            Found{"3 nests as one, of 4 x 8; 1 results in between are not stored"});
  EXPECT_EQ(chains(chain({.before = "%r4 = vm.assign.ref %r2"})),
            Found{"3 nests as one, of 4 x 8; 1 results in between are not stored"});
}

// Nests with other numbers of iterations, or that read nothing of the chain.
TEST(CompiledChains, EndAtOtherNests) {
  EXPECT_EQ(chains(chain({.second_rows = "%i8:9"})), Found{});
  // The second nest reads nothing of the first one, so the others are joined, and then with it.
  const std::string two = "2 nests as one, of 4 x 8; 1 results in between are not stored";
  EXPECT_EQ(chains(chain({.second = R"(
  %i26 = vm.buffer.load.f32 %r0, %i22:23
  %i27 = vm.buffer.load.f32 %r0, %i22:23
)"})),
            (Found{two, two}));
  // Only some have rows that go on, so that LLVM makes one loop of two.
  EXPECT_EQ(chains(replaced(chain({}), "%r0, %i22:23", "%r0, %i16:17")), Found{});
  // A number of iterations that is known only at run time, and one at which the work could not be stopped.
  EXPECT_EQ(chains(replaced(chain({}), "%i12:13 = vm.const.i64 4", "%i12:13 = vm.add.i64 %i4:5, %i0:1")),
            Found{});
  EXPECT_EQ(chains(replaced(chain({}), "%i12:13 = vm.const.i64 4", "%i12:13 = vm.const.i64 1048576")),
            Found{});
}

}  // namespace
}  // namespace halyard::vm::test
