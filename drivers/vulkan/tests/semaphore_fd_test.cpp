// Semaphores as file descriptors. No implementation that is always available supports them for timelines
// (lavapipe does not), so four Vulkan functions are replaced: the file of a descriptor contains a number, and
// a thread copies values from the exported semaphore to the imported one. Everything else is done by the
// device: submissions wait and signal there.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "harness.h"
#include "timeline.h"

namespace halyard::vulkan_tests {

namespace {

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// The timelines behind descriptors, by number; the files contain the numbers.
class Payloads {
 public:
  struct Payload {
    uint64_t value = 0;
    VkDevice device = VK_NULL_HANDLE;  // owner of `exported`; null: only the test advances the value
    VkSemaphore exported = VK_NULL_HANDLE;
  };
  struct Import {
    uint64_t payload;
    VkDevice device;
    VkSemaphore semaphore;
    uint64_t value;
  };

  explicit Payloads(const vulkan::DeviceFunctions& real) : real_(real), carrier_([this] { carry(); }) {}
  ~Payloads() {
    stopping_ = true;
    carrier_.join();
  }

  int make(VkDevice device, VkSemaphore exported) {
    const std::lock_guard lock(mutex_);
    payloads_[++last_] = {.device = device, .exported = exported};
    const int fd = ::memfd_create("timeline", MFD_CLOEXEC);
    EXPECT_EQ(::pwrite(fd, &last_, sizeof last_, 0), ssize_t{sizeof last_});
    return fd;
  }
  bool import(VkDevice device, VkSemaphore semaphore, int fd) {
    const std::lock_guard lock(mutex_);
    uint64_t payload = 0;
    if (::pread(fd, &payload, sizeof payload, 0) != sizeof payload || !payloads_.contains(payload))
      return false;
    imports_.push_back({payload, device, semaphore, 0});
    ::close(fd);
    return true;
  }
  void set(uint64_t payload, uint64_t value) {
    const std::lock_guard lock(mutex_);
    payloads_[payload].value = value;
  }
  // Returns whether the semaphore was exported or imported.
  bool destroy(VkSemaphore semaphore) {
    const std::lock_guard lock(mutex_);
    look();
    bool found = false;
    for (auto& [number, payload] : payloads_) {
      if (payload.exported != semaphore) continue;
      payload.device = VK_NULL_HANDLE;
      payload.exported = VK_NULL_HANDLE;
      found = true;
    }
    return std::erase_if(imports_, [&](const Import& import) { return import.semaphore == semaphore; }) > 0 ||
           found;
  }
  const vulkan::DeviceFunctions& real() const { return real_; }
  uint64_t last() const { return last_; }

  std::atomic<int> host_signals = 0;

