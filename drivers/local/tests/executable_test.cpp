// VMVX executables: accepted files, the arguments and failures of kernels, and objects that kernels keep.
#include <algorithm>
#include <thread>

#include "fixtures.h"
#include "kernels.h"

namespace halyard::local_tests {
namespace {

// With one worker, so that workgroups run in order. Several workers: batch_test.cpp.
class ExecutableTest : public KernelTest {
 public:
  ExecutableTest() : KernelTest(GetParam(), "1") {}
};
HALYARD_ON_EVERY_DEVICE_AND_COMPILED(ExecutableTest);

// ---- Accepted files

TEST_P(ExecutableTest, FunctionsAreTheExportsInOrder) {
  const std::string source = fmt::format(
      "{0}vm.export @second\nvm.export @first\nvm.export @alias = @first\n"
      "vm.attr @second \"binding_count\" \"3\"\n"
      "vm.attr @second \"constant_count\" \"0x10\"\n"
      "vm.attr @second \"local_memory\" \"8191\"\n"
      "vm.attr @first \"local_memory\" \"4095\"\n"
      "vm.attr @first \"binding_count\" \"010\"\n"
      "vm.attr @first \"parameter_count\" \"70000\"\n"
      "vm.func @first{1}  vm.return\n}}\nvm.func @second{1}  vm.return\n}}\nvm.func @hidden() -> () {{\n  "
      "vm.return\n}}\n",
      kHeader, kArguments);
  Executable executable = load(source);
  ASSERT_NE(executable, nullptr);
  ASSERT_EQ(table_.executable_function_count(executable), 3u);
  expect_function(executable, 0, "second", 3, 16, 4096);
  expect_function(executable, 1, "first", 8, 0, 0);
  halyard_function_info_t none = {.struct_size = sizeof none};
  EXPECT_CODE(OUT_OF_RANGE, host_.take(table_.executable_function_info(executable, 3, &none)));
}

TEST_P(ExecutableTest, EveryBytecodeVersion) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    Executable executable = load(kernel(""), version);
    ASSERT_NE(executable, nullptr);
    EXPECT_OK(dispatch(executable, {}));
  }
}

TEST_P(ExecutableTest, DataAtAnyAlignmentWhichMayChangeLater) {
  const std::vector<uint8_t> data = assemble(kernel(""));
  for (size_t shift = 0; shift < 17; ++shift) {
    Executable executable = load_shifted(data, shift);
    ASSERT_NE(executable, nullptr);
    EXPECT_OK(dispatch(executable, {}));
    EXPECT_EQ(std::string(info(executable, 0).name.data, 1), "k");
    destroy(executable);
  }
}

TEST_P(ExecutableTest, OtherFormatsAreNotFound) {
  const std::vector<uint8_t> data = assemble(kernel(""));
  for (const char* format : {"vulkan-spirv-fb", "vmvx-bytecode-fb2", "vmvx", ""}) {
    EXPECT_FAILS(NOT_FOUND, "'vmvx-bytecode-fb'", create(data, format)) << "names the formats of this driver";
  }
}

TEST_P(ExecutableTest, OnlyKernelsMayBeExported) {
  const std::string other = fmt::format(
      "{}vm.export @k\nvm.export @f\nvm.func @k{}  vm.return\n}}\nvm.func @f() -> () {{\n  vm.return\n}}\n",
      kHeader, kArguments);
  EXPECT_FAILS(INVALID_ARGUMENT, "0rrriiiiiiiii_v", create(other));

  // The function never runs; this __init would not return.
  for (const char* name : {"__init", "__deinit", "__notify"}) {
    EXPECT_CODE(
        INVALID_ARGUMENT,
        create(fmt::format("{}vm.export @{}\nvm.func @{}() -> () {{\n^bb0:\n  vm.br ^bb0\n  vm.return\n}}\n",
                           kHeader, name, name)));
    EXPECT_CODE(INVALID_ARGUMENT, create(fmt::format("{0}vm.export @{1}\nvm.func @{1}{2}  vm.return\n}}\n",
                                                     kHeader, name, kArguments)))
        << "not even as a kernel";
  }
  EXPECT_CODE(
      INVALID_ARGUMENT,
      create(fmt::format("{}vm.export @__set_constants\nvm.func @__set_constants(%r0: !vm.buffer) -> () {{\n"
                         "  vm.return\n}}\n",
                         kHeader)));
}

