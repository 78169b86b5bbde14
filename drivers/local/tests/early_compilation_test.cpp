// Kernels that are compiled before they run, because the interpreter would take long (jit=auto).
#ifdef HALYARD_TEST_COMPILED

#include <filesystem>

#include "kernels.h"

namespace halyard::local_tests {
namespace {

// Adds 1.0 to the first word of the binding as often as its `turns` say.
std::string adding(uint32_t turns) {
  return fmt::format(R"(
  %i10:11 = vm.const.i64.zero
  %i12 = vm.buffer.load.f32 %r3, %i10:11
  %i13 = vm.const.f32 1.0
  %i14 = vm.const.i32 {}
  %i15 = vm.const.i32 1
  %i16 = vm.const.i32.zero
  vm.br ^bb1
^bb1:
  %i12 = vm.add.f32 %i12, %i13
  %i16 = vm.add.i32 %i16, %i15
  %i17 = vm.cmp.lt.i32.s %i16, %i14
  vm.cond_br %i17, ^bb1, ^bb2
^bb2:
  vm.buffer.store.f32 %i12, %r3, %i10:11
)",
                     turns);
}

constexpr uint32_t kLong = 40'000'000;  // 120 ms by the estimate
constexpr uint32_t kBrief = 400'000;    // 1.2 ms
constexpr uint32_t kWords = 16 << 10;

class EarlyCompilationTest : public KernelTest {
 public:
  EarlyCompilationTest() { reopen({{"jit", "auto"}}); }

  // The form of the kernel's code (HALYARD_CODE_*) in the trace of `run`.
  template <typename Run>
  uint32_t code_during(Run run) {
    uint32_t code = HALYARD_CODE_UNKNOWN;
    host_.trace([&](const halyard_trace_span_t& span) {
      if (std::string_view(span.name, span.name_size) == "k") code = span.code;
    });
    EXPECT_OK(run());
    host_.trace([](const halyard_trace_span_t&) {});
    return code;
  }
  // In one dispatch.
  uint32_t code_of(Executable executable, uint32_t words = kWords) {
    Memory memory = zeros(words);
    return code_during(
        [&] { return dispatch(executable, {.x = 1, .bindings = {range(memory, 0, 4 * uint64_t{words})}}); });
  }
  // In a list with one dispatch.
  uint32_t code_in_list(Executable executable) {
    Memory memory = zeros(kWords);
    Recording recording;
    const Dispatch one = {.x = 1, .bindings = {range(memory, 0, 4 * uint64_t{kWords})}};
    recording.dispatch(command(executable, one));
    List list = finish(recording);
    return code_during([&] { return run(execute_operation(list, {})); });
  }
};

TEST_P(EarlyCompilationTest, ALongDispatch) {
  EXPECT_EQ(code_of(load(kernel_on_binding(adding(kLong), "vm.type f32\n"))), HALYARD_CODE_COMPILED);
}

TEST_P(EarlyCompilationTest, ALongDispatchOfAList) {
  EXPECT_EQ(code_in_list(load(kernel_on_binding(adding(kLong), "vm.type f32\n"))), HALYARD_CODE_COMPILED);
}

TEST_P(EarlyCompilationTest, ABriefDispatch) {
  EXPECT_EQ(code_of(load(kernel_on_binding(adding(kBrief), "vm.type f32\n"))), HALYARD_CODE_INTERPRETED);
}

// Dispatches with few bytes are not estimated.
TEST_P(EarlyCompilationTest, ADispatchOfFewBytes) {
  EXPECT_EQ(code_of(load(kernel_on_binding(adding(kLong), "vm.type f32\n")), 1), HALYARD_CODE_INTERPRETED);
}

// What the cache has is taken for briefer dispatches, too.
TEST_P(EarlyCompilationTest, ABriefDispatchOfTheCache) {
  const std::string folder = testing::TempDir() + "early_compilation_" + std::string(kind_);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  const std::string source = kernel_on_binding(adding(kBrief), "vm.type f32\n");
  reopen({{"jit", "always"}, {"jit_cache", folder}});
  EXPECT_EQ(code_of(load(source)), HALYARD_CODE_COMPILED);
  reopen({{"jit", "auto"}, {"jit_cache", folder}});
  EXPECT_EQ(code_of(load(source)), HALYARD_CODE_COMPILED);
  std::filesystem::remove_all(folder);
}

HALYARD_ON_EVERY_DEVICE(EarlyCompilationTest);

}  // namespace
}  // namespace halyard::local_tests

#endif
