// Contractions against the reference machine: generated functions are compiled, and each is called with many
// arguments, in every other round with other threads that run pieces of its loops. What the compiler says of
// its nests is counted: each kind must occur.
//
// HALYARD_CALLS=n compares so many calls of functions with contractions (`./dev contractions`),
// HALYARD_FIRST_SEED=n begins with another seed, HALYARD_SEED=n is one function alone. A failure names its
// seed.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>

#include "base/bytes.h"
#include "contraction_generator.h"
#include "differential.h"
#include "loop_programs.h"
#include "program.h"
#include "vm/compile/compiler.h"
#include "vm/compile/loaded_module.h"
#include "vm/decode/code.h"
#include "vm/decode/jit_abi.h"
#include "vm/object/buffer.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {
namespace {

// Of a function with a contraction, so that calls take longer than its compilation, and rare arguments occur.
constexpr uint64_t kMostCalls = 4000;
constexpr uint64_t kMostInstructions = 12'000'000;  // of the reference machine
constexpr uint32_t kRoundsTogether = 40;  // in one context; functions without contractions get no more
// Without a number of calls: of about so many functions, so that each kind occurs.
constexpr uint64_t kFewCalls = 10'000;
constexpr uint64_t kFunctions = 40;
constexpr uint64_t kManyCalls = 1'000'000;

// What must occur in what the compiler says of nests that it tiles, with N for each number.
constexpr const char* kForms[] = {
    "contraction: outputs N, terms",
    "rows N, outputs",
    "rows ?, outputs",
    "rows N x N, outputs",
    "outputs N,",
    "outputs ?,",
    "terms N:",
    "terms ?:",
    "terms N x N:",
    "terms N x N x N:",
    ", blocks of N terms",
    ", packed",
    ", packed by the first tile",
    " with prefetches",
    ", transposed in registers",
    ", the last vectors overlapping",
    ", two terms at a time",
    ", with the fill before it",
    ", with the epilogue after it",
    ", whose sums are not stored",
    ", shared by threads N rows at a time",
    ", without vectors",
    "of a coalesced loop",
    "N nests as one, of N",
    "N results in between are not stored",
};
// And of others.
constexpr const char* kRefusals[] = {
    "B is transposed, and LLVM vectorizes over the terms, which it may add in any order",
    "a loop has several exits, such as a check of an index or of the stop word",
    "a loop has several loops in it",
    "an output may be in a buffer that is read",
    "no loop counts outputs that are contiguous and the same for all terms",
    "the innermost loop has branches, such as checks of indices",
    "the loop around it is not over rows: it has several loops in it",
    "the loop around it is not over rows: its number of iterations is not known before it",
};

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

// The other threads of a device, as far as results can tell: pieces run from the last one to the first.
struct Backwards : halyard_jit_sharing_t {
  Backwards() : halyard_jit_sharing_t{.share = share_pieces, .is_cold = 1} {}
  static uint64_t share_pieces(const halyard_jit_sharing_t* /*sharing*/, uint64_t pieces, uint64_t /*most*/,
                               void (*body)(uint64_t first, uint64_t last, void* data), void* data,
                               const uint32_t* /*stop*/) {
    ++nests;
    constexpr uint64_t kTogether = 3;
    for (uint64_t last = pieces; last > 0; last -= std::min(last, kTogether))
      body(last - std::min(last, kTogether), last, data);
    return pieces;
  }
  static inline uint64_t nests = 0;
};

std::string with_n_for_numbers(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c < '0' || c > '9')
      made += c;
    else if (made.empty() || made.back() != 'N')
      made += 'N';
  }
  return made;
}

struct Totals {
  struct Of {
    uint64_t functions = 0, calls = 0, succeeded = 0;
  } contractions, others;
  uint64_t instructions = 0, checked_loops = 0;
  std::map<std::string, uint64_t> nests;  // by what the compiler says

  uint64_t count_of(std::string_view part) const {
    uint64_t count = 0;
    for (const auto& [said, times] : nests)
      if (said.find(part) != said.npos) count += times;
    return count;
  }
};