TEST_P(ExecutableTest, ConstantsAreRefused) {
  EXPECT_FAILS(INVALID_ARGUMENT, "2 were given", create(assemble(kernel("")), "vmvx-bytecode-fb", {1, 2}));
}

TEST_P(ExecutableTest, AttributesOutOfRange) {
  for (const char* attribute :
       {"\"binding_count\" \"256\"", "\"binding_count\" \"-1\"", "\"constant_count\" \"many\"",
        "\"constant_count\" \"0x\"", "\"constant_count\" \"08\"", "\"local_memory\" \"1k\"",
        "\"local_memory\" \"0x10000000\"", "\"local_memory\" \"99999999999999999999\""})
    EXPECT_CODE(INVALID_ARGUMENT, create(kernel("", fmt::format("vm.attr @k {}\n", attribute)))) << attribute;
  EXPECT_OK(
      create(kernel("", "vm.attr @k \"binding_count\" \"255\"\nvm.attr @k \"constant_count\" \"255\"\n")));
}

TEST_P(ExecutableTest, ImportsAreNotFound) {
  EXPECT_FAILS(
      NOT_FOUND, "'hal.device.create', 'vmvx.nothing'",
      create(kernel(
          "", "vm.import @hal.device.create cconv \"0v_v\"\nvm.import @vmvx.nothing cconv \"0v_v\"\n")));
  EXPECT_OK(create(kernel("", "vm.import optional @vmvx.nothing cconv \"0v_v\"\n")));
}

TEST_P(ExecutableTest, BadFunctionsAreRefusedBeforeAnythingRuns) {
  std::vector<uint8_t> data = assemble(kernel("  vm.fail %i0, \"a needle in the bytecode\"\n^bb1:"));
  Executable executable = nullptr;
  EXPECT_OK(create(data, &executable));
  executable = nullptr;
  const std::string_view needle = "a needle in the bytecode";
  const auto at = std::search(data.begin(), data.end(), needle.begin(), needle.end());
  ASSERT_NE(at, data.end());
  *(at - 2) = 0xFF;  // the length of the message
  *(at - 1) = 0xFF;
  EXPECT_CODE(OUT_OF_RANGE, create(data, &executable));
  EXPECT_EQ(executable, nullptr);
}

TEST_P(ExecutableTest, Grades) {
  const std::vector<uint8_t> data = assemble(kernel(""));
  EXPECT_EQ(grade("vmvx-bytecode-fb").grade, unsigned{HALYARD_GRADE_NATIVE});
  expect_grade(HALYARD_GRADE_NATIVE, "", grade("vmvx-bytecode-fb", data));
  expect_grade(HALYARD_GRADE_NO, "vmvx-bytecode-fb", grade("vulkan-spirv-fb"));
  expect_grade(HALYARD_GRADE_NO, "", grade("vmvx-bytecode-fb", std::span(data).first(10)));
  const std::vector<uint8_t> importing = assemble(kernel("", "vm.import @vmvx.nothing cconv \"0v_v\"\n"));
  EXPECT_EQ(grade("vmvx-bytecode-fb", importing).grade, unsigned{HALYARD_GRADE_RECOMPILE});
}

TEST_P(ExecutableTest, OtherBytecodeVersionsAreIncompatible) {
  std::vector<uint8_t> data = assemble(kernel(""));
  const uint32_t version = 17u << 16;
  uint8_t expected[4];
  std::memcpy(expected, &version, 4);
  const auto at = std::search(data.begin(), data.end(), expected, expected + 4);
  ASSERT_NE(at, data.end());
  ASSERT_EQ(std::search(at + 1, data.end(), expected, expected + 4), data.end())
      << "the version word is not unique";
  for (const uint32_t other : {18u << 16, 14u << 16, (17u << 16) + 1}) {
    std::memcpy(&*at, &other, 4);
    Executable executable = nullptr;
    EXPECT_CODE(INCOMPATIBLE, create(data, &executable));
    expect_grade(HALYARD_GRADE_RECOMPILE, fmt::format("{}.{}", other >> 16, other & 0xFFFF),
                 grade("vmvx-bytecode-fb", data));
  }
}

