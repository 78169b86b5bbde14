// Devices: selection, options, the pipeline cache, loss, and the cost of warm work.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "allocation_count.h"
#include "harness.h"
#include "vulkan_instance.h"

namespace halyard::vulkan_tests {
namespace {

vulkan::PhysicalDevice physical(const char* name, const char* uuid) {
  vulkan::PhysicalDevice device;
  std::strncpy(device.properties.deviceName, name, VK_MAX_PHYSICAL_DEVICE_NAME_SIZE - 1);
  device.uuid = uuid;
  return device;
}

void expect_not_found(const char* path, const std::vector<vulkan::PhysicalDevice>& devices,
                      const char* named) {
  const auto found = vulkan::choose_device(path, devices);
  ASSERT_FALSE(static_cast<bool>(found)) << path;
  EXPECT_EQ(found.failure().code, HALYARD_NOT_FOUND);
  EXPECT_TRUE(found.failure().message.contains(named)) << found.failure().message;
}

TEST(VulkanChoice, ByOrdinalUuidAndName) {
  const std::vector<vulkan::PhysicalDevice> devices = {
      physical("NVIDIA H200", "GPU-00112233445566778899aabbccddeeff"),
      physical("NVIDIA L4", "GPU-10112233445566778899aabbccddeeff"),
      physical("llvmpipe (LLVM 15.0.6, 256 bits)", "GPU-6d65736132322e332e36000000000000")};
  const std::pair<const char*, size_t> kChosen[] = {{"", 0},
                                                    {"0", 0},
                                                    {"2", 2},
                                                    {"GPU-10112233445566778899aabbccddeeff", 1},
                                                    {"gpu-10112233-4455-6677-8899-AABBCCDDEEFF", 1},
                                                    {"10112233-4455-6677-8899-aabbccddeeff", 1},
                                                    {"NVIDIA L4", 1},
                                                    {"h200", 0},
                                                    {"llvmpipe", 2}};
  for (const auto& [path, position] : kChosen) {
    const auto found = vulkan::choose_device(path, devices);
    ASSERT_TRUE(static_cast<bool>(found)) << path;
    EXPECT_EQ(*found, position) << path;
  }
  // "2" is the third device and a part of the first one's name; "15" is only a part of a name.
  for (const char* path : {"3",    "15",     "6",      "200",     "00", "02",       "0 ",
                           " 0",   "+0",     "0.0",    "0x1",     "-1", ".",        "15.0.6",
                           "(",    ")",      " ",      "h2",      "l",  "vidia l4", "99999999999999999999",
                           "GPU-", "nvidia", "radeon", "GPU-0011"})
    expect_not_found(path, devices, "GPU-10112233445566778899aabbccddeeff");
}

TEST(VulkanChoice, AmongEqualDevices) {
  const std::vector<vulkan::PhysicalDevice> twins = {
      physical("NVIDIA H200", "GPU-00112233445566778899aabbccddeeff"),
      physical("NVIDIA H200", "GPU-00112233445566778899aabbccddeeff")};
  for (const char* path : {"NVIDIA H200", "h200", "GPU-00112233445566778899aabbccddeeff"})
    expect_not_found(path, twins, "more than one");
  EXPECT_EQ(*vulkan::choose_device("1", twins), 1u);
  // A UUID with only decimal digits is not an ordinal.
  const std::vector<vulkan::PhysicalDevice> digits = {physical("A", "GPU-00112233445566778899aabbccddeeff"),
                                                      physical("B", "GPU-00112233445566778899001122334455")};
  EXPECT_EQ(*vulkan::choose_device("00112233445566778899001122334455", digits), 1u);
  // The whole name of one device is a part of the other's.
  const std::vector<vulkan::PhysicalDevice> longer = {
      physical("RTX 4090 Ti", "GPU-00112233445566778899aabbccddeeff"),
      physical("RTX 4090", "GPU-00112233445566778899001122334455")};
  EXPECT_EQ(*vulkan::choose_device("rtx 4090", longer), 1u);
}

class DeviceTest : public VulkanTest {
 public:
  Outcome increment(Memory memory, Executable loaded) { return run_kernel(loaded, 2, {range(memory, 0, 4)}); }
};

TEST_F(DeviceTest, OpensByListedNames) {
  halyard_device_info_t info = {.struct_size = sizeof info};
  uint32_t count = 0;
  EXPECT_OK(host_.take(table_.enumerate_devices(instance_, 1, &info, &count)));
  ASSERT_GE(count, 1u);
  for (const std::string& path : {std::string(info.path), std::string("0"), std::string(info.name)}) {
    halyard_driver_device_t device = nullptr;
    EXPECT_OK(try_open(path, {{"cache", ""}}, &device)) << path;
    if (device) table_.device_close(device);
  }
  halyard_driver_device_t device = nullptr;
  EXPECT_CODE(NOT_FOUND, try_open("no such device", {}, &device));
}

TEST_F(DeviceTest, Options) {
  halyard_driver_device_t device = nullptr;
  for (const auto& [key, value] : {std::pair{"validate", "2"},
                                   {"queues", "0"},
                                   {"queues", "x"},
                                   {"queues", "64"},
                                   {"compile_threads", "0"},
                                   {"inline_completion", ""},
                                   {"colour", "red"}}) {
    EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("'{}'", key), try_open("", {{key, value}}, &device));
  }
}

class CacheTest : public DeviceTest {
 public:
  void SetUp() override {
    DeviceTest::SetUp();
    folder_ =
        std::filesystem::temp_directory_path() /
        fmt::format("halyard-vulkan-cache-{}", std::chrono::steady_clock::now().time_since_epoch().count());
  }
  void TearDown() override {
    DeviceTest::TearDown();
    std::filesystem::remove_all(folder_);
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    if (std::filesystem::exists(folder_))
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }
  void use_once() {
    reopen({{"cache", folder_}});
    Memory memory = allocate(std::vector<uint32_t>{1});
    EXPECT_OK(increment(memory, device_code()));
    EXPECT_EQ(words(memory, 1)[0], 2u);
    reopen({{"cache", ""}});
  }
  std::filesystem::path folder_;
};

TEST_F(CacheTest, IsWrittenAndSurvivesDamage) {
  use_once();
  ASSERT_EQ(files().size(), 1u);
  const std::filesystem::path file = files()[0];
  const auto size = std::filesystem::file_size(file);
  EXPECT_GE(size, 24u + 32u);  // lavapipe stores nothing after its header
  const auto read = [&] {
    std::ifstream stream(file, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  };
  const std::string whole = read();
  const std::string foreign = whole.substr(0, 24 + 8) + std::string(8, '\x5A') + whole.substr(24 + 16);
  for (const std::string& damaged : {std::string(), whole.substr(0, 10), whole.substr(0, whole.size() - 1),
                                     whole + "x", foreign, std::string(whole.size(), '\0')}) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    use_once();
    EXPECT_EQ(files().size(), 1u);
    EXPECT_EQ(read().size(), whole.size()) << "a damaged cache is replaced";
  }
  EXPECT_TRUE(host_.log().empty());
}

// A file that the driver reads stays unchanged, because lavapipe adds nothing to its cache. The driver
// replaces a file that it does not read.
TEST_F(CacheTest, FilesThatOthersCanWriteAreNotRead) {
  use_once();
  ASSERT_EQ(files().size(), 1u);
  const std::filesystem::path file = files()[0];
  struct stat before = {}, after = {};
  ASSERT_EQ(stat(file.c_str(), &before), 0);
  EXPECT_EQ(before.st_mode & 0777, 0600u);
  use_once();
  ASSERT_EQ(stat(file.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "the cache is read";

  const std::filesystem::path elsewhere = folder_ / "elsewhere";
  const auto move_away = [&] { std::filesystem::rename(file, elsewhere); };
  const auto expect_replaced = [&](const char* what) {
    use_once();
    ASSERT_EQ(lstat(file.c_str(), &after), 0) << what;
    EXPECT_TRUE(S_ISREG(after.st_mode)) << what;
    EXPECT_EQ(after.st_mode & 0777, 0600u) << what;
    std::filesystem::remove(elsewhere);
  };
  chmod(file.c_str(), 0666);
  expect_replaced("a file that all may write to");
  move_away();
  ASSERT_EQ(symlink(elsewhere.c_str(), file.c_str()), 0);
  expect_replaced("a link");
  move_away();
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expect_replaced("a pipe that nobody writes to");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
    ASSERT_EQ(stat(file.c_str(), &before), 0);
    expect_replaced("another user's file");
    EXPECT_EQ(after.st_uid, 0u);
  }
  EXPECT_TRUE(host_.log().empty());

  std::filesystem::remove(file);
  chmod(folder_.c_str(), 0777);
  use_once();
  EXPECT_TRUE(files().empty()) << "a folder that all may write to";
  ASSERT_EQ(host_.log().size(), 1u);
  EXPECT_NE(host_.log()[0].find("700"), std::string::npos) << host_.log()[0];
  chmod(folder_.c_str(), 0700);
}

TEST_F(CacheTest, CannotBeWritten) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "file") << "in the way";
  folder_ /= "file";
  use_once();
  ASSERT_EQ(host_.log().size(), 1u);
  EXPECT_NE(host_.log()[0].find(folder_.string()), std::string::npos);
  folder_ = folder_.parent_path();
}

