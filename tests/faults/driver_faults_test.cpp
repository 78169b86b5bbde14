// Programs over a driver with one failing call: the first call of a function, then the second, and so on
// until the program completes without it. Every run ends with the right result or with the driver's error,
// and without leaks.
#include <gtest/gtest.h>

#include <ostream>

#include "allocations.h"
#include "programs.h"

namespace faults {
namespace {

struct DriverSetup {
  const char* name;
  const char* driver;  // that "faulty" wraps
  const char* kind;
  std::vector<std::string> devices;
};
void PrintTo(const DriverSetup& setup, std::ostream* out) { *out << setup.name; }

const DriverSetup kDriverSetups[] = {
    {"local", "local", "local-sync", {"faulty"}},
    {"local_beside_null", "local", "local-sync", {"faulty", "null"}},
    {"local_behind_null", "local", "local-sync", {"null", "faulty"}},
    {"local_twice", "local", "local-sync", {"faulty", "faulty"}},
};

struct Injection {
  int function;
  int kind;
  int32_t code;
};

class DriverFaults : public ::testing::TestWithParam<DriverSetup> {
 protected:
  void SetUp() override { wrap(GetParam().driver, GetParam().kind); }
  void TearDown() override { faulty().reset(); }

  // The run with the fault at that call; whether there was such a call.
  bool run_with(const Program& program, const std::string& module, const Injection& injection, int64_t at) {
    const std::string what = std::string(program.name) + ", function " + std::to_string(injection.function) +
                             ", call " + std::to_string(at);
    SCOPED_TRACE(what);
    const int64_t before = live_allocations();
    faulty().reset();
    faulty().inject(injection.function, injection.kind, at, injection.code);
    const Outcome outcome = run(program, module, GetParam().devices);
    const bool injected = faulty().injected() != 0;
    const int64_t lost = live_allocations() - before - allocations_of(outcome);
    EXPECT_EQ(lost, 0) << "memory is not given back";
    EXPECT_EQ(handles_left(), "");
    if (outcome.code == HALYARD_OK) {
      EXPECT_EQ(outcome.text, program.expected);
    } else {
      EXPECT_TRUE(injected) << outcome.text;
      EXPECT_NE(outcome.text.find("injected fault"), std::string::npos) << outcome.text;
    }
    return injected;
  }

  void sweep(const Injection& injection) {
    for (const Program& program : programs()) {
      // "null" does not run kernels, and the program asks the first device that does.
      const std::string module = module_of(program);
      run(program, module, GetParam().devices);  // one-time allocations are done now
      int64_t at = 1;
      while (run_with(program, module, injection, at) && !HasFailure()) ++at;
      EXPECT_LT(at, 1000);
      if (HasFailure()) return;
    }
  }
};

TEST_P(DriverFaults, EachFunctionRefuses) {
  for (int function = 0; function < FAULTY_FUNCTIONS; ++function)
    sweep({function, FAULTY_REFUSE, HALYARD_RESOURCE_EXHAUSTED});
}

TEST_P(DriverFaults, EachFunctionRefusesWithACodeThatIsNone) {
  for (const int32_t code : {0, 17, 4711, -1}) sweep({FAULTY_queue_submit, FAULTY_REFUSE, code});
}

TEST_P(DriverFaults, TheDeviceIsLost) {
  for (const int function : {FAULTY_memory_allocate, FAULTY_memory_map, FAULTY_semaphore_create,
                             FAULTY_executable_create, FAULTY_command_list_create, FAULTY_queue_submit})
    sweep({function, FAULTY_LOSE_DEVICE, 0});
}

TEST_P(DriverFaults, WorkIsAcceptedAndFails) {
  sweep({FAULTY_queue_submit, FAULTY_FAIL_WORK, HALYARD_DATA_LOSS});
}

// A driver that forgets the signals of failed work: the host fails them.
TEST_P(DriverFaults, OnlyTheHostIsTold) {
  sweep({FAULTY_queue_submit, FAULTY_COMPLETE_ONLY, HALYARD_DATA_LOSS});
}

TEST_P(DriverFaults, SemaphoresFail) {
  for (const int function : {FAULTY_semaphore_query, FAULTY_semaphore_signal, FAULTY_semaphore_wait,
                             FAULTY_semaphore_subscribe, FAULTY_semaphore_unsubscribe})
    sweep({function, FAULTY_FAIL_SEMAPHORE, 0});
}

TEST_P(DriverFaults, CallbacksComeLateAndFromAnotherThread) {
  for (const Program& program : programs()) {
    const std::string module = module_of(program);
    faulty().reset();
    faulty().be_late(1);
    const Outcome outcome = run(program, module, GetParam().devices);
    faulty().await_late_calls();
    EXPECT_EQ(outcome.text, program.expected);
    EXPECT_EQ(handles_left(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, DriverFaults, ::testing::ValuesIn(kDriverSetups),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace faults
