// Contractions, and nests without terms, whose groups of rows run on several threads: in any order, at the
// same time, and up to a stop request.
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "loop_programs.h"
#include "program.h"
#include "vm/decode/jit_abi.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

using Pieces = std::function<void(uint64_t first, uint64_t last)>;

// Runs pieces as `run` says, which returns how many it ran.
struct Sharing : halyard_jit_sharing_t {
  using Run = std::function<uint64_t(uint64_t pieces, const Pieces& run)>;
  explicit Sharing(Run how)
      : halyard_jit_sharing_t{.share = share_pieces, .is_cold = 1}, run(std::move(how)) {}

  static uint64_t share_pieces(const halyard_jit_sharing_t* sharing, uint64_t pieces, uint64_t most,
                               void (*body)(uint64_t first, uint64_t last, void* data), void* data,
                               const uint32_t* /*stop*/) {
    EXPECT_GE(most, 1u);
    return static_cast<const Sharing*>(sharing)->run(
        pieces, [&](uint64_t first, uint64_t last) { body(first, last, data); });
  }

  Run run;
};

struct Case {
  const char* name;
  std::string program;
  int64_t rows;  // of the outermost loop
  size_t row_outputs;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Without a limit for the rows, loops check the stop word.
constexpr int64_t kAny = INT64_MAX;
const Case kChecked[] = {
    {"Rows", sum_in_blocks(kAny, 1, 8, 1, 1153), 2000, 8},
    {"RowsOfRows", sum_in_blocks(kAny, 4, 8, 3, 129), 1000, 32},
    {"Packed", sum_in_blocks(kAny, 25, 20, 1, 385), 100, 500},
    {"PackedTransposed", sum_in_blocks(kAny, 12, 40, 1, 300, 5), 150, 480},
    {"PackedFromManyPages", sum_in_blocks(kAny, 12, 40, 1, 300, 7000), 150, 480},
};
// With a limit they do not, and all pieces run.
const Case kUnchecked[] = {
    {"WithoutStopWord", sum_in_blocks(255, 12, 40, 1, 300, 5), 150, 480},
    {"WithoutTerms", elements_of_rows(300, 256, 256), 300, 256},
    {"WithoutTermsAndWithARest", elements_of_rows(1021, 101, 113), 1021, 113},
};

class SharedLoops : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto compiler = ASSERT_VALUE(Compiler::find());
    program_.emplace(GetParam().program, LoadOptions{.compiler = compiler});
    ASSERT_TRUE(program_->is_compiled());
    for (size_t i = 0; i < from_.size(); ++i) from_[i] = 1.0f + static_cast<float>(i * 37 % 61) / 64;
  }

  // The outputs of a call, which begin as 2.
  std::vector<float> outputs(const halyard_jit_sharing_t* sharing, const uint32_t* stop = nullptr) {
    std::vector<float> to(static_cast<size_t>(GetParam().rows) * GetParam().row_outputs, 2.0f);
    const auto wrap = [](std::vector<float>& floats) {
      return Variant::ref(
          Buffer::wrap({reinterpret_cast<uint8_t*>(floats.data()), floats.size() * sizeof(float)}, true, {}));
    };
    const std::array<Variant, 5> arguments = {wrap(from_), wrap(to), Variant::i64(GetParam().rows),
                                              Variant::i64(0), Variant::i64(0)};
    std::array<Variant, 1> results;
    Invocation invocation(program_->context);
    invocation.set_stop(stop);
    invocation.set_sharing(sharing);
    const Result<> outcome = invocation.call(program_->function, arguments, results);
    if (stop)
      EXPECT_FAILS(ABORTED, "", outcome);
    else
      EXPECT_OK(outcome);
    EXPECT_EQ(invocation.take_checked_loops(), 0u);
    return to;
  }

  std::optional<TestProgram> program_;
  std::vector<float> from_ = std::vector<float>(280'000);
};

