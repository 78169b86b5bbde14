// Executables: creation, properties of their functions, lookup.
#include "hal/device/executable.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "hal_test.h"

namespace halyard::hal {
namespace {

class ExecutableTest : public FakeDriverTest {
 protected:
  static Result<Ref<Executable>> load(std::string_view text, std::string_view format = "fake",
                                      std::span<const uint32_t> constants = {}) {
    Ref<Bytes> data = Bytes::copy({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    const std::span<const uint8_t> bytes = data->span();
    return Executable::create(open_fake_device(), kAnyQueue, format, bytes, std::move(data), constants);
  }
};

TEST_F(ExecutableTest, DescribesItsFunctions) {
  const Ref<Executable> executable = load("mul 3 1\nadd 2 0\n").value();
  ASSERT_EQ(executable->functions().size(), 2u);
  const ExecutableFunction& function = executable->functions()[0];
  EXPECT_EQ(function.name, "mul");
  EXPECT_EQ(function.binding_count, 3u);
  EXPECT_EQ(function.constant_count, 1u);
  EXPECT_EQ(function.workgroup_size[0], 8u);
  EXPECT_EQ(function.workgroup_size[1], 0u);
  EXPECT_EQ(function.local_memory, 64u);
  EXPECT_EQ(executable->functions()[1].name, "add");
}

TEST_F(ExecutableTest, KnowsThePlaceOfItsFunctionsInTheSource) {
  const Ref<Executable> executable = load("mul@f.mlir:3:5 3 1\nadd 2 0\n").value();
  EXPECT_EQ(executable->functions()[0].name, "mul");
  EXPECT_EQ(executable->functions()[0].source, "f.mlir:3:5");
  EXPECT_EQ(executable->functions()[1].source, "");
  EXPECT_FAILS(INTERNAL, "a source of 4 bytes", load("mul@null 3 1\n"));
  EXPECT_FAILS(INTERNAL, "expected at most 1048576", load("mul@" + std::string(1 << 21, 'x') + " 3 1\n"));
}

TEST_F(ExecutableTest, EqualDataGivesSeparateObjects) {
  EXPECT_NE(load("mul 3 1\n").value(), load("mul 3 1\n").value());
}

TEST_F(ExecutableTest, UnknownFormat) {
  EXPECT_FAILS(NOT_FOUND, "format 'other'", load("mul 3 1\n", "other"));
  EXPECT_FAILS(NOT_FOUND, "fake loads 'fake' only", load("mul 3 1\n", "other"));
  EXPECT_FAILS(NOT_FOUND, "format ''", load("mul 3 1\n", ""));
}

TEST_F(ExecutableTest, BadDataFailsWithTheDriversReason) {
  EXPECT_FAILS(INVALID_ARGUMENT, "bad data", load("mul x\n"));
  const uint32_t constants[] = {1};
  EXPECT_FAILS(INVALID_ARGUMENT, "no constants", load("mul 3 1\n", "fake", constants));
}

TEST_F(ExecutableTest, KeepsItsData) {
  bool released = false;
  const std::string text = "mul 3 1\n";
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  Ref<Executable> executable = Executable::create(open_fake_device(), kAnyQueue, "fake", bytes,
                                                  Bytes::borrow(bytes, [&] { released = true; }), {})
                                   .value();
  EXPECT_FALSE(released);
  executable = nullptr;
  EXPECT_TRUE(released);
}

TEST_F(ExecutableTest, LooksUpByName) {
  const Ref<Executable> executable = load("dispatch_0 3 1\ndispatch_1 2 0\ndispatch_0 1 1\n").value();
  EXPECT_EQ(executable->lookup("dispatch_0").value(), 0u);  // the first of that name
  EXPECT_EQ(executable->lookup("dispatch_1").value(), 1u);
}

TEST_F(ExecutableTest, FunctionsWithoutNamesAreNotFoundByName) {
  EXPECT_FAILS(UNAVAILABLE, "the 2 functions of the executable have no names",
               load("- 3 1\n- 2 0\n").value()->lookup("mul"));
  const Ref<Executable> some = load("- 3 1\nadd 2 0\n").value();
  EXPECT_EQ(some->lookup("add").value(), 1u);
  EXPECT_FAILS(NOT_FOUND, "no function 'mul'", some->lookup("mul"));
}

TEST_F(ExecutableTest, SuggestsSimilarNames) {
  const Ref<Executable> executable = load("dispatch_0 3 1\nsoftmax 2 0\n").value();
  EXPECT_FAILS(NOT_FOUND, "no function 'dispatch_9'; did you mean 'dispatch_0'?",
               executable->lookup("dispatch_9"));
  EXPECT_FAILS(NOT_FOUND, "it has 2 functions, the first is 'dispatch_0'", executable->lookup("zzz"));
  EXPECT_FAILS(NOT_FOUND, "no function '", executable->lookup(std::string(1 << 20, 'x')));
  EXPECT_FAILS(NOT_FOUND, "it has no functions", load("").value()->lookup("a"));
}

}  // namespace
}  // namespace halyard::hal
