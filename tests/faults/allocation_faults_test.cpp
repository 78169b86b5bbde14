// Programs with a failing heap: at the first allocation, then at the second, and so on until a run succeeds;
// only that allocation fails, or all from there on. Each run ends with the right result or
// RESOURCE_EXHAUSTED, and without leaks.
#include <gtest/gtest.h>

#include "allocations.h"
#include "programs.h"

namespace faults {
namespace {

struct AllocationSetup {
  const char* name;
  std::vector<std::string> devices;
};
void PrintTo(const AllocationSetup& setup, std::ostream* out) { *out << setup.name; }

const AllocationSetup kAllocationSetups[] = {
    {"local", {"local-sync"}},
    {"null_before_local", {"null", "local-sync"}},
    {"local_before_null", {"local-sync", "null"}},
};

class AllocationFaults : public ::testing::TestWithParam<AllocationSetup> {
 protected:
  // Whether that allocation was reached.
  bool run_with(const Program& program, const std::string& module, int64_t number, Lasting lasting) {
    SCOPED_TRACE(program.name + ", allocation " + std::to_string(number));
    const int64_t before = live_allocations();
    fail_allocation(number, lasting);
    const Outcome outcome = run(program, module, GetParam().devices);
    const bool has_run_out = has_failed();
    fail_allocation(0, Lasting::once);
    const int64_t lost = live_allocations() - before - allocations_of(outcome);
    EXPECT_EQ(lost, 0) << "memory is not given back; " << outcome.text;
    if (outcome.code == HALYARD_OK) {
      // If allocations keep failing there may be no memory for the text of the result.
      if (!has_run_out || !outcome.text.empty()) {
        EXPECT_EQ(outcome.text, program.expected);
      }
    } else {
      EXPECT_TRUE(has_run_out) << outcome.text;
      EXPECT_STREQ(halyard_status_code_name(outcome.code), "RESOURCE_EXHAUSTED") << outcome.text;
    }
    return has_run_out;
  }

  void sweep(Lasting lasting) {
    for (const Program& program : programs()) {
      const std::string module = module_of(program);
      run(program, module, GetParam().devices);  // one-time allocations are done now
      int64_t number = 1;
      while (run_with(program, module, number, lasting) && !HasFailure()) ++number;
      EXPECT_GT(number, 100) << "the heap that runs out is not the one that is used";
      if (HasFailure()) return;
    }
  }
};

TEST_P(AllocationFaults, OneAllocationFails) { sweep(Lasting::once); }

TEST_P(AllocationFaults, AllAllocationsFailFromThereOn) { sweep(Lasting::for_good); }

INSTANTIATE_TEST_SUITE_P(All, AllocationFaults, ::testing::ValuesIn(kAllocationSetups),
                         [](const auto& of) { return std::string(of.param.name); });

// The assembler, the disassembler and descriptions are not used by running programs.
TEST(AllocationFaultsOfTools, AssembleDisassembleDescribe) {
  const std::string module = module_of(programs()[0]);
  for (const Lasting lasting : {Lasting::once, Lasting::for_good}) {
    bool has_run_out = true;
    for (int64_t number = 1; has_run_out && !HasFailure(); ++number) {
      SCOPED_TRACE(number);
      const int64_t before = live_allocations();
      char* text = nullptr;
      char* description = nullptr;
      size_t size = 0;
      halyard_status_t first = nullptr;
      halyard_status_t second = nullptr;
      halyard_status_code_t codes[2] = {};
      fail_allocation(number, lasting);
      {
        const Armed armed;
        first = halyard_disassemble(module.data(), module.size(), nullptr, &text, &size);
        second =
            halyard_module_describe(module.data(), module.size(), HALYARD_DESCRIBE_JSON, &description, &size);
        codes[0] = halyard_status_code(first);
        codes[1] = halyard_status_code(second);
      }
      has_run_out = has_failed();
      fail_allocation(0, Lasting::once);
      halyard_status_release(first);
      halyard_status_release(second);
      halyard_free(text);
      halyard_free(description);
      EXPECT_EQ(live_allocations(), before);
      for (const halyard_status_code_t code : codes)
        EXPECT_TRUE(code == HALYARD_OK || code == HALYARD_RESOURCE_EXHAUSTED) << code;
      EXPECT_TRUE(has_run_out || codes[0] + codes[1] == HALYARD_OK);
    }
  }
}

}  // namespace
}  // namespace faults