TEST_P(ExecutableTest, DamagedDataFailsCleanly) {
  const std::vector<uint8_t> data =
      assemble(kernel("  %i9 = vm.const.i32 0\n  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer",
                      "vm.rodata[0] = 00010203\nvm.attr @k \"binding_count\" \"1\"\n"));
  for (size_t size = 0; size < data.size(); ++size) {
    (void)create(std::vector(data.begin(), data.begin() + static_cast<ptrdiff_t>(size)));
    grade("vmvx-bytecode-fb", std::span(data).first(size));
  }
  for (size_t at = 0; at < data.size(); ++at) {
    for (const uint8_t flip : {0x01, 0x80, 0xFF}) {
      std::vector<uint8_t> damaged = data;
      damaged[at] ^= flip;
      Executable executable = nullptr;
      const Outcome outcome = create(damaged, &executable);
      EXPECT_EQ(outcome.ok(), executable != nullptr);
      if (executable) destroy(executable);
    }
  }
}

// ---- Arguments of a kernel

// Writes its nine numbers and three lengths in order, in 16 words for each workgroup.
std::string probe_body() {
  std::string body =
      "  %i10 = vm.const.i32.zero\n  %r3 = vm.list.get.ref %r2, %i10 : !vm.buffer\n"
      "  %i9 = vm.mul.i32 %i2, %i7\n  %i9 = vm.add.i32 %i9, %i1\n  %i9 = vm.mul.i32 %i9, %i6\n  %i9 = "
      "vm.add.i32 %i9, %i0\n"
      "  %i11 = vm.const.i32 16\n  %i9 = vm.mul.i32 %i9, %i11\n  %i12:13 = vm.ext.i32.i64.u %i9\n"
      "  %i14:15 = vm.const.i64 1\n  %i22 = vm.const.i32.zero\n";
  const auto store = [&](std::string_view reg) {
    body +=
        fmt::format("  vm.buffer.store.i32 {}, %r3, %i12:13\n  %i12:13 = vm.add.i64 %i12:13, %i14:15\n", reg);
  };
  for (int i = 0; i < 9; ++i) store(fmt::format("%i{}", i));
  for (const char* buffer : {"%r0", "%r1", "%r3"}) {
    body += fmt::format("  %i16:17 = vm.buffer.length {}\n  %i18 = vm.trunc.i64.i32 %i16:17\n", buffer);
    store("%i18");
  }
  body += "  %i18 = vm.list.size %r2\n";
  store("%i18");
  body += "  %i18 = vm.buffer.load.i32 %r1, %i14:15\n";
  store("%i18");
  return body;
}

TEST_P(ExecutableTest, KernelsGetAllArguments) {
  Executable executable = load(kernel(probe_body(), "vm.attr @k \"local_memory\" \"10000\"\n"));
  ASSERT_NE(executable, nullptr);
  constexpr uint32_t kX = 3, kY = 2, kZ = 2;
  Memory output = zeros(16 * kX * kY * kZ + 5);
  Memory other = allocate(16);
  Dispatch d = {.x = kX, .y = kY, .z = kZ, .constants = {7, 0xFFFFFFF8, 9}};
  d.bindings = {range(output, 4, 64 * kX * kY * kZ), range(other, 0, 3)};
  EXPECT_OK(dispatch(executable, d));
  const std::vector<uint32_t> words = content<uint32_t>(output, 16 * kX * kY * kZ + 5);
  EXPECT_EQ(words[0], 0u);
  size_t at = 1;
  for (uint32_t z = 0; z < kZ; ++z)
    for (uint32_t y = 0; y < kY; ++y)
      for (uint32_t x = 0; x < kX; ++x, at += 16)
        EXPECT_EQ(std::vector<uint32_t>(words.begin() + static_cast<ptrdiff_t>(at),
                                        words.begin() + static_cast<ptrdiff_t>(at) + 14),
                  (std::vector<uint32_t>{x, y, z, 1, 1, 1, kX, kY, kZ, 8192, 12, 64 * kX * kY * kZ, 2,
                                         0xFFFFFFF8}));
}