TEST_F(CacheTest, SharedByDevicesAtOnce) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 3; ++j) {
        halyard_driver_device_t device = nullptr;
        EXPECT_OK(try_open("", {{"cache", folder_}}, &device));
        const std::vector<uint8_t> data = kernel_file("device_code.bin");
        const halyard_executable_args_t args = executable_args("vulkan-spirv-fb", data, {});
        Executable loaded = nullptr;
        EXPECT_OK(host_.take(table_.executable_create(device, &args, &loaded)));
        table_.executable_destroy(device, loaded);
        table_.device_close(device);
      }
    });
  threads.clear();
  EXPECT_EQ(files().size(), 1u);
  EXPECT_TRUE(host_.log().empty());
}

// A lost device: from now on, the submission function reports the loss.
class LossTest : public DeviceTest {
 public:
  void lose() {
    functions().QueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
      return VK_ERROR_DEVICE_LOST;
    };
  }
};

TEST_F(LossTest, IsReportedWithTheGroupsOfTheLastSubmission) {
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>{1});
  List lost = finish(Recording()
                         .begin_group("attention")
                         .begin_group("softmax")
                         .dispatch(dispatch(loaded, 2, {range(memory, 0, 4)}))
                         .end_group()
                         .end_group());
  const auto [before, between, after] = semaphores<3>();
  Completion first, next;
  EXPECT_OK(submit(execute_operation(lost), {{before, 1}}, {{between, 1}}, first));
  EXPECT_OK(submit(barrier_operation(), {{between, 1}}, {{after, 1}}, next));
  lose();
  EXPECT_OK(signal(before, 1));
  ASSERT_TRUE(is_done(first) && is_done(next));
  expect_fails(Code::ABORTED, {"lost", "execute", "attention/softmax", "vulkan://"}, first.outcome);
  EXPECT_EQ(next.outcome.message(), first.outcome.message());
  EXPECT_CODE(ABORTED, wait(after, 1));
  // Later work also fails, with the first report; nothing hangs, and the device closes.
  const Outcome later = run(execute_operation(lost));
  EXPECT_EQ(later.message(), first.outcome.message());
}

