// Constants of a program: imported bytes. The host never writes to them, but kernels and commands through
// slots may.
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "native_harness.h"

namespace halyard::local_tests {
namespace {

// Adds 1 to each of the four words of its last binding.
std::string increment(uint32_t bindings) {
  return KernelTest::kernel(fmt::format(R"(
  %i9 = vm.const.i32 {}
  %i10 = vm.const.i32 1
  %i11 = vm.const.i32 4
  %i12 = vm.const.i32.zero
  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer
  vm.br ^bb1
^bb1:
  %i14:15 = vm.ext.i32.i64.u %i12
  %i13 = vm.buffer.load.i32 %r3, %i14:15
  %i13 = vm.add.i32 %i13, %i10
  vm.buffer.store.i32 %i13, %r3, %i14:15
  %i12 = vm.add.i32 %i12, %i10
  %i13 = vm.cmp.lt.i32.u %i12, %i11
  vm.cond_br %i13, ^bb1, ^bb2
^bb2:
)",
                                        bindings - 1));
}

class ConstantsTest : public NativeTest {
 public:
  // A page to which writing crashes the process.
  class ReadOnlyPage {
   public:
    ReadOnlyPage()
        : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
          bytes_(mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
    ReadOnlyPage(const ReadOnlyPage&) = delete;
    ReadOnlyPage& operator=(const ReadOnlyPage&) = delete;
    ~ReadOnlyPage() { munmap(bytes_, size_); }
    void* bytes() const { return bytes_; }
    bool is_zero() const {
      const auto* words = static_cast<const uint8_t*>(bytes_);
      return std::all_of(words, words + size_, [](uint8_t byte) { return byte == 0; });
    }

   private:
    const size_t size_;
    void* const bytes_;
  };

  void validate() { reopen({{"validate", "1"}}); }
};
HALYARD_ON_EVERY_DEVICE_AND_COMPILED(ConstantsTest);

using Words = std::vector<uint32_t>;

TEST_P(ConstantsTest, PrivateConstantsAreWrittenInPlace) {
  alignas(64) uint32_t words[16] = {5, 6, 7, 8, 9};
  Memory memory = import_memory(words, sizeof words, HALYARD_MAP_READ | HALYARD_MAP_PRIVATE);
  Executable executable = load(increment(1));
  for (int i = 0; i < 2; ++i) EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 0, 64)}}));
  EXPECT_EQ(Words(words, words + 5), (Words{7, 8, 9, 10, 9}));
  EXPECT_EQ(bytes(memory), reinterpret_cast<uint8_t*>(words));
}

TEST_P(ConstantsTest, OtherConstantsAreCopiedAtTheirFirstUse) {
  const ReadOnlyPage page;
  Memory memory = import_memory(page.bytes(), 128, HALYARD_MAP_READ);
  EXPECT_EQ(statistics().device_bytes_allocated, 0u);
  Executable executable = load(increment(1));
  for (int i = 0; i < 3; ++i) EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 64, 16)}}));
  EXPECT_TRUE(page.is_zero());
  EXPECT_EQ(content<uint32_t>(memory, 21),
            (Words{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 0}))
      << "the program sees its own writes";
  EXPECT_EQ(statistics().device_bytes_allocated, 128u) << "one copy";
  halyard_external_memory_t external = {.struct_size = sizeof external};
  EXPECT_OK(host_.take(table_.memory_export(device_, memory, HALYARD_EXTERNAL_HOST_ALLOCATION, &external)));
  EXPECT_EQ(external.access, unsigned{HALYARD_MAP_READ}) << "the host does not write to it";
  destroy(memory);
  EXPECT_EQ(statistics().device_bytes_live, 0u);
}

TEST_P(ConstantsTest, ThreadsShareOneCopy) {
  const ReadOnlyPage page;
  Executable executable = load(increment(1));
  for (int turn = 0; turn < 20; ++turn) {
    Memory memory = import_memory(page.bytes(), 4096, HALYARD_MAP_READ);
    on_threads(
        4, [&](size_t i) { EXPECT_OK(dispatch(executable, {.bindings = {range(memory, i * 1024, 16)}})); });
    for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(content<uint32_t>(memory, 1024)[i * 256], 1u);
  }
  EXPECT_TRUE(page.is_zero());
}