// Appends the workgroup's number to a log whose length is its first word.
constexpr std::string_view kLogBody =
    "  %i9 = vm.const.i32.zero\n  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer\n"
    "  %i10:11 = vm.const.i64.zero\n  %i12 = vm.buffer.load.i32 %r3, %i10:11\n"
    "  %i13 = vm.const.i32 1\n  %i12 = vm.add.i32 %i12, %i13\n  vm.buffer.store.i32 %i12, %r3, %i10:11\n"
    "  %i14:15 = vm.ext.i32.i64.u %i12\n  %i16 = vm.const.i32 10\n"
    "  %i17 = vm.mul.i32 %i2, %i16\n  %i17 = vm.add.i32 %i17, %i1\n  %i17 = vm.mul.i32 %i17, %i16\n"
    "  %i17 = vm.add.i32 %i17, %i0\n  vm.buffer.store.i32 %i17, %r3, %i14:15";

TEST_P(ExecutableTest, WorkgroupsGoZThenYThenX) {
  Executable executable = load(kernel(kLogBody));
  Memory log = zeros(16);
  EXPECT_OK(dispatch(executable, {.x = 3, .y = 2, .z = 2, .bindings = {range(log, 0, 64)}}));
  EXPECT_EQ(content<uint32_t>(log, 13),
            (std::vector<uint32_t>{12, 0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112}));
}

TEST_P(ExecutableTest, ACountOfZeroRunsNothing) {
  Executable executable = load(kernel(kLogBody));
  Memory log = zeros(4);
  for (int zero = 0; zero < 3; ++zero) {
    Dispatch d = {.x = 4, .y = 4, .z = 4, .bindings = {range(log, 0, 16)}};
    (zero == 0 ? d.x : zero == 1 ? d.y : d.z) = 0;
    EXPECT_OK(dispatch(executable, d));
  }
  EXPECT_EQ(content<uint32_t>(log, 1)[0], 0u);
}

TEST_P(ExecutableTest, IndirectCountsAreReadWhenTheCommandRuns) {
  Executable executable = load(kernel(kLogBody));
  Memory log = zeros(16);
  Memory counts = allocate(std::vector<uint32_t>{9, 9, 9, 9, 9});
  const uint32_t real[] = {2, 1, 2};
  const halyard_range_t direct = range(counts, 8, 12);
  Dispatch d = {.x = 99, .y = 99, .z = 99, .bindings = {range(log, 0, 64)}, .indirect = &direct};
  const Recording recording =
      Recording().update(real, range(counts, 8, 12)).barrier().dispatch(command(executable, d));
  EXPECT_OK(run(execute_operation(finish(recording), {})));
  EXPECT_EQ(content<uint32_t>(log, 5), (std::vector<uint32_t>{4, 0, 1, 100, 101}));

  // The same with slots.
  std::memset(bytes(log), 0, 64);
  const halyard_range_t indirect = slot(1, 4, 12);
  d.bindings = {slot(0, 4, 32)};
  d.indirect = &indirect;
  const Recording slots = Recording().dispatch(command(executable, d));
  EXPECT_OK(run(execute_operation(finish(slots, 2), {{log, 4, 36}, {counts, 4, 16}})));
  EXPECT_EQ(content<uint32_t>(log, 7), (std::vector<uint32_t>{0, 0, 4, 0, 1, 100, 101}));
}

