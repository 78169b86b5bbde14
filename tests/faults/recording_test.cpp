// Recording with a failing heap: a call that fails for lack of memory records nothing and can be repeated,
// and what is then recorded retains its buffer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocations.h"
#include "programs.h"

namespace faults {
namespace {

// A context with the program recording.vmasm on the faulty device.
class Recording {
 public:
  explicit Recording(const std::string& module, halyard_trace_t trace = nullptr) {
    const char* const libraries[] = {HALYARD_TEST_DRIVERS "/halyard-driver-faulty.so"};
    halyard_instance_options_t options = {};
    options.struct_size = sizeof options;
    options.flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS;
    options.driver_libraries = libraries;
    options.driver_library_count = 1;
    options.trace = trace;
    EXPECT_EQ(halyard_instance_create(&options, &instance_), nullptr);
    EXPECT_EQ(halyard_device_open(instance_, "faulty", &device_), nullptr);
    EXPECT_EQ(halyard_module_load_memory(instance_, module.data(), module.size(), 0, &module_), nullptr);
    halyard_context_options_t context = {};
    context.struct_size = sizeof context;
    context.modules = &module_;
    context.module_count = 1;
    context.devices = &device_;
    context.device_count = 1;
    EXPECT_EQ(halyard_context_create(instance_, &context, &context_), nullptr);
    EXPECT_EQ(halyard_call_create(context_, &call_), nullptr);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    halyard_release(call_);
    halyard_release(context_);
    halyard_release(module_);
    halyard_release(device_);
    halyard_release(instance_);
  }

  // Calls a function while that allocation fails; 0: none.
  halyard_status_code_t call(const char* name, int64_t failing_allocation = 0) {
    halyard_function_t function = nullptr;
    EXPECT_EQ(halyard_context_find(context_, nullptr, name, &function), nullptr);
    halyard_value_t result = {};
    halyard_status_t status = nullptr;
    fail_allocation(failing_allocation, Lasting::once);
    {
      const Armed armed;
      status = halyard_call_invoke(call_, function, nullptr, 0, &result, 1);
    }
    const halyard_status_code_t code = halyard_status_code(status);
    halyard_status_release(status);
    halyard_release(function);
    EXPECT_EQ(result.i32, 0) << name;
    return code;
  }

 private:
  halyard_instance_t instance_ = nullptr;
  halyard_device_t device_ = nullptr;
  halyard_module_t module_ = nullptr;
  halyard_context_t context_ = nullptr;
  halyard_call_t call_ = nullptr;
};

// Calls `run` for the first, second, ... allocation of a recording call, until the call makes no more.
// `record` makes the call, in which that allocation fails, and repeats it. At least so many calls fail.
template <typename Run>
void fail_each_allocation(int failures_at_least, const char* of, Run run) {
  wrap("local", "local-sync");
  const std::string module = module_of({"recording", "tests/faults/recording.vmasm", "", {}, ""});
  int failures = 0;
  bool has_run_out = true;
  for (int64_t number = 1; has_run_out && !testing::Test::HasFailure(); ++number) {
    SCOPED_TRACE(number);
    run(module, [&](Recording& recording) {
      const halyard_status_code_t code = recording.call("record", number);
      has_run_out = has_failed();
      if (code == HALYARD_OK) return;
      ++failures;
      EXPECT_EQ(code, HALYARD_RESOURCE_EXHAUSTED);
      EXPECT_EQ(recording.call("record"), HALYARD_OK);
    });
  }
  EXPECT_GE(failures, failures_at_least) << of;
  EXPECT_EQ(handles_left(), "");
  faulty().reset();
}

TEST(RecordingFaults, ARepeatedCommandRetainsItsBuffer) {
  const char* const of = "of the resources, of the set of them, of the commands";
  fail_each_allocation(3, of, [](const std::string& module, auto record) {
    Recording recording(module);
    EXPECT_EQ(recording.call("begin"), HALYARD_OK);
    const int64_t memory = faulty().live(FAULTY_MEMORY);
    record(recording);
    EXPECT_EQ(recording.call("drop"), HALYARD_OK);
    ASSERT_EQ(faulty().live(FAULTY_MEMORY), memory) << "the command buffer does not retain its buffer";
    EXPECT_EQ(recording.call("execute"), HALYARD_OK);
  });
}

// The place of a command is kept before the command is recorded: a call that cannot keep it records nothing.
TEST(RecordingFaults, ARepeatedCommandIsTracedOnceWithItsPlace) {
  const char* const of = "of the place, of the resources, of the commands";
  fail_each_allocation(3, of, [](const std::string& module, auto record) {
    halyard_trace_t trace = nullptr;
    ASSERT_EQ(halyard_trace_create(nullptr, &trace), nullptr);
    std::vector<std::string> places;  // of the commands that were executed
    const auto observe = [](void* user, const halyard_trace_slice_t* slice) {
      if (slice->command != 0)
        static_cast<std::vector<std::string>*>(user)->emplace_back(slice->place.data, slice->place.size);
    };
    ASSERT_EQ(halyard_trace_observe(trace, observe, &places), nullptr);
    {
      Recording recording(module, trace);
      EXPECT_EQ(recording.call("begin"), HALYARD_OK);
      record(recording);
      EXPECT_EQ(recording.call("execute"), HALYARD_OK);
    }
    halyard_status_release(halyard_trace_finish(trace));  // events may have been lost
    halyard_release(trace);
    ASSERT_EQ(places.size(), 1u);
    EXPECT_NE(places[0].find("at recording.record"), std::string::npos) << places[0];
  });
}

}  // namespace
}  // namespace faults