TEST_P(SharedLoops, GiveTheSameInAnyOrder) {
  const std::vector<float> expected = outputs(nullptr);
  uint64_t most = 0;
  for (const uint64_t step : {1, 2, 3, 1000}) {
    Sharing backwards([&](uint64_t pieces, const Pieces& run) {
      most = std::max(most, pieces);
      for (uint64_t last = pieces; last > 0; last -= std::min(step, last))
        run(last - std::min(step, last), last);
      return pieces;
    });
    EXPECT_EQ(outputs(&backwards), expected);
  }
  EXPECT_GE(most, 4u);
}

TEST_P(SharedLoops, GiveTheSameOnSeveralThreads) {
  const std::vector<float> expected = outputs(nullptr);
  Sharing threads([](uint64_t pieces, const Pieces& run) {
    std::atomic<uint64_t> next = 0;
    const auto work = [&] {
      for (uint64_t i; (i = next++) < pieces;) run(i, i + 1);
    };
    std::jthread second(work);
    std::jthread third(work);
    work();
    return pieces;
  });
  for (int round = 0; round < 3; ++round) EXPECT_EQ(outputs(&threads), expected);
}

// Rows that no piece has begun are left alone, but the one at which the interpreter goes on.
class StoppedSharedLoops : public SharedLoops {};
TEST_P(StoppedSharedLoops, EndAfterTheFirstPieces) {
  const std::vector<float> expected = outputs(nullptr);
  uint32_t stop = 0;
  Sharing stopped([&](uint64_t, const Pieces& run) {
    run(0, 1);
    run(1, 3);
    stop = static_cast<uint32_t>(Code::ABORTED);
    return 3;
  });
  const std::vector<float> found = outputs(&stopped, &stop);
  const size_t row = GetParam().row_outputs;
  size_t done = 0;
  while (done < found.size() && std::equal(&found[done], &found[done] + row, &expected[done])) done += row;
  EXPECT_GE(done, 3 * row);
  ASSERT_LT(done, found.size());
  EXPECT_EQ(std::vector<float>(found.begin() + static_cast<ptrdiff_t>(done), found.end()),
            std::vector<float>(found.size() - done, 2.0f));
}

// Without terms: compiled code has the interpreter's bits, and rows that overlap are written in their order.
TEST(SharedElements, AreThoseOfTheInterpreter) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  std::vector<float> from(4096);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i * 37 % 61) / 16 - 2;
  for (const int64_t row_step : {256, 300, 100, 1}) {
    const std::string text = elements_of_rows(300, 256, row_step);
    const auto elements_of = [&](const LoadOptions& options, const halyard_jit_sharing_t* sharing) {
      const TestProgram program(text, options);
      std::vector<float> to(300 * 300, 2.0f);
      const auto wrap = [](std::vector<float>& floats) {
        return Variant::ref(Buffer::wrap(
            {reinterpret_cast<uint8_t*>(floats.data()), floats.size() * sizeof(float)}, true, {}));
      };
      const std::array<Variant, 5> arguments = {wrap(from), wrap(to), Variant::i64(0), Variant::i64(0),
                                                Variant::i64(0)};
      std::array<Variant, 1> results;
      Invocation invocation(program.context);
      invocation.set_sharing(sharing);
      EXPECT_OK(invocation.call(program.function, arguments, results));
      return to;
    };
    uint64_t shared = 0;
    Sharing backwards([&](uint64_t pieces, const Pieces& run) {
      for (uint64_t i = pieces; i-- > 0;) run(i, i + 1);
      return shared = pieces;
    });
    const std::vector<float> expected = elements_of({}, nullptr);
    EXPECT_EQ(elements_of({.compiler = compiler}, nullptr), expected) << row_step;
    EXPECT_EQ(elements_of({.compiler = compiler}, &backwards), expected) << row_step;
    EXPECT_EQ(shared > 1, row_step >= 256);
  }
}

const auto name_of = [](const testing::TestParamInfo<Case>& each) { return each.param.name; };
INSTANTIATE_TEST_SUITE_P(, SharedLoops, testing::ValuesIn(kChecked), name_of);
INSTANTIATE_TEST_SUITE_P(Unchecked, SharedLoops, testing::ValuesIn(kUnchecked), name_of);
INSTANTIATE_TEST_SUITE_P(, StoppedSharedLoops, testing::ValuesIn(kChecked), name_of);

}  // namespace
}  // namespace halyard::vm::test