TEST_F(LossTest, TheLastSubmissionsAreInTheReport) {
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>{1});
  const halyard_command_dispatch_t increment = dispatch(loaded, 2, {range(memory, 0, 4)});
  {
    // Completed work, more than the report holds.
    for (int i = 0; i < 10; ++i) EXPECT_OK(run(fill_operation(range(memory, 0, 4), 7, 4)));
  }
  // Accepted, and never completed.
  accept_without_end();
  List stuck = finish(Recording().begin_group("head").dispatch(increment).end_group());
  std::array<Completion, 10> completions;
  for (Completion& completion : completions) EXPECT_OK(submit(execute_operation(stuck), {}, {}, completion));
  lose();
  const std::string report = run(dispatch_operation(&increment)).message();
  stuck_waits_end();
  for (const Completion& completion : completions) {
    EXPECT_TRUE(is_done(completion));
    EXPECT_EQ(completion.outcome.message(), report);
  }
  const std::string expected[] = {
      "last submissions: #11 execute of 'increment' with groups head on queue 0 (number 11), in flight; #13 ",
      "; #20 execute of 'increment' with groups head on queue 0 (number 20), in flight; #21 ",
      "; #21 dispatch of 'increment' on queue 0 (number 21), refused"};
  for (const std::string& text : expected) EXPECT_NE(report.find(text), std::string::npos) << report;
}