TEST_P(ExecutableTest, LocalMemoryCanBeUsedAndConstantsCannotBeWritten) {
  Executable scratch = load(
      kernel("  %i10:11 = vm.const.i64 4095\n  %i9 = vm.const.i32 5\n  vm.buffer.store.i8 %i9, %r0, %i10:11",
             "vm.attr @k \"local_memory\" \"4096\"\n"));
  EXPECT_OK(dispatch(scratch, {.x = 2}));
  Executable beyond = load(
      kernel("  %i10:11 = vm.const.i64 4096\n  %i9 = vm.const.i32 5\n  vm.buffer.store.i8 %i9, %r0, %i10:11",
             "vm.attr @k \"local_memory\" \"4096\"\n"));
  EXPECT_CODE(OUT_OF_RANGE, dispatch(beyond, {}));
  Executable none = load(
      kernel("  %i10:11 = vm.const.i64 0\n  %i9 = vm.const.i32 5\n  vm.buffer.store.i8 %i9, %r0, %i10:11"));
  EXPECT_CODE(OUT_OF_RANGE, dispatch(none, {}));
  Executable constants = load(
      kernel("  %i10:11 = vm.const.i64 0\n  %i9 = vm.const.i32 5\n  vm.buffer.store.i8 %i9, %r1, %i10:11"));
  EXPECT_CODE(PERMISSION_DENIED, dispatch(constants, {.constants = {1}}));
}

TEST_P(ExecutableTest, FloatsKeepTheirDenormals) {
  // 1e-40 + 1e-40, with both operands and the result denormal (spec ruling 16).
  Executable executable =
      load(kernel_on_binding("  %i10:11 = vm.const.i64.zero\n"
                             "  %i12 = vm.buffer.load.f32 %r3, %i10:11\n  %i12 = vm.add.f32 %i12, %i12\n"
                             "  vm.buffer.store.f32 %i12, %r3, %i10:11"));
  Memory memory = allocate(std::vector<float>{1e-40f});
  EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 0, 4)}}));
  EXPECT_EQ(content<uint32_t>(memory, 1)[0], 2 * std::bit_cast<uint32_t>(1e-40f));
}

// ---- Failures of a kernel

TEST_P(ExecutableTest, AFailingKernelFailsTheDispatch) {
  Executable executable = load(kernel("  %i9 = vm.const.i32 13\n  vm.fail %i9, \"no luck\"\n^bb1:"));
  Semaphore done = semaphore();
  const halyard_command_dispatch_t recorded = command(executable, {.x = 2, .y = 3});
  const halyard_operation_t work = dispatch_operation(&recorded);
  Completion completion;
  EXPECT_OK(submit(work, {}, {{done, 1}}, completion));
  EXPECT_CODE(INTERNAL, outcome(completion));
  EXPECT_NE(outcome(completion).message().find("no luck"), std::string::npos) << outcome(completion).text();
  EXPECT_NE(outcome(completion).message().find("kernel 'k', workgroup 0,0,0"), std::string::npos)
      << outcome(completion).text();
  EXPECT_CODE(INTERNAL, failure(done));
}

TEST_P(ExecutableTest, AFailureEndsTheGridAndTheListButNotTheExecutable) {
  // Each workgroup logs its number; workgroup 1 fails.
  Executable executable =
      load(fmt::format("{}vm.export @k\nvm.func @k{}{}\n  vm.cond_br %i0, ^bb1, ^bb2\n^bb1:\n  %i9 = "
                       "vm.const.i32 9\n  vm.fail %i9, \"one\"\n"
                       "^bb2:\n  vm.return\n}}\n",
                       kHeader, kArguments, kLogBody));
  Memory log = zeros(16);
  EXPECT_CODE(FAILED_PRECONDITION, dispatch(executable, {.x = 4, .bindings = {range(log, 0, 64)}}));
  EXPECT_EQ(content<uint32_t>(log, 3), (std::vector<uint32_t>{2, 0, 1}));
  EXPECT_OK(dispatch(executable, {.x = 1, .bindings = {range(log, 0, 64)}}));
  EXPECT_EQ(content<uint32_t>(log, 4), (std::vector<uint32_t>{3, 0, 1, 0}));
}

TEST_P(ExecutableTest, WrongCountsAndRangesAreSafe) {
  Executable executable = load(kernel(kLogBody));
  EXPECT_CODE(OUT_OF_RANGE, dispatch(executable, {}));  // the list has no binding 0
  Memory memory = zeros(4);
  EXPECT_CODE(OUT_OF_RANGE, dispatch(executable, {.bindings = {range(memory, 0, 4)}}))
      << "no room for the log";
  EXPECT_CODE(OUT_OF_RANGE, dispatch(executable, {.bindings = {range(memory, 4, 0)}}));
  EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 8, 8), range(memory, 0, 4)}}));
  EXPECT_EQ(content<uint32_t>(memory, 4), (std::vector<uint32_t>{1, 0, 1, 0}));
}