// Whether the function has a contraction.
bool has_contraction(const Compiler& compiler, const FunctionCode& code, bool is_coalesced, Totals& totals) {
  const Result<Compiler::Explanation> explained = compiler.explain(code);
  EXPECT_TRUE(explained);
  if (!explained) return false;
  std::istringstream lines(explained->ir);
  bool found = false;
  for (std::string line; std::getline(lines, line) && line.starts_with("; ");) {
    if (line.find("contraction: ") == line.npos) continue;
    found |= line.starts_with("; contraction: ");
    const bool is_nest_of_loop = is_coalesced && line.starts_with("; contraction: rows");
    ++totals.nests[with_n_for_numbers(line.substr(2)) + (is_nest_of_loop ? ", of a coalesced loop" : "")];
  }
  return found;
}

// Compiles the function of a seed, and compares calls.
void compare_function(uint64_t seed, const Compiler& compiler, uint64_t most_calls, Totals& totals) {
  Choices choices(seed);
  const std::string text = generate_contractions(choices, 1);
  const auto description = [&] { return fmt::format("HALYARD_SEED={}\n{}", seed, text); };
  Result<std::vector<uint8_t>> file = assemble(text, {});
  ASSERT_TRUE(file) << file.error().text() << '\n' << description();
  const Result<Ref<LoadedModule>> module =
      LoadedModule::load(Bytes::own(*std::move(file)), known_types(), {.compiler = &compiler});
  ASSERT_TRUE(module) << module.error().text() << '\n' << description();
  const Result<const FunctionCode*> code = (*module)->code(0);
  ASSERT_TRUE(code && (*code)->compiled) << description();
  const bool is_one = has_contraction(compiler, **code, text.find("vm.rem") != text.npos, totals);
  Totals::Of& of = is_one ? totals.contractions : totals.others;
  ++of.functions;
  Backwards sharing;
  const uint64_t wanted = is_one ? most_calls : kRoundsTogether;
  uint64_t left = kMostInstructions, calls = 0, compared = 0;
  do {
    const Comparison comparison = compare_exports(
        *module, choices, {.rounds = kRoundsTogether, .instructions = left, .sharing = &sharing});
    ASSERT_EQ(comparison.difference, "") << description();
    compared = std::accumulate(comparison.codes.begin(), comparison.codes.end(), uint64_t{0});
    calls += compared;
    of.succeeded += comparison.codes[static_cast<size_t>(Code::OK)];
    totals.checked_loops += comparison.checked_loops;
    const uint64_t executed =
        std::accumulate(comparison.executed.begin(), comparison.executed.end(), uint64_t{0});
    totals.instructions += executed;
    left -= std::min(left, executed);
  } while (calls < wanted && left != 0 && compared != 0);
  of.calls += calls;
}

void print(const Totals& totals, double seconds) {
  const auto& [contractions, others] = std::tie(totals.contractions, totals.others);
  fmt::print(
      "compared {} calls ({} succeeded) of {} functions with contractions, and {} of {} others; {:.0f} s; {} "
      "instructions of the reference machine; {} nests with pieces on other threads, {} with all of their "
      "checks\n",
      contractions.calls, contractions.succeeded, contractions.functions, others.calls, others.functions,
      seconds, totals.instructions, Backwards::nests, totals.checked_loops);
  std::fflush(stdout);
}