TEST_P(ConstantsTest, NativeCodeWritesToThem) {
  const ReadOnlyPage page;
  alignas(64) float in_place[8] = {};
  for (const char* kind : kLibraryKinds) {
    Executable executable = load_native(kind, "rev6");
    Memory from = allocate(std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
    for (Memory to : {import_memory(page.bytes(), 32, HALYARD_MAP_READ),
                      import_memory(in_place, 32, HALYARD_MAP_READ | HALYARD_MAP_PRIVATE)}) {
      EXPECT_OK(dispatch(executable, {.function = 2, .bindings = {range(from, 0, 32), range(to, 0, 32)}}));
      EXPECT_EQ(content<float>(to, 8), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
    }
  }
  EXPECT_EQ(in_place[7], 8);
  EXPECT_TRUE(page.is_zero());
}

TEST_P(ConstantsTest, CommandsWriteToThemThroughSlots) {
  const ReadOnlyPage page;
  const uint32_t source[2] = {7, 8};
  Memory other = allocate(Words{20, 21});
  Recording recording;
  recording.fill(slot(0, 0, 8), 3, 4)
      .barrier()
      .update(source, slot(0, 8, 8))
      .copy(range(other, 0, 8), slot(0, 16, 8))
      .barrier()
      .copy(slot(0, 8, 4), slot(0, 24, 4));
  List list = finish(recording, 1);
  alignas(64) uint32_t words[8] = {};
  const Words expected = {3, 3, 7, 8, 20, 21, 7, 0};
  for (Memory memory : {import_memory(page.bytes(), 96, HALYARD_MAP_READ),
                        import_memory(words, sizeof words, HALYARD_MAP_READ | HALYARD_MAP_PRIVATE)}) {
    EXPECT_OK(run(execute_operation(list, {{memory, 0, 32}})));
    EXPECT_EQ(content<uint32_t>(memory, 8), expected);
  }
  EXPECT_EQ(Words(words, words + 8), expected);
  EXPECT_TRUE(page.is_zero());
}

TEST_P(ConstantsTest, ValidatingDevicesNameTheWrittenBinding) {
  validate();
  alignas(64) uint32_t words[16] = {5, 6, 7, 8};
  alignas(64) static const uint32_t constants[16] = {1, 2, 3, 4};  // on read-only pages
  Memory memory = allocate(Words(4, 0));
  for (Memory constant : {import_memory(words, 64, HALYARD_MAP_READ | HALYARD_MAP_PRIVATE),
                          import_memory(const_cast<uint32_t*>(constants), 64, HALYARD_MAP_READ)}) {
    Executable executable = load(increment(2));
    EXPECT_FAILS(PERMISSION_DENIED, "binding 1 ",
                 dispatch(executable, {.bindings = {range(memory, 0, 16), range(constant, 0, 16)}}));
    EXPECT_OK(dispatch(executable, {.bindings = {range(constant, 0, 16), range(memory, 0, 16)}}))
        << "reading is allowed";

    Recording recording;
    recording.fill(slot(0, 0, 8), 3, 4);
    List list = finish(recording, 1);
    EXPECT_FAILS(PERMISSION_DENIED, "slot 0", run(execute_operation(list, {{constant, 0, 64}})));
    EXPECT_OK(run(execute_operation(list, {{memory, 0, 16}})));
  }
  EXPECT_EQ(Words(words, words + 4), (Words{5, 6, 7, 8}));
}

TEST_P(ConstantsTest, ValidatingDevicesDetectWritesOfNativeCode) {
  validate();
  alignas(64) float words[8] = {2, 4, 6, 8, 10, 12, 14, 16};
  for (const char* kind : kLibraryKinds) {
    Executable executable = load_native(kind, "rev6");
    Memory memory = allocate(std::vector<float>(8, 1));
    Memory constant = import_memory(words, 32, HALYARD_MAP_READ | HALYARD_MAP_PRIVATE);
    const Outcome written =
        dispatch(executable, {.function = 2, .bindings = {range(memory, 0, 32), range(constant, 0, 32)}});
    EXPECT_FAILS(PERMISSION_DENIED, "byte 3 of binding 1", written);
    EXPECT_NE(written.text().find("'halve'"), std::string::npos) << written.text();
    EXPECT_EQ(words[0], 2) << "the function wrote to a copy";
    EXPECT_OK(
        dispatch(executable, {.function = 2, .bindings = {range(constant, 0, 32), range(memory, 0, 32)}}));
    EXPECT_EQ(content<float>(memory, 8), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

}  // namespace
}  // namespace halyard::local_tests