TEST_P(ExecutableTest, AKernelMayNotYield) {
  Executable executable = load(fmt::format(
      "{}vm.export @k\nvm.func @k{}  vm.yield ^bb1\n^bb1:\n  vm.return\n}}\n", kHeader, kArguments));
  EXPECT_CODE(FAILED_PRECONDITION, dispatch(executable, {}));
  EXPECT_CODE(FAILED_PRECONDITION, dispatch(executable, {}))
      << "and again: nothing of the first call is left";
}

TEST_P(ExecutableTest, BytesThatDoNotExistYetFailTheDispatch) {
  Executable executable = load(kernel(kLogBody));
  Semaphore start = semaphore();
  Completion completion;
  Memory memory = queue_allocate(64, {{start, 1}}, {}, completion);
  EXPECT_CODE(FAILED_PRECONDITION, dispatch(executable, {.bindings = {range(memory, 0, 64)}}));
  EXPECT_OK(signal(start, 1));
  EXPECT_OK(outcome(completion));
  std::memset(bytes(memory), 0, 64);
  EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 0, 64)}}));
  EXPECT_EQ(content<uint32_t>(memory, 1)[0], 1u);
}

// ---- Objects that a kernel keeps

TEST_P(ExecutableTest, GlobalsPersist) {
  Executable executable = load(kernel_on_binding(
      "  %i10 = vm.global.load.i32 @count\n"
      "  %i11 = vm.const.i32 1\n  %i10 = vm.add.i32 %i10, %i11\n  vm.global.store.i32 %i10, @count\n"
      "  %i12:13 = vm.const.i64.zero\n  vm.buffer.store.i32 %i10, %r3, %i12:13",
      "vm.global.i32 private mutable @count\n"));
  Memory memory = allocate(std::vector<uint32_t>{0});
  EXPECT_OK(dispatch(executable, {.x = 3, .bindings = {range(memory, 0, 4)}}));
  EXPECT_OK(dispatch(executable, {.x = 2, .bindings = {range(memory, 0, 4)}}));
  EXPECT_EQ(content<uint32_t>(memory, 1)[0], 5u) << "one worker: the same globals";
}

// The first dispatch keeps a buffer in a global; the second uses it after the buffer's memory is destroyed.
TEST_P(ExecutableTest, KeptBuffersAreEmptied) {
  for (const char* kept : {"%r0", "%r1", "%r3"}) {
    const std::string source = fmt::format(
        "{0}vm.export @keep\nvm.export @use\nvm.attr @keep \"local_memory\" \"4096\"\n"
        "vm.func @keep{1}{2}  vm.global.store.ref {3}, .refs[0] : !vm.buffer\n  vm.return\n}}\n"
        "vm.func @use{1}{2}  %r4 = vm.global.load.ref .refs[0] : !vm.buffer\n"
        "  %i10:11 = vm.buffer.length %r4\n  %i12 = vm.trunc.i64.i32 %i10:11\n  %i14:15 = vm.const.i64.zero\n"
        "  vm.buffer.store.i32 %i12, %r3, %i14:15\n  vm.buffer.store.i32 %i12, %r4, %i14:15\n  "
        "vm.return\n}}\n",
        kHeader, kArguments, kFirstBinding, kept);
    Executable executable = load(source);
    ASSERT_NE(executable, nullptr);
    Memory first = zeros(100);
    EXPECT_OK(
        dispatch(executable, {.function = 0, .constants = {1, 2, 3}, .bindings = {range(first, 0, 400)}}));
    destroy(first);
    EXPECT_OK(host_.take(table_.device_trim(device_)));
    Memory gone = allocate(std::vector<uint32_t>{77});
    const Outcome outcome = dispatch(executable, {.function = 1, .bindings = {range(gone, 0, 4)}});
    EXPECT_TRUE(outcome.code() == Code::OUT_OF_RANGE || outcome.code() == Code::PERMISSION_DENIED)
        << outcome.text();
    EXPECT_EQ(content<uint32_t>(gone, 1)[0], 0u) << "the kept buffer has no bytes";
    // The runner has created new objects.
    EXPECT_OK(dispatch(executable, {.function = 0, .constants = {1}, .bindings = {range(gone, 0, 4)}}));
  }
}

