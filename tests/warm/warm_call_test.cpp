// Warm calls: counts their allocations and locks.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "allocation_count.h"
#include "fixtures.h"
#include "halyard/halyard.h"
#include "lock_count.h"

namespace {

using halyard::driver_tests::allocation_count;

struct Program {
  std::string name;
  std::string file;  // of this project, or of the fixtures if it begins with "compiled"
  std::string function;
  std::vector<std::string> inputs;  // as vm-run takes them
  bool has_devices = true;
};

#if defined(__aarch64__)
constexpr char kMachineCode[] = "compiled-arm64/simple_mul.llvm-cpu-arm64.vmfb";
#else
constexpr char kMachineCode[] = "compiled/simple_mul.llvm-cpu.vmfb";
#endif

// All of them record their commands once; recording takes memory. Those that name no device use none.
const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"product", "examples/elementwise_mul.vmasm", "mul", {"8xf32=2", "8xf32=3"}},
      {"simple_mul_vmvx", "compiled/simple_mul.vmvx.vmfb", "simple_mul", {"4xf32=2", "4xf32=3"}},
      {"simple_mul_native", kMachineCode, "simple_mul", {"4xf32=2", "4xf32=3"}},
      {"inline_product", "examples/inline_mul.vmasm", "mul", {"8xf32=2", "8xf32=3"}, false},
      {"inline_scale", "examples/inline_dispatch.vmasm", "scale", {"6xi32=2", "3"}, false},
  };
  return all;
}

void check(halyard_status_t status) {
  if (!status) return;
  char* text = halyard_status_text(status);
  ADD_FAILURE() << text;
  halyard_free(text);
  halyard_status_release(status);
}

struct Case {
  const Program* program;
  const char* device;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Program& program : programs()) {
    all.push_back({&program, "local-sync"});
    if (program.has_devices) all.push_back({&program, "local-task"});
  }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.program->name + "_" + info.param.device;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

class WarmCall : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!halyard::driver_tests::kCountsAllocations) GTEST_SKIP() << "a sanitizer allocates and locks";
    const Program& program = *GetParam().program;
    std::string path = std::string(HALYARD_SOURCE_DIR "/") + program.file;
    if (program.file.starts_with("compiled")) {
      path = halyard::fixtures() / program.file;
      if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    }
    check(halyard_instance_create(nullptr, &instance_));
    if (program.has_devices) check(halyard_device_open(instance_, GetParam().device, &device_));
    check(halyard_module_load_file(instance_, path.c_str(), 0, &module_));
    halyard_context_options_t options = {};
    options.struct_size = sizeof options;
    options.modules = &module_;
    options.module_count = 1;
    options.devices = &device_;
    options.device_count = program.has_devices ? 1 : 0;
    check(halyard_context_create(instance_, &options, &context_));
    check(halyard_context_find(context_, nullptr, program.function.c_str(), &function_));
    check(halyard_call_create(context_, &call_));
    for (const std::string& input : program.inputs) {
      if (!input.contains('=')) {
        halyard_value_t number = {};
        number.kind = HALYARD_VALUE_I32;
        number.i32 = std::stoi(input);
        arguments_.push_back(number);
        continue;
      }
      halyard_tensor_t* tensor = nullptr;
      check(halyard_tensor_parse({input.data(), input.size()}, &tensor));
      halyard_value_t value = {};
      value.kind = HALYARD_VALUE_OBJECT;
      check(halyard_view_create(device_, tensor->element_type, tensor->shape, tensor->rank, tensor->data,
                                tensor->size, &value.object));
      halyard_free(tensor);
      arguments_.push_back(value);
    }
  }
  void TearDown() override {
    for (const halyard_value_t& value : arguments_)
      if (value.kind == HALYARD_VALUE_OBJECT) halyard_release(value.object);
    halyard_release(call_);
    halyard_release(function_);
    halyard_release(context_);
    halyard_release(module_);
    halyard_release(device_);
    halyard_release(instance_);
  }

  void call_once() {
    halyard_value_t result = {};
    halyard_status_t status =
        halyard_call_invoke(call_, function_, arguments_.data(), arguments_.size(), &result, 1);
    if (status) check(status);
    halyard_release(result.object);
  }

  halyard_instance_t instance_ = nullptr;
  halyard_device_t device_ = nullptr;
  halyard_module_t module_ = nullptr;
  halyard_context_t context_ = nullptr;
  halyard_function_t function_ = nullptr;
  halyard_call_t call_ = nullptr;
  std::vector<halyard_value_t> arguments_;
};

TEST_P(WarmCall, TakesNothingFromTheSystem) {
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) call_once();
  const int64_t allocations = allocation_count().made;
  const int64_t locks = warm::locks_taken();
  for (int i = 0; i < kCalls; ++i) call_once();
  const int64_t made = allocation_count().made - allocations;
  const int64_t taken = warm::locks_taken() - locks;
  EXPECT_EQ(made, 0) << "allocations in " << kCalls << " calls";
  // Waking threads takes a lock.
  if (std::string(GetParam().device) == "local-sync") {
    EXPECT_EQ(taken, 0) << "locks in " << kCalls << " calls";
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, WarmCall, testing::ValuesIn(cases()), case_name);

}  // namespace