TEST_F(LossTest, CompletedWorkIsInTheReport) {
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>{1, 2});
  const halyard_command_dispatch_t increment = dispatch(loaded, 2, {range(memory, 0, 4)});
  const std::string outer(150, 'a');
  const std::string inner(150, 'b');
  List list_of_two = finish(Recording()
                                .begin_group(outer)
                                .dispatch(increment)
                                .dispatch(increment)
                                .begin_group(inner)
                                .dispatch(dispatch(loaded, 0, {range(memory, 0, 8)}, {0, 1}))
                                .end_group()
                                .end_group());
  EXPECT_OK(run(execute_operation(list_of_two)));
  lose();
  const std::string report = run(execute_operation(list_of_two)).message();
  const std::string groups = outer + ", " + std::string(37, 'a') + "...";
  const std::string first = fmt::format(
      "last submissions: #1 execute of 'increment', 'iota' with groups {} on queue 0 (number 1), done; #2 ",
      groups);
  EXPECT_NE(report.find(first), std::string::npos) << report;
  EXPECT_NE(report.find(", refused"), std::string::npos) << report;
}

TEST_F(DeviceTest, WarmSubmissionsAllocateNothing) {
  if (!driver_tests::kCountsAllocations) GTEST_SKIP() << "allocations are not counted under a sanitizer";
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>(1024, 0));
  replace_vulkan();  // so that only the driver's own allocations are counted
  List baked = finish(Recording().dispatch(dispatch(loaded, 2, {range(memory, 0, 64)})).barrier());
  List slots = finish(Recording().dispatch(dispatch(loaded, 2, {slot(0, 0, 64)})), 1);
  Semaphore chain = semaphore();
  const std::vector<halyard_binding_t> table = {{memory, 0, 4096}};
  uint64_t value = 0;
  Completion completion;
  const auto round = [&] {
    Points wait = {}, signal = {{chain, 0}};
    for (const halyard_operation_t& work :
         {execute_operation(baked), execute_operation(slots, table), barrier_operation()}) {
      wait.clear();
      if (value > 0) wait.push_back({chain, value});
      signal[0].value = ++value;
      EXPECT_TRUE(submit(work, wait, signal, completion).ok());
      EXPECT_TRUE(VulkanTest::wait(chain, value).ok());
    }
  };
  for (int i = 0; i < 3; ++i) round();
  // The test's own vectors are counted too, so the difference is the driver's.
  Points wait = {{chain, value}}, signal = {{chain, value + 1}};
  const halyard_operation_t work = execute_operation(slots, table);
  const int64_t before = driver_tests::allocation_count().made;
  EXPECT_TRUE(submit(work, wait, signal, completion).ok());
  EXPECT_TRUE(VulkanTest::wait(chain, value + 1).ok());
  EXPECT_EQ(driver_tests::allocation_count().made - before, 0);
}

// All ways of noticing completion, of binding and of numbering queues give the same results.
class SwitchTest : public DeviceTest,
                   public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(SwitchTest, ComputesTheSame) {
  reopen({{"cache", ""}, {GetParam().first, GetParam().second}});
  Executable loaded = device_code();
  Memory a = allocate(std::vector<uint32_t>(300, 1)), b = allocate(std::vector<uint32_t>(300, 2));
  Memory out = allocate(std::vector<uint32_t>(300, 0));
  Semaphore chain = semaphore();
  Recording sum;
  for (int i = 0; i < 200; ++i)  // more sets than fit in one pool
    sum.dispatch(dispatch(loaded, 1, {range(a, 0, 1200), range(b, 0, 1200), range(out, 0, 1200)}, {}, 300))
        .barrier();
  List add = finish(std::move(sum));
  List more = finish(Recording().dispatch(dispatch(loaded, 2, {slot(0, 0, 1200)}, {}, 300)), 1);
  std::vector<Completion> completions(9);
  const std::vector<halyard_binding_t> tables[] = {{{out, 0, 1200}}, {{a, 0, 1200}}};
  EXPECT_OK(submit(execute_operation(add), {}, {{chain, 1}}, completions[0]));
  for (uint64_t i = 1; i < completions.size(); ++i)
    EXPECT_OK(submit(execute_operation(more, tables[i % 2]), {{chain, i}}, {{chain, i + 1}}, completions[i]));
  EXPECT_OK(wait(chain, completions.size()));
  for (const Completion& completion : completions) EXPECT_TRUE(is_done(completion));
  EXPECT_EQ(words(out, 300), std::vector<uint32_t>(300, 3 + 4));
  EXPECT_EQ(words(a, 300), std::vector<uint32_t>(300, 1 + 4));
}
INSTANTIATE_TEST_SUITE_P(
    Options, SwitchTest,
    testing::Values(std::pair{"inline_completion", "1"}, std::pair{"inline_completion", "0"},
                    std::pair{"push_descriptors", "0"}, std::pair{"queues", "1"}, std::pair{"validate", "1"}),
    [](const auto& test) { return fmt::format("{}_{}", test.param.first, test.param.second); });