TEST_P(ExecutableTest, AKeptListIsEmptied) {
  const std::string source = fmt::format(
      "{0}vm.export @keep\nvm.export @use\n"
      "vm.func @keep{1}  vm.global.store.ref %r2, .refs[0] : !vm.list<!vm.buffer>\n  vm.return\n}}\n"
      "vm.func @use{1}{2}  %r4 = vm.global.load.ref .refs[0] : !vm.list<!vm.buffer>\n  %i12 = vm.list.size "
      "%r4\n"
      "  %i14:15 = vm.const.i64.zero\n  vm.buffer.store.i32 %i12, %r3, %i14:15\n  vm.return\n}}\n",
      kHeader, kArguments, kFirstBinding);
  Executable executable = load(source);
  Memory memory = allocate(std::vector<uint32_t>{77});
  EXPECT_OK(dispatch(executable, {.function = 0, .bindings = {range(memory, 0, 4), range(memory, 0, 4)}}));
  EXPECT_OK(dispatch(executable, {.function = 1, .bindings = {range(memory, 0, 4)}}));
  EXPECT_EQ(content<uint32_t>(memory, 1)[0], 0u);
}

TEST_P(ExecutableTest, AListThatAKernelChangesIsRestored) {
  Executable executable = load(kernel(fmt::format(
      "{}\n  %i9 = vm.const.i32 7\n  vm.list.resize %r2, %i9\n  vm.list.resize %r2, %i8", kLogBody)));
  Memory log = zeros(16);
  for (int repetition = 0; repetition < 3; ++repetition)
    EXPECT_OK(dispatch(executable, {.bindings = {range(log, 0, 64)}}));
  EXPECT_EQ(content<uint32_t>(log, 1)[0], 3u);
}

// ---- Threads

TEST_P(ExecutableTest, ThreadsDispatchAtTheSameTime) {
  Executable executable = load(kernel(kLogBody));
  constexpr uint32_t kThreads = 4, kWorkgroups = 50;
  std::vector<Memory> logs;
  for (uint32_t i = 0; i < kThreads; ++i) logs.push_back(zeros(kWorkgroups + 1));
  on_threads(kThreads, [&](size_t thread) {
    for (uint32_t i = 0; i < kWorkgroups; ++i)
      EXPECT_OK(dispatch(executable, {.bindings = {range(logs[thread], 0, 4 * (kWorkgroups + 1))}}));
  });
  for (Memory log : logs) EXPECT_EQ(content<uint32_t>(log, 1)[0], kWorkgroups);
}

// ---- Kernels of a compiled module

TEST_P(ExecutableTest, ProbeOfTheFixtures) {
  const std::string content_of_file = file_text(fixtures() / "exec/vmvx/probe_kernel.vmfb");
  if (content_of_file.empty()) GTEST_SKIP() << "no fixtures at " << fixtures();
  Executable executable = nullptr;
  EXPECT_OK(create({content_of_file.begin(), content_of_file.end()}, &executable));
  ASSERT_NE(executable, nullptr);
  const halyard_function_info_t probe = info(executable, 0);
  Memory output = zeros(64);
  Dispatch d = {.x = 2, .constants = std::vector<uint32_t>(probe.constant_count, 6)};
  ASSERT_GE(probe.constant_count, 2u);
  d.bindings.assign(probe.binding_count, range(output, 0, 256));
  EXPECT_OK(dispatch(executable, d));
  const auto local = static_cast<uint32_t>(probe.local_memory);
  EXPECT_EQ(content<uint32_t>(output, 31),
            (std::vector<uint32_t>{
                0, 0, 0, 1, 1, 1, 2, 1, 1, local, 4 * probe.constant_count, probe.binding_count, 6, 6, 256, 0,
                1, 0, 0, 1, 1, 1, 2, 1, 1, local, 4 * probe.constant_count, probe.binding_count, 6, 6, 256}));
}

}  // namespace
}  // namespace halyard::local_tests