TEST(CompiledContractions, AreLikeTheReferenceMachine) {
  using Clock = std::chrono::steady_clock;
  const auto compiler = Compiler::find();
  ASSERT_TRUE(compiler);
  const uint64_t only = number_from_environment("HALYARD_SEED", UINT64_MAX);
  const bool is_alone = only != UINT64_MAX;
  const uint64_t first = is_alone ? only : number_from_environment("HALYARD_FIRST_SEED", 0);
  const uint64_t wanted = is_alone ? 1 : number_from_environment("HALYARD_CALLS", kFewCalls);
  const uint64_t most_calls = is_alone ? kMostCalls : std::min(wanted / kFunctions, kMostCalls);
  Totals totals;
  const auto begun = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
  double told = 0;
  for (uint64_t seed = first; totals.contractions.calls < wanted; ++seed) {
    ASSERT_NO_FATAL_FAILURE(compare_function(seed, **compiler, most_calls, totals));
    if (is_alone) break;
    if (seconds() - told < 60) continue;
    told = seconds();
    fmt::print("seed {}: ", seed);
    print(totals, told);
  }
  print(totals, seconds());
  for (const char* const form : kForms) fmt::print("{:6} nests: {}\n", totals.count_of(form), form);
  for (const char* const reason : kRefusals) fmt::print("{:6} nests: {}\n", totals.count_of(reason), reason);
  for (const auto& [said, times] : totals.nests)
    if (is_alone || std::ranges::none_of(kRefusals, [&](const char* reason) {
          return said.starts_with("contraction") || said.find(reason) != said.npos;
        }))
      fmt::print("{:6} {}\n", times, said);
  // Of few functions with other seeds, some kinds may be missing.
  if (is_alone || (wanted < kManyCalls && std::getenv("HALYARD_CALLS"))) return;
  for (const char* const form : kForms) EXPECT_NE(totals.count_of(form), 0u) << form;
  for (const char* const reason : kRefusals) EXPECT_NE(totals.count_of(reason), 0u) << reason;
  EXPECT_GT(totals.contractions.succeeded * 2, totals.contractions.calls);
  EXPECT_GT(totals.contractions.functions * 5, totals.others.functions);
}

// A condition that is known before the nests and is replaced while the compiler looks for the fill of the
// sums: the third nest has the same limits, and no body.
TEST(CompiledContractions, ConditionsBetweenNests) {
  const std::string index = R"(
  %i38:39 = vm.mul.i64 %i30:31, %i20:21
  %i38:39 = vm.fma.i64 %i32:33, %i18:19, %i38:39
  %i38:39 = vm.add.i64 %i38:39, %i34:35
)";
  const auto rows_and_outputs = [](int block, std::string_view body) {
    return loop(block, "%i30:31", "%i14:15",
                loop(block + 3, "%i32:33", "%i16:17", loop(block + 6, "%i34:35", "%i18:19", body)));
  };
  const std::string text = program("", "%i8:9",
                                   R"(
  %i14:15 = vm.const.i64 7
  %i16:17 = vm.add.i64 %i0:1, %i2:3
  %i18:19 = vm.const.i64 16
  %i20:21 = vm.const.i64 64
  %i22:23 = vm.const.i64 2
  %i24 = vm.const.i32 7
)" + loop(1, "%i26:27", "%i22:23",
          rows_and_outputs(4, index + "vm.buffer.store.i32 %i24, %r1, %i38:39\n") +
              rows_and_outputs(13, loop(22, "%i36:37", "%i8:9", index + R"(
  %i40 = vm.buffer.load.i32 %r1, %i38:39
  %i41 = vm.buffer.load.i32 %r0, %i36:37
  %i40 = vm.fma.i32 %i24, %i41, %i40
  vm.buffer.store.i32 %i40, %r1, %i38:39
)")) + loop(25, "%i30:31", "%i14:15", "")));
  const auto compiler = ASSERT_VALUE(Compiler::find());
  const auto outputs = [&](const LoadOptions& options, int64_t rows) {
    const TestProgram tested(text, options);
    EXPECT_EQ(tested.is_compiled(), options.compiler != nullptr);
    std::array<int32_t, 512> from = {5}, to = {};
    const auto wrap = [](std::array<int32_t, 512>& numbers) {
      return Variant::ref(
          Buffer::wrap({reinterpret_cast<uint8_t*>(numbers.data()), sizeof numbers}, true, {}));
    };
    EXPECT_OK(tested.call({{wrap(from), wrap(to), Variant::i64(rows), Variant::i64(0), Variant::i64(0)}}));
    return to;
  };
  for (const int64_t rows : {-1, 0, 1, 3, 4}) {
    const auto expected = outputs({}, rows);
    EXPECT_EQ(outputs({.compiler = compiler}, rows), expected);
    EXPECT_EQ(expected[0], rows > 0 ? 7 + 7 * 5 : 0);
  }
}

}  // namespace
}  // namespace halyard::vm::test