 private:
  void look() {
    for (auto& [number, payload] : payloads_)
      if (payload.device) real_.GetSemaphoreCounterValue(payload.device, payload.exported, &payload.value);
  }
  void carry() {
    while (!stopping_) {
      {
        const std::lock_guard lock(mutex_);
        look();
        for (Import& import : imports_) {
          const uint64_t value = payloads_[import.payload].value;
          uint64_t now = 0;
          real_.GetSemaphoreCounterValue(import.device, import.semaphore, &now);
          if (value <= now) continue;
          const VkSemaphoreSignalInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                              .semaphore = import.semaphore,
                                              .value = value};
          real_.SignalSemaphore(import.device, &info);
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  const vulkan::DeviceFunctions real_;
  std::mutex mutex_;
  std::map<uint64_t, Payload> payloads_;
  std::vector<Import> imports_;
  uint64_t last_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread carrier_;
};

std::optional<Payloads> payloads;

// Two devices, as of two drivers: they know nothing of each other.
class SemaphoreFdTest : public VulkanTest {
 public:
  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK(try_open("", {{"cache", ""}}, &other_));
    payloads.emplace(device_->vk());
    for (halyard_driver_device_t device : {device_, other_}) give_descriptors(*device);
    descriptors_ = open_descriptors();
  }
  void TearDown() override {
    for (Semaphore semaphore : others_) table_.semaphore_destroy(other_, semaphore);
    for (Semaphore semaphore : outside_) table_.semaphore_destroy(device_, semaphore);
    if (!IsSkipped()) {
      EXPECT_EQ(open_descriptors(), descriptors_);
    }
    if (other_) table_.device_close(other_);
    VulkanTest::TearDown();
    payloads.reset();
  }

  static void give_descriptors(vulkan::Device& device) {
    const_cast<vulkan::Features&>(device.features()).semaphore_descriptors = true;
    vulkan::DeviceFunctions& vk = functions(device);
    vk.CreateSemaphore = [](VkDevice on, const VkSemaphoreCreateInfo* info, const VkAllocationCallbacks*,
                            VkSemaphore* semaphore) {
      auto type = *static_cast<const VkSemaphoreTypeCreateInfo*>(info->pNext);
      type.pNext = nullptr;
      VkSemaphoreCreateInfo plain = *info;
      plain.pNext = &type;
      return payloads->real().CreateSemaphore(on, &plain, nullptr, semaphore);
    };
    vk.DestroySemaphore = [](VkDevice on, VkSemaphore semaphore, const VkAllocationCallbacks*) {
      // Lavapipe's thread may still use a semaphore that has its value. Others are internal to the device.
      if (payloads->destroy(semaphore)) payloads->real().DeviceWaitIdle(on);
      payloads->real().DestroySemaphore(on, semaphore, nullptr);
    };
    vk.SignalSemaphore = [](VkDevice on, const VkSemaphoreSignalInfo* info) {
      ++payloads->host_signals;
      return payloads->real().SignalSemaphore(on, info);
    };
    vk.GetSemaphoreFdKHR = [](VkDevice on, const VkSemaphoreGetFdInfoKHR* info, int* fd) {
      *fd = payloads->make(on, info->semaphore);
      return VK_SUCCESS;
    };
    vk.ImportSemaphoreFdKHR = [](VkDevice on, const VkImportSemaphoreFdInfoKHR* info) {
      return payloads->import(on, info->semaphore, info->fd) ? VK_SUCCESS : VK_ERROR_INVALID_EXTERNAL_HANDLE;
    };
  }

  int32_t export_fd(Semaphore semaphore) {
    int32_t fd = -1;
    EXPECT_OK(host_.take(table_.semaphore_export(semaphore, &fd)));
    return fd;
  }
  // Imports into the other device.
  Semaphore import(int32_t fd) {
    Semaphore imported = nullptr;
    EXPECT_OK(host_.take(table_.semaphore_import(other_, fd, &imported)));
    others_.push_back(imported);
    return imported;
  }
  // A device timeline that the test advances, and its number.
  std::pair<Semaphore, uint64_t> outside() {
    Semaphore imported = nullptr;
    const int32_t fd = payloads->make(VK_NULL_HANDLE, VK_NULL_HANDLE);
    EXPECT_OK(host_.take(table_.semaphore_import(device_, fd, &imported)));
    outside_.push_back(imported);
    return {imported, payloads->last()};
  }
  Outcome submit_there(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                       Completion& completion) {
    return submit_to(other_, operation, waits, signals, completion);
  }

  halyard_driver_device_t other_ = nullptr;
  std::vector<Semaphore> others_, outside_;
  size_t descriptors_ = 0;
};

TEST_F(SemaphoreFdTest, AnImportFollowsTheExport) {
  Semaphore exported = semaphore();
  EXPECT_OK(signal(exported, 3));
  Semaphore first = import(export_fd(exported)), second = import(export_fd(exported));
  EXPECT_EQ(value(first), 0u + value(second));
  EXPECT_OK(wait(first, 3));
  EXPECT_CODE(DEADLINE_EXCEEDED, wait(first, 4, 0));
  EXPECT_OK(signal(exported, 8));
  EXPECT_OK(wait(second, 8));
  EXPECT_OK(wait(first, 5));
  EXPECT_EQ(value(second), 8u);
  // Together with one that only the host signals, so no single wait of the device covers both.
  Semaphore plain = semaphore();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_OK(signal(exported, 9));
    EXPECT_OK(signal(plain, 1));
  });
  const halyard_timepoint_t both[] = {{first, 9}, {plain, 1}};
  const halyard_semaphore_wait_args_t args = {.struct_size = sizeof args,
                                              .timepoint_count = 2,
                                              .timepoints = both,
                                              .deadline_ns = HALYARD_WAIT_FOREVER};
  EXPECT_OK(host_.take(table_.semaphore_wait(other_, &args)));
  later.join();
  // A wait that ends without the import leaves nothing behind.
  const halyard_timepoint_t never[] = {{first, 100}, {plain, 2}};
  const auto soon = std::chrono::steady_clock::now().time_since_epoch() + std::chrono::milliseconds(20);
  const halyard_semaphore_wait_args_t in_vain = {.struct_size = sizeof in_vain,
                                                 .timepoint_count = 2,
                                                 .timepoints = never,
                                                 .deadline_ns = std::chrono::nanoseconds(soon).count()};
  EXPECT_CODE(DEADLINE_EXCEEDED, host_.take(table_.semaphore_wait(other_, &in_vain)));
  // The exported semaphore may be destroyed first.
  Semaphore brief = nullptr;
  EXPECT_OK(host_.take(table_.semaphore_create(device_, 6, &brief)));
  Semaphore left = import(export_fd(brief));
  EXPECT_OK(wait(left, 6));
  table_.semaphore_destroy(device_, brief);
  EXPECT_EQ(value(left), 6u);
}

// The first device's queue signals the semaphore that the second waits for, without the host in between.
TEST_F(SemaphoreFdTest, ADeviceWaitsForADevice) {
  Memory here = allocate(std::vector<uint32_t>(16, 0));
  auto [start, number] = outside();
  Semaphore done = semaphore(), end = semaphore();
  Completion first, second, third;
  EXPECT_EQ(table_.semaphore_underway(done, 1), 0);
  EXPECT_OK(submit(fill_operation(range(here, 0, 64), 7, 4), {{start, 1}}, {{done, 1}}, first));
  EXPECT_EQ(table_.semaphore_underway(done, 1), 1);
  EXPECT_EQ(table_.semaphore_underway(done, 2), 0);
  Semaphore imported = import(export_fd(done));
  EXPECT_EQ(table_.semaphore_underway(imported, 1), 0);
  // Work without commands also waits on the device.
  EXPECT_OK(submit_there(barrier_operation(), {{imported, 1}}, {{end, 1}}, second));
  EXPECT_OK(submit_there(barrier_operation(), {{imported, 1}, {end, 1}}, {{end, 2}}, third));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(first.calls + second.calls + third.calls, 0);
  EXPECT_CODE(DEADLINE_EXCEEDED, wait(imported, 1, 0));
  const int before = payloads->host_signals;
  payloads->set(number, 1);
  ASSERT_TRUE(is_done(first) && is_done(second) && is_done(third));
  EXPECT_OK(first.outcome);
  EXPECT_OK(second.outcome);
  EXPECT_OK(third.outcome);
  EXPECT_EQ(payloads->host_signals, before);
  EXPECT_EQ(words(here, 1), (std::vector<uint32_t>{7}));
  EXPECT_OK(wait(end, 2));
  EXPECT_EQ(table_.semaphore_underway(imported, 1), 1);
}

// The queue signals each value of the exported timeline when something is about to wait for it.
TEST_F(SemaphoreFdTest, AnImportServesManyValues) {
  auto [start, number] = outside();
  Semaphore done = semaphore();
  Semaphore imported = import(export_fd(done));
  std::array<Completion, 6> completions;
  const int before = payloads->host_signals;
  for (uint64_t value = 1; value <= 6; value += 2) {
    for (const uint64_t each : {value, value + 1})
      EXPECT_OK(submit(barrier_operation(), {{start, each}}, {{done, each}}, completions[each - 1]));
    EXPECT_EQ(table_.semaphore_underway(done, value + 1), 1);
    EXPECT_CODE(DEADLINE_EXCEEDED, wait(imported, value, 0));
    payloads->set(number, value + 1);
    EXPECT_OK(wait(imported, value + 1));
    ASSERT_TRUE(is_done(completions[value - 1]) && is_done(completions[value]));
  }
  EXPECT_EQ(payloads->host_signals, before);
}

// Another value fits between the current and the promised one: the host signals it.
TEST_F(SemaphoreFdTest, ValuesInAnyOrder) {
  auto [start, number] = outside();
  Semaphore done = semaphore();
  Completion first, second;
  EXPECT_OK(submit(barrier_operation(), {{start, 1}}, {{done, 5}}, first));
  Semaphore imported = import(export_fd(done));
  EXPECT_OK(signal(done, 2));
  EXPECT_OK(wait(imported, 2));
  EXPECT_EQ(value(imported), 2u);
  payloads->set(number, 1);
  EXPECT_OK(wait(imported, 5));
  // The queue will signal 6 after work that is delayed; the host's 9 must come after it.
  EXPECT_OK(submit(barrier_operation(), {{start, 2}}, {{done, 6}}, second));
  Semaphore late = import(export_fd(done));
  EXPECT_OK(signal(done, 9));
  EXPECT_CODE(DEADLINE_EXCEEDED, wait(late, 9, 0));
  payloads->set(number, 2);
  EXPECT_OK(wait(late, 9));
  EXPECT_OK(wait(imported, 9));
  ASSERT_TRUE(is_done(first) && is_done(second));
}

TEST_F(SemaphoreFdTest, AFailureEndsTheWaitOnTheDevice) {
  auto [start, number] = outside();
  Semaphore done = semaphore(), end = semaphore();
  Completion first, second, late;
  EXPECT_OK(submit(barrier_operation(), {{start, 1}}, {{done, 1}}, first));
  Semaphore imported = import(export_fd(done));
  EXPECT_OK(submit_there(barrier_operation(), {{imported, 1}}, {{end, 1}}, second));
  EXPECT_EQ(second.calls, 0);
  // Like the host when the exported semaphore fails: its device will never signal it.
  fail(imported, Code::ABORTED, "the other device is lost");
  ASSERT_TRUE(is_done(second));
  EXPECT_CODE(ABORTED, second.outcome);
  EXPECT_EQ(second.outcome.message(), "the other device is lost");
  EXPECT_CODE(ABORTED, wait(end, 1));
  EXPECT_CODE(ABORTED, wait(imported, 1));
  EXPECT_OK(submit_there(barrier_operation(), {{imported, 1}}, {}, late));
  ASSERT_TRUE(is_done(late));
  EXPECT_EQ(late.outcome.message(), "the other device is lost");
  payloads->set(number, 1);
  ASSERT_TRUE(is_done(first));
  EXPECT_OK(first.outcome);
}

TEST_F(SemaphoreFdTest, InvalidUsesAreRefused) {
  Semaphore exported = semaphore(), failed = semaphore(), nothing = nullptr;
  Semaphore imported = import(export_fd(exported));
  int32_t fd = -7;
  EXPECT_CODE(UNIMPLEMENTED, host_.take(table_.semaphore_export(imported, &fd)));
  EXPECT_CODE(UNIMPLEMENTED, signal(imported, 1));
  EXPECT_CODE(UNIMPLEMENTED, subscribe(imported, 1, [](void*, halyard_status_t) { ADD_FAILURE(); }, nullptr));
  fail(failed, Code::DATA_LOSS, "failed before");
  EXPECT_CODE(DATA_LOSS, host_.take(table_.semaphore_export(failed, &fd)));
  EXPECT_EQ(fd, -7);
  EXPECT_EQ(table_.semaphore_underway(failed, 0), 0);
  // The host still owns a descriptor that the driver has refused.
  const int32_t file = ::memfd_create("something else", MFD_CLOEXEC);
  EXPECT_CODE(INVALID_ARGUMENT, host_.take(table_.semaphore_import(other_, file, &nothing)));
  EXPECT_EQ(nothing, nullptr);
  EXPECT_EQ(::close(file), 0);
}

// A device without support reports that, and takes no ownership.
TEST_F(VulkanTest, SemaphoreDescriptorsAreReported) {
  const halyard_device_properties_t properties = this->properties();
  const bool has = properties.capabilities & HALYARD_DEVICE_SEMAPHORE_EXPORT;
  EXPECT_EQ(has, device_->features().semaphore_descriptors);
  EXPECT_EQ(properties.semaphore_fd_kind,
            uint32_t{has ? HALYARD_SEMAPHORE_FD_OPAQUE : HALYARD_SEMAPHORE_FD_NONE});
  if (has) GTEST_SKIP() << "this device has descriptors for timelines";
  Semaphore plain = semaphore(), imported = nullptr;
  int32_t fd = -1;
  EXPECT_CODE(UNIMPLEMENTED, host_.take(table_.semaphore_export(plain, &fd)));
  const int32_t file = ::memfd_create("something else", MFD_CLOEXEC);
  EXPECT_CODE(UNIMPLEMENTED, host_.take(table_.semaphore_import(device_, file, &imported)));
  EXPECT_EQ(::close(file), 0);
}

}  // namespace

}  // namespace halyard::vulkan_tests
