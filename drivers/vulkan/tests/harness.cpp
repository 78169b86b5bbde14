// The host's side of the tests.
#include "harness.h"

#include <algorithm>

namespace halyard::vulkan_tests {

namespace {

struct TestStatus {
  Outcome outcome;
  std::atomic<int> references = 1;
};

TestStatus* of(halyard_status_t status) { return reinterpret_cast<TestStatus*>(status); }

void release(halyard_status_t status) {
  if (of(status)->references.fetch_sub(1) == 1) delete of(status);
}

}  // namespace

Host::Host() {
  services_.struct_size = sizeof services_;
  services_.host = this;
  services_.status_create = [](void* host, halyard_status_code_t code, const char* message, size_t size) {
    return static_cast<Host*>(host)->give(code, {message, size});
  };
  services_.status_retain = [](void* host, halyard_status_t status) -> halyard_status_t {
    if (!status) return nullptr;
    ++static_cast<Host*>(host)->live_;
    ++of(status)->references;
    return status;
  };
  services_.status_release = [](void* host, halyard_status_t status) {
    (void)static_cast<Host*>(host)->take(status);
  };
  services_.status_code = [](void*, halyard_status_t status) -> halyard_status_code_t {
    return status ? of(status)->outcome.code : HALYARD_OK;
  };
  services_.status_message = [](void*, halyard_status_t status) {
    return of(status)->outcome.message.c_str();
  };
  services_.status_note = [](void*, halyard_status_t status, const char*, size_t) { return status; };
  services_.log = [](void* host, int32_t, const char* line, size_t size) {
    auto* self = static_cast<Host*>(host);
    const std::lock_guard lock(self->mutex_);
    self->log_.emplace_back(line, size);
  };
}

Outcome Host::take(halyard_status_t status) {
  if (!status) return {};
  --live_;
  Outcome outcome = of(status)->outcome;
  release(status);
  return outcome;
}

halyard_status_t Host::give(halyard_status_code_t code, std::string_view message) {
  ++live_;
  auto* status = new TestStatus;
  status->outcome = {code, std::string(message)};
  return reinterpret_cast<halyard_status_t>(status);
}

std::vector<std::string> Host::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

void Host::record_trace() {
  spans_.reserve(1024);
  services_.trace_span = [](void* host, const halyard_trace_span_t* span) {
    RecordedSpan recorded = {.kind = span->kind,
                             .begin = span->begin_ns,
                             .end = span->end_ns,
                             .submission = static_cast<Completion*>(span->submission),
                             .queue = span->queue};
    if (span->name)
      std::copy_n(span->name, std::min(span->name_size, sizeof recorded.name - 1), recorded.name);
    recorded.was_completed = recorded.submission && recorded.submission->calls > 0;
    auto* self = static_cast<Host*>(host);
    const std::lock_guard lock(self->mutex_);
    self->spans_.push_back(recorded);
  };
}

std::vector<RecordedSpan> Host::take_spans() {
  const std::lock_guard lock(mutex_);
  std::vector<RecordedSpan> spans = spans_;
  spans_.clear();
  return spans;
}

std::vector<uint8_t> kernel_file(const std::string& name) {
  std::ifstream file(std::string(HALYARD_BUILD_DIR) + "/tests/vulkan/" + name, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

void VulkanTest::SetUp() {
  const halyard_driver_init_args_t init = {
      .struct_size = sizeof init, .abi_version = 1, .services = &host_.services()};
  const Outcome outcome = host_.take(table_.initialize(&init, &instance_));
  if (outcome.code == HALYARD_UNAVAILABLE) GTEST_SKIP() << outcome.message;
  ASSERT_TRUE(is_ok(outcome));
  EXPECT_OK(try_open("", {{"cache", ""}}, &device_));
  ASSERT_NE(device_, nullptr);
}

void VulkanTest::close() {
  for (List list : lists_) table_.command_list_destroy(device_, list);
  for (Executable executable : executables_) table_.executable_destroy(device_, executable);
  for (Semaphore semaphore : semaphores_) table_.semaphore_destroy(device_, semaphore);
  for (Memory memory : memories_) table_.memory_free(device_, memory);
  lists_.clear();
  executables_.clear();
  semaphores_.clear();
  memories_.clear();
  if (device_) table_.device_close(device_);
  device_ = nullptr;
}

void VulkanTest::TearDown() {
  close();
  if (instance_) table_.shutdown(&instance_);
  EXPECT_EQ(instance_, nullptr);
}

vulkan::DeviceFunctions& VulkanTest::replace_vulkan() {
  auto& vk = const_cast<vulkan::DeviceFunctions&>(device_->vk());
  static uint64_t last = 0;
  last = 0;
  vk.QueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo* info, VkFence) {
    last = *static_cast<const VkTimelineSemaphoreSubmitInfo*>(info->pNext)->pSignalSemaphoreValues;
    return VK_SUCCESS;
  };
  vk.GetSemaphoreCounterValue = [](VkDevice, VkSemaphore, uint64_t* value) {
    *value = last;
    return VK_SUCCESS;
  };
  return vk;
}

Outcome VulkanTest::try_open(std::string_view path, const Options& options, halyard_driver_device_t* device) {
  std::vector<halyard_option_t> list;
  for (const auto& [key, value] : options) list.push_back({text(key), text(value)});
  const halyard_device_open_args_t args = {.struct_size = sizeof args,
                                           .option_count = static_cast<uint32_t>(list.size()),
                                           .kind = text("vulkan"),
                                           .path = text(path),
                                           .options = list.data()};
  return host_.take(table_.device_open(instance_, &args, device));
}

void VulkanTest::reopen(const Options& options) {
  close();
  ASSERT_TRUE(is_ok(try_open("", options, &device_)));
}

VulkanTest::Memory VulkanTest::allocate(uint64_t size, uint32_t type) {
  const halyard_memory_request_t request = {.struct_size = sizeof request,
                                            .memory_type = type | HALYARD_MEMORY_OPTIMAL,
                                            .usage = HALYARD_USAGE_DEFAULT,
                                            .affinity = 1,
                                            .size = size};
  halyard_memory_info_t info = {.struct_size = sizeof info};
  Memory memory = nullptr;
  EXPECT_OK(host_.take(table_.memory_allocate(device_, &request, &memory, &info)));
  if (memory) memories_.push_back(memory);
  return memory;
}

VulkanTest::Memory VulkanTest::allocate(const std::vector<uint32_t>& words) {
  Memory memory = allocate(words.size() * 4);
  std::memcpy(bytes(memory), words.data(), words.size() * 4);
  EXPECT_OK(host_.take(table_.memory_flush(device_, memory, 0, words.size() * 4)));
  return memory;
}

uint8_t* VulkanTest::bytes(Memory memory) {
  void* pointer = nullptr;
  EXPECT_OK(host_.take(table_.memory_map(device_, memory, HALYARD_MAP_READ, 0, 0, &pointer)));
  table_.memory_unmap(device_, memory);
  return static_cast<uint8_t*>(pointer);
}

std::vector<uint32_t> VulkanTest::words(Memory memory, size_t count) {
  std::vector<uint32_t> result(count);
  EXPECT_OK(host_.take(table_.memory_invalidate(device_, memory, 0, count * 4)));
  std::memcpy(result.data(), bytes(memory), count * 4);
  return result;
}

VulkanTest::Semaphore VulkanTest::semaphore() {
  Semaphore result = nullptr;
  EXPECT_OK(host_.take(table_.semaphore_create(device_, 0, &result)));
  semaphores_.push_back(result);
  return result;
}

Outcome VulkanTest::load(std::string_view format, const std::vector<uint8_t>& data, Executable* executable,
                         const std::vector<uint32_t>& constants,
                         const std::vector<uint32_t>& subgroup_sizes) {
  halyard_executable_args_t args = driver_tests::executable_args(format, data, constants);
  args.subgroup_sizes = subgroup_sizes.data();
  args.subgroup_size_count = static_cast<uint32_t>(subgroup_sizes.size());
  const Outcome outcome = host_.take(table_.executable_create(device_, &args, executable));
  if (outcome.ok()) executables_.push_back(*executable);
  return outcome;
}

VulkanTest::Executable VulkanTest::executable(std::string_view format, const std::vector<uint8_t>& data,
                                              const std::vector<uint32_t>& constants) {
  Executable result = nullptr;
  EXPECT_OK(load(format, data, &result, constants));
  return result;
}

halyard_command_dispatch_t VulkanTest::dispatch(Executable executable, uint32_t function,
                                                std::vector<halyard_range_t> bindings,
                                                std::vector<uint32_t> constants, uint32_t x) {
  bindings_.push_back(std::make_unique<std::vector<halyard_range_t>>(std::move(bindings)));
  constants_.push_back(std::make_unique<std::vector<uint32_t>>(std::move(constants)));
  halyard_command_dispatch_t command = {};
  command.header = {sizeof command, HALYARD_COMMAND_DISPATCH};
  command.executable = executable;
  command.function = function;
  command.workgroups[0] = x;
  command.workgroups[1] = command.workgroups[2] = 1;
  command.constant_count = static_cast<uint32_t>(constants_.back()->size());
  command.constants = constants_.back()->data();
  command.binding_count = static_cast<uint32_t>(bindings_.back()->size());
  command.bindings = bindings_.back()->data();
  return command;
}

VulkanTest::List VulkanTest::list(Recording recording, uint32_t slots, bool one_shot) {
  recordings_.push_back(std::make_unique<Recording>(std::move(recording)));
  const halyard_command_list_args_t args = recordings_.back()->args(slots, one_shot);
  List result = nullptr;
  EXPECT_OK(host_.take(table_.command_list_create(device_, &args, &result)));
  if (result) lists_.push_back(result);
  return result;
}

Outcome VulkanTest::try_list(const Recording& recording) {
  const halyard_command_list_args_t args = recording.args(0, false);
  List result = nullptr;
  const Outcome outcome = host_.take(table_.command_list_create(device_, &args, &result));
  if (result) table_.command_list_destroy(device_, result);
  return outcome;
}

Outcome VulkanTest::submit(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                           Completion& completion, uint64_t affinity) {
  completion.host = &host_;
  const halyard_submission_t submission = {.struct_size = sizeof submission,
                                           .wait_count = static_cast<uint32_t>(waits.size()),
                                           .signal_count = static_cast<uint32_t>(signals.size()),
                                           .affinity = affinity,
                                           .waits = waits.data(),
                                           .signals = signals.data(),
                                           .operation = &operation,
                                           .completed =
                                               [](void* user, halyard_status_t status) {
                                                 auto* self = static_cast<Completion*>(user);
                                                 self->outcome = self->host->take(status);
                                                 ++self->calls;
                                               },
                                           .completed_user = &completion};
  return host_.take(table_.queue_submit(device_, &submission));
}

bool VulkanTest::is_done(const Completion& completion) {
  const auto hang = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (completion.calls == 0 && std::chrono::steady_clock::now() < hang)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return completion.calls == 1;
}

Outcome VulkanTest::run(const halyard_operation_t& operation) {
  Completion completion;
  Outcome accepted = submit(operation, {}, {}, completion);
  if (!accepted.ok()) return accepted;
  EXPECT_TRUE(is_done(completion));
  return completion.outcome;
}

Outcome VulkanTest::wait(Semaphore semaphore, uint64_t value, int64_t deadline_ns) {
  const halyard_timepoint_t point = {semaphore, value};
  const halyard_semaphore_wait_args_t args = {
      .struct_size = sizeof args, .timepoint_count = 1, .timepoints = &point, .deadline_ns = deadline_ns};
  return host_.take(table_.semaphore_wait(device_, &args));
}

}  // namespace halyard::vulkan_tests