// Memory that the host must flush: all flushes and invalidations that Vulkan sees are of whole atoms within
// the memory. No available implementation has such memory, so it is simulated.
TEST_F(DeviceTest, FlushesWholeAtoms) {
  struct Seen {
    VkDeviceSize offset = 0, size = 0;
    int calls = 0;
  };
  static Seen seen;
  seen = {};
  functions().FlushMappedMemoryRanges = [](VkDevice, uint32_t, const VkMappedMemoryRange* range) {
    seen = {range->offset, range->size, seen.calls + 1};
    return VK_SUCCESS;
  };
  features().limits.nonCoherentAtomSize = 256;
  VkPhysicalDeviceMemoryProperties memory = {.memoryTypeCount = 2, .memoryHeapCount = 1};
  memory.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  memory.memoryTypes[1].propertyFlags =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  memory.memoryHeaps[0] = {1u << 30, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  vulkan::Heap heap(device_->vk(), device_->handle(), features(), memory,
                    [](const vulkan::Block&) -> vulkan::Result<> { return {}; });
  ASSERT_TRUE(heap.start());
  EXPECT_GE(heap.alignment(), 256u);
  vulkan::Chunk chunk = {.size = 4096, .mapped = reinterpret_cast<uint8_t*>(&chunk)};
  const vulkan::Block block = {.chunk = &chunk, .offset = 1024, .size = 512, .kind = 1};
  EXPECT_TRUE(heap.flush(block, 10, 300));
  EXPECT_EQ(seen.offset, 1024u);
  EXPECT_EQ(seen.size, 512u);
  EXPECT_TRUE(heap.flush(block, 256, 1));
  EXPECT_EQ(seen.offset, 1280u);
  EXPECT_EQ(seen.size, 256u);
  EXPECT_TRUE(heap.flush(block, 0, 0));
  const vulkan::Block coherent = {.chunk = &chunk, .size = 512, .kind = 0};
  EXPECT_TRUE(heap.flush(coherent, 0, 100));
  EXPECT_EQ(seen.calls, 2);
}

// The host's bytes, at the smallest promised alignment, are imported without a copy.
TEST_F(DeviceTest, ImportsAreTheHostsBytes) {
  const uint64_t alignment = properties().import_alignment;
  if (alignment == 0) GTEST_SKIP() << "the device imports no host memory";
  Executable loaded = device_code();
  std::vector<uint8_t> room(3 * 4096, 0xAA);
  auto* at =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(room.data()) + 4095) / 4096 * 4096 + alignment);
  std::memset(at, 0, 64);
  Memory memory = import_memory(at, 64, HALYARD_MAP_READ | HALYARD_MAP_WRITE);
  EXPECT_OK(run_kernel(loaded, 2, {range(memory, 0, 64)}, {}, 16));
  EXPECT_EQ(at[-1], 0xAA);
  EXPECT_EQ(at[0], 1);
  EXPECT_EQ(at[60], 1);
  EXPECT_EQ(at[64], 0xAA);
}

// A wrong call of Vulkan causes a message of the layer. The device logs the message and refuses further work.
TEST_F(DeviceTest, ValidationTurnsMessagesIntoFailures) {
  halyard_driver_device_t device = nullptr;
  const Outcome opened = try_open("", {{"cache", ""}, {"validate", "1"}}, &device);
  if (opened.code() == Code::UNAVAILABLE) GTEST_SKIP() << opened.message();
  ASSERT_OK(opened);
  const VkBufferCreateInfo wrong = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 0};
  VkBuffer buffer = VK_NULL_HANDLE;
  (void)device->vk().CreateBuffer(device->handle(), &wrong, nullptr, &buffer);
  if (buffer) device->vk().DestroyBuffer(device->handle(), buffer, nullptr);
  EXPECT_FALSE(host_.log().empty());
  Completion refused;
  EXPECT_CODE(INTERNAL, submit_to(device, barrier_operation(), {}, {}, refused));
  table_.device_close(device);
}

}  // namespace
}  // namespace halyard::vulkan_tests
