// Native executables for tests: the libraries of tests/libraries, each as an embedded and as a system
// library, on each kind of device.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels.h"
#include "native/elf_architecture.h"

namespace halyard::local_tests {

inline std::string host_name() {
  const local::ElfArchitecture* host = local::host_architecture();
  return host ? std::string(host->name) : "none";
}
inline std::string library_path(std::string_view name) {
  return fmt::format("{}/{}", HALYARD_TEST_LIBRARIES, name);
}
inline std::vector<uint8_t> library_bytes(std::string_view name) {
  std::ifstream file(library_path(name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline constexpr const char* kLibraryKinds[] = {"embedded", "system"};

class NativeTest : public KernelTest {
 public:
  using KernelTest::create;

  void SetUp() override {
    if (!local::host_architecture()) GTEST_SKIP() << "no native executables on this architecture";
  }

  static std::string format(std::string_view kind) { return fmt::format("{}-elf-{}", kind, host_name()); }
  static std::vector<uint8_t> library(std::string_view kind, std::string_view name) {
    return library_bytes(fmt::format("{}.{}.so", name, kind));
  }
  Outcome create_native(std::string_view kind, std::string_view name, Executable* executable,
                        const std::vector<uint32_t>& constants = {}) {
    return create(library(kind, name), executable, format(kind), constants);
  }
  Outcome create_native(std::string_view kind, std::string_view name) {
    Executable executable = nullptr;
    Outcome outcome = create_native(kind, name, &executable);
    EXPECT_EQ(executable != nullptr, outcome.ok());
    return outcome;
  }
  Executable load_native(std::string_view kind, std::string_view name,
                         const std::vector<uint32_t>& constants = {}) {
    Executable executable = nullptr;
    EXPECT_OK(create_native(kind, name, &executable, constants));
    return executable;
  }

  // The output of function 0.
  enum Word : size_t {
    kX,
    kY,
    kZ,
    kCountX,
    kCountY,
    kCountZ,
    kSize,
    kConstants,
    kBindings,
    kBytes,
    kLocalBytes,
    kLocalAlignment,
    kConcurrency,
    kReserved,
    kThunk,
    kFunction,
    kConstant,
    kProcessorLow,
    kProcessorHigh,
    kProcessorRest,
    kCounter,
    kZeros,
    kLastBytes,
    kEnvironment,
    kOutside,
    kRecord = 32
  };
  std::vector<uint32_t> record(Executable executable, uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) {
    const uint32_t count = kRecord * x * y * z;
    Memory memory = allocate(std::vector<uint32_t>(count + 1, 0));
    EXPECT_OK(
        dispatch(executable,
                 {.x = x, .y = y, .z = z, .constants = {1}, .bindings = {range(memory, 0, 4 * count + 4)}}));
    std::vector<uint32_t> words = content<uint32_t>(memory, count + 1);
    words.erase(words.begin());  // the constant makes the function skip this word
    return words;
  }
};

}  // namespace halyard::local_tests
