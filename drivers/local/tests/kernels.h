// Kernels for tests: assemble, load, dispatch.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "harness.h"
#include "vm/text/assembler.h"

namespace halyard::local_tests {

inline constexpr std::string_view kHeader = "vm.module @module\n";
// The parameters of every kernel: local memory, constants, bindings; the workgroup's position, the size of a
// workgroup, the number of workgroups.
inline constexpr std::string_view kArguments =
    "(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, "
    "%i4: i32, "
    "%i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {\n";

// The start of a kernel: %i9 is 0, %r3 the first binding.
inline constexpr std::string_view kFirstBinding =
    "  %i9 = vm.const.i32.zero\n  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer\n";

class KernelTest : public LocalTest {
 public:
  using LocalTest::LocalTest;

  static std::vector<uint8_t> assemble(std::string_view source, uint32_t version = 17) {
    auto result = vm::assemble(source, {.bytecode_version = version});
    if (!result) {
      ADD_FAILURE() << result.error().text() << "\n" << source;
      return {};
    }
    return *result;
  }
  // A module with one kernel `k`; `directives` may give attributes and globals.
  static std::string kernel(std::string_view body, std::string_view directives = "") {
    return fmt::format("{}{}vm.export @k\nvm.func @k{}{}\n  vm.return\n}}\n", kHeader, directives, kArguments,
                       body);
  }
  // The same, with kFirstBinding before the body.
  static std::string kernel_on_binding(std::string_view body, std::string_view directives = "") {
    return kernel(std::string(kFirstBinding) + std::string(body), directives);
  }

  using LocalTest::create;
  Outcome create(const std::vector<uint8_t>& data, Executable* executable,
                 std::string_view format = "vmvx-bytecode-fb", const std::vector<uint32_t>& constants = {}) {
    return create(executable_args(format, data, constants), executable);
  }
  // Tries whether an executable can be created.
  Outcome create(const std::vector<uint8_t>& data, std::string_view format = "vmvx-bytecode-fb",
                 const std::vector<uint32_t>& constants = {}) {
    Executable executable = nullptr;
    Outcome outcome = create(data, &executable, format, constants);
    EXPECT_EQ(executable != nullptr, outcome.ok());
    return outcome;
  }
  Outcome create(std::string_view source) { return create(assemble(source)); }
  Executable load(std::string_view source, uint32_t version = 17) {
    Executable executable = nullptr;
    EXPECT_OK(create(assemble(source, version), &executable));
    return executable;
  }
  // Loads a copy of the data that begins `shift` bytes after an aligned address, and overwrites the copy.
  Executable load_shifted(const std::vector<uint8_t>& data, size_t shift,
                          std::string_view format = "vmvx-bytecode-fb") {
    std::vector<uint8_t> shifted(shift + data.size());
    std::memcpy(shifted.data() + shift, data.data(), data.size());
    halyard_executable_args_t args = executable_args(format, data, {});
    args.data = shifted.data() + shift;
    Executable executable = nullptr;
    EXPECT_OK(create(args, &executable));
    std::fill(shifted.begin(), shifted.end(), uint8_t{0xFF});
    return executable;
  }
  // The grade of a format or, with data, of an executable.
  halyard_executable_grade_t grade(std::string_view format, std::span<const uint8_t> data = {}) {
    halyard_executable_grade_t result = {.struct_size = sizeof result};
    std::memset(result.reason, 'x', sizeof result.reason);
    table_.executable_grade(device_, text(format), data.data(), data.size(), &result);
    EXPECT_NE(std::memchr(result.reason, 0, sizeof result.reason), nullptr) << "terminated";
    EXPECT_EQ(result.grade == HALYARD_GRADE_NATIVE, result.reason[0] == 0) << result.reason;
    return result;
  }
  void expect_function(Executable executable, uint32_t function, std::string_view name, uint32_t bindings,
                       uint32_t constants, uint64_t local_memory, uint32_t workgroup_size = 0) {
    const halyard_function_info_t found = info(executable, function);
    EXPECT_EQ(std::string_view(found.name.data, found.name.size), name);
    EXPECT_EQ(found.binding_count, bindings);
    EXPECT_EQ(found.constant_count, constants);
    EXPECT_EQ(found.local_memory, local_memory);
    EXPECT_EQ(found.workgroup_size[0], workgroup_size);
  }
  // Checks the grade and a part of its reason.
  void expect_grade(uint32_t expected, std::string_view part_of_reason,
                    const halyard_executable_grade_t& given) {
    EXPECT_EQ(given.grade, expected);
    EXPECT_TRUE(std::string_view(given.reason).contains(part_of_reason)) << given.reason;
  }
  struct Dispatch {
    uint32_t function = 0;
    uint32_t x = 1, y = 1, z = 1;
    std::vector<uint32_t> constants;
    std::vector<halyard_range_t> bindings;
    const halyard_range_t* indirect = nullptr;
  };
  static halyard_command_dispatch_t command(Executable executable, const Dispatch& d) {
    halyard_command_dispatch_t result = {};
    result.header = {sizeof result, HALYARD_COMMAND_DISPATCH};
    result.executable = executable;
    result.function = d.function;
    result.workgroups[0] = d.x;
    result.workgroups[1] = d.y;
    result.workgroups[2] = d.z;
    result.constant_count = static_cast<uint32_t>(d.constants.size());
    result.constants = d.constants.data();
    result.binding_count = static_cast<uint32_t>(d.bindings.size());
    result.bindings = d.bindings.data();
    if (d.indirect) {
      result.flags = HALYARD_DISPATCH_INDIRECT;
      result.indirect = *d.indirect;
    }
    return result;
  }
  Outcome dispatch(Executable executable, const Dispatch& d) {
    if (!executable) return Outcome(Code::UNKNOWN, "no executable");
    const halyard_command_dispatch_t recorded = command(executable, d);
    return run(dispatch_operation(&recorded));
  }
};

}  // namespace halyard::local_tests
