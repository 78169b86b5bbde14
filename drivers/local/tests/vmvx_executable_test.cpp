// Executables that call the module `vmvx`: imports are bound, their failures become failures of the dispatch,
// denormals are flushed only within its functions, and all instruction sets give the same results.
#include "kernels.h"
#include "vmvx/kernels.h"

namespace halyard::local_tests {
namespace {

class VmvxExecutableTest : public KernelTest {
 public:
  VmvxExecutableTest() : KernelTest(GetParam(), "1") {}

  void reopen(std::string_view instructions) { LocalTest::reopen({{"isa", std::string(instructions)}}); }
  // One binding in %r3, 0 in %i10:11, 1 in %i12:13, 4 in %i14:15.
  static std::string program(std::string_view body) {
    return kernel_on_binding(fmt::format("  %i10:11 = vm.const.i64.zero\n  %i12:13 = vm.const.i64 1\n"
                                         "  %i14:15 = vm.const.i64 4\n{}",
                                         body),
                             "vm.import @vmvx.add.2d.f32 cconv \"0rIIIrIIIrIIIII_v\"\n"
                             "vm.import @vmvx.fill.2d.x32 cconv \"0irIIII_v\"\n"
                             "vm.import optional @vmvx.nothing cconv \"0v_v\"\n"
                             "vm.attr @k \"binding_count\" \"1\"\n");
  }
};
HALYARD_ON_EVERY_DEVICE_AND_COMPILED(VmvxExecutableTest);

// Adds the first four floats to the next four, by a function of the module and by an instruction.
constexpr std::string_view kAdd =
    "  %i16:17 = vm.const.i64 8\n"
    "  vm.call @vmvx.add.2d.f32(%r3, %i10, %i14, %i12, %r3, %i14, %i14, %i12, %r3, %i16, %i14, %i12, %i12, "
    "%i14)\n"
    "  %i20 = vm.buffer.load.i32 %r3, %i10:11\n  %i21 = vm.buffer.load.i32 %r3, %i14:15\n"
    "  %i20 = vm.add.f32 %i20, %i21\n  %i18:19 = vm.const.i64 12\n  vm.buffer.store.i32 %i20, %r3, %i18:19\n";

TEST_P(VmvxExecutableTest, EveryInstructionSetGivesTheSame) {
  for (const std::string_view instructions : local::vmvx::instruction_sets()) {
    reopen(instructions);
    Executable executable = load(program(kAdd));
    Memory memory =
        allocate(std::vector<float>{0x1p-130f, 1.5f, -2, 7, 0x1p-130f, 2, 2, -0.5f, 9, 9, 9, 9, 9});
    EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 0, 13 * 4)}}));
    const auto results = content<float>(memory, 13);
    EXPECT_EQ((std::vector<float>{results.begin() + 8, results.end()}),
              (std::vector<float>{0, 3.5f, 0, 6.5f, 0x1p-129f}))
        << instructions;
  }
}

TEST_P(VmvxExecutableTest, FailuresAreThoseOfTheDispatch) {
  Executable executable = load(program("  vm.call @vmvx.fill.2d.x32(%i9, %r3, %i14, %i14, %i14, %i14)"));
  Memory memory = allocate(80);
  EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 0, 80)}}));
  expect_fails(Code::OUT_OF_RANGE, {"'out'", "79", "'k'"},
               dispatch(executable, {.bindings = {range(memory, 0, 79)}}));
  Executable constants = load(program("  vm.call @vmvx.fill.2d.x32(%i9, %r1, %i10, %i12, %i12, %i12)"));
  EXPECT_CODE(PERMISSION_DENIED, dispatch(constants, {.bindings = {range(memory, 0, 80)}}));
}

TEST_P(VmvxExecutableTest, AWrongConventionIsNotFound) {
  EXPECT_FAILS(NOT_FOUND, "'vmvx.mmt4d'",
               create(kernel("", "vm.import @vmvx.mmt4d cconv \"0rIIrIIrIIIIIiii_v\"\n")));
  EXPECT_OK(create(kernel("", "vm.dependency @vmvx 0\n")));
}

}  // namespace
}  // namespace halyard::local_tests
