// Simulates a future host: calls the drivers of this tree, and the first driver ever built, with larger
// structs. They read and write only the fields that they know (docs/driver-abi.md, R10 to R14, R102).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "hal/driver/host_services.h"
#include "halyard/driver.h"

namespace halyard::hal {
namespace {

constexpr uint64_t kLater = 0xE7E7E7E7E7E7E7E7;

// A struct with fields that the driver does not know. Their contents are not valid pointers or sizes.
template <typename T>
struct Grown {
  Grown() {
    later.fill(kLater);
    known.struct_size = sizeof(Grown);
  }
  T* operator->() { return &known; }
  // Checks that the driver filled only fields that it knows.
  void expect_whole() const {
    EXPECT_EQ(known.struct_size, sizeof(Grown));
    EXPECT_TRUE(std::ranges::all_of(later, [](uint64_t word) { return word == kLater; }));
  }

  T known = {};
  std::array<uint64_t, 4> later;
};

// A command with fields that the driver does not know. The next command follows after them.
template <typename T>
struct GrownCommand {
  explicit GrownCommand(uint32_t kind) {
    later.fill(kLater);
    known.header = {sizeof(GrownCommand), kind};
  }
  T known = {};
  std::array<uint64_t, 3> later;
};

struct Tried {
  std::string name;  // of the test
  std::string kind;
  std::string path;
  std::string skip;  // the reason for not running it here
};

std::vector<Tried> drivers() {
  const char* const folder = std::getenv("HALYARD_DRIVER_PATH");
  const auto built = [&](const std::string& library) {
    return std::string(folder ? folder : HALYARD_BUILD_DIR "/lib/halyard/drivers") + "/halyard-driver-" +
           library + ".so";
  };
  std::string skip;
#if !defined(__x86_64__)
  skip = "the driver that is kept is for x86_64";
#endif
  if (HALYARD_SANITIZER_KIND != HALYARD_SANITIZER_NONE) skip = "the driver that is kept is not instrumented";
  return {{"Null", "null", built("null"), ""},
          {"Local", "local-sync", built("local"), ""},
          {"First", "null", HALYARD_SOURCE_DIR "/tests/abi/first/halyard-driver-null.so", skip}};
}

class NewerHost : public testing::TestWithParam<Tried> {
 protected:
  void SetUp() override {
    if (!GetParam().skip.empty()) GTEST_SKIP() << GetParam().skip;
    if (!std::filesystem::exists(GetParam().path)) GTEST_SKIP() << GetParam().path << " is not built";
    void* const library = ::dlopen(GetParam().path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    void* const symbol = ::dlsym(library, HALYARD_DRIVER_NEGOTIATE_SYMBOL);
    ASSERT_NE(symbol, nullptr);
    const auto negotiate = reinterpret_cast<halyard_driver_negotiate_fn>(symbol);
    Grown<halyard_driver_request_t> request;
    request->abi_min = HALYARD_DRIVER_ABI_V1;
    request->abi_max = HALYARD_DRIVER_ABI_V1 + 5;
    request->sanitizer = HALYARD_SANITIZER_KIND;
    request->host_version = "of the future";
    Grown<halyard_driver_reply_t> reply;
    ASSERT_EQ(negotiate(&request.known, &reply.known), 1) << reply->refusal;
    reply.expect_whole();
    EXPECT_EQ(reply->abi_version, HALYARD_DRIVER_ABI_V1);
    table_ = reply->table;
    services_.known = host_.table();
    services_->struct_size = sizeof services_;
    Grown<halyard_driver_init_args_t> args;
    args->abi_version = reply->abi_version;
    args->services = &services_.known;
    ASSERT_TRUE(ok(table_->initialize(&args.known, &instance_)));
    Grown<halyard_device_open_args_t> open;
    open->kind = {GetParam().kind.c_str(), GetParam().kind.size()};
    ASSERT_TRUE(ok(table_->device_open(instance_, &open.known, &device_)));
  }

  void TearDown() override {
    if (device_) table_->device_close(device_);
    if (instance_) table_->shutdown(&instance_);
    EXPECT_EQ(instance_, nullptr);
  }

  static bool ok(halyard_status_t status) {
    const Status taken = Status::adopt(status);
    EXPECT_TRUE(taken.ok()) << taken.text();
    return taken.ok();
  }

  struct Memory {
    halyard_driver_memory_t handle = nullptr;
    Grown<halyard_memory_info_t> info;
  };
  static Grown<halyard_memory_request_t> request_of(uint64_t size) {
    Grown<halyard_memory_request_t> request;
    request->memory_type = HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE;
    request->usage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED;
    request->affinity = 1;
    request->size = size;
    return request;
  }
  static void expect_given(const Memory& memory, uint64_t size) {
    memory.info.expect_whole();
    EXPECT_NE(memory.handle, nullptr);
    EXPECT_GE(memory.info.known.size, size);
    EXPECT_EQ(memory.info.known.memory_type & HALYARD_MEMORY_HOST_LOCAL, 0u + HALYARD_MEMORY_HOST_LOCAL);
  }

  // Submits the operation and waits for its end. completed() receives its status.
  void run(Grown<halyard_operation_t>& operation) {
    halyard_driver_semaphore_t semaphore = nullptr;
    ASSERT_TRUE(ok(table_->semaphore_create(device_, 0, &semaphore)));
    const halyard_timepoint_t done = {semaphore, 1};
    Grown<halyard_submission_t> submission;
    submission->affinity = 1;
    submission->signal_count = 1;
    submission->signals = &done;
    submission->operation = &operation.known;
    bool completed = false;
    submission->completed = [](void* user, halyard_status_t status) {
      ok(status);
      *static_cast<bool*>(user) = true;
    };
    submission->completed_user = &completed;
    ASSERT_TRUE(ok(table_->queue_submit(device_, &submission.known)));
    Grown<halyard_semaphore_wait_args_t> wait;
    wait->timepoint_count = 1;
    wait->timepoints = &done;
    wait->deadline_ns = HALYARD_WAIT_FOREVER;
    EXPECT_TRUE(ok(table_->semaphore_wait(device_, &wait.known)));
    EXPECT_TRUE(completed);  // both devices run in the caller
    table_->semaphore_destroy(device_, semaphore);
  }

  void expect_bytes(halyard_driver_memory_t memory, const std::vector<uint8_t>& expected) {
    void* pointer = nullptr;
    ASSERT_TRUE(ok(table_->memory_map(device_, memory, HALYARD_MAP_READ, 0, expected.size(), &pointer)));
    EXPECT_EQ(std::memcmp(pointer, expected.data(), expected.size()), 0);
    table_->memory_unmap(device_, memory);
  }

  const HostServices host_{"tried", {}, {}};
  Grown<halyard_host_services_t> services_;
  const halyard_driver_table_t* table_ = nullptr;
  halyard_driver_instance_t instance_ = nullptr;
  halyard_driver_device_t device_ = nullptr;
};

TEST_P(NewerHost, ListsDevices) {
  std::array<Grown<halyard_device_info_t>, 8> infos;
  uint32_t count = 0;
  ASSERT_TRUE(ok(table_->enumerate_devices(instance_, infos.size(), &infos[0].known, &count)));
  ASSERT_GE(count, 1u);
  ASSERT_LE(count, infos.size());
  bool found = false;
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_NE(infos[i]->kind, nullptr) << i;
    found = found || infos[i]->kind == GetParam().kind;
  }
  EXPECT_TRUE(found);
  for (const auto& info : infos) info.expect_whole();
}

TEST_P(NewerHost, QueriesTheDevice) {
  Grown<halyard_device_properties_t> properties;
  ASSERT_TRUE(ok(table_->device_properties(device_, &properties.known)));
  properties.expect_whole();
  EXPECT_GE(properties->queue_count, 1u);
  EXPECT_TRUE(properties->operations >> HALYARD_OPERATION_EXECUTE & 1);
  Grown<halyard_memory_statistics_t> statistics;
  if (table_->device_memory_statistics) {
    EXPECT_TRUE(ok(table_->device_memory_statistics(device_, &statistics.known)));
    statistics.expect_whole();
    EXPECT_EQ(statistics->host_bytes_live + statistics->device_bytes_live, 0u);
  }
  Grown<halyard_executable_grade_t> grade;
  table_->executable_grade(device_, {"of the future", 13}, nullptr, 0, &grade.known);
  grade.expect_whole();
  EXPECT_EQ(grade->grade, 0u + HALYARD_GRADE_NO);
}

TEST_P(NewerHost, RunsLongerCommands) {
  Memory memory;
  const auto request = request_of(8);
  ASSERT_TRUE(ok(table_->memory_allocate(device_, &request.known, &memory.handle, &memory.info.known)));
  expect_given(memory, 8);
  struct {
    GrownCommand<halyard_command_fill_t> fill{HALYARD_COMMAND_FILL};
    GrownCommand<halyard_command_barrier_t> barrier{HALYARD_COMMAND_BARRIER};
    GrownCommand<halyard_command_copy_t> copy{HALYARD_COMMAND_COPY};
  } commands;
  commands.fill.known.target = {memory.handle, 0, 0, 0, 4};
  commands.fill.known.pattern = 0x0201;
  commands.fill.known.pattern_size = 2;
  commands.copy.known.source = {memory.handle, 0, 0, 1, 3};
  commands.copy.known.target = {nullptr, 0, 0, 1, 3};  // slot 0, which begins at byte 4
  Grown<halyard_command_list_args_t> args;
  args->affinity = 1;
  args->commands = &commands.fill.known.header;
  args->commands_size = sizeof commands;
  args->command_count = 3;
  args->binding_count = 1;
  halyard_driver_command_list_t list = nullptr;
  ASSERT_TRUE(ok(table_->command_list_create(device_, &args.known, &list)));
  const halyard_binding_t binding = {memory.handle, 4, 4};
  Grown<halyard_operation_t> operation;
  operation->kind = HALYARD_OPERATION_EXECUTE;
  operation->execute = {list, &binding, 1};
  run(operation);
  std::vector<uint8_t> bytes = {1, 2, 1, 2, 0, 2, 1, 2};
  void* pointer = nullptr;
  ASSERT_TRUE(ok(table_->memory_map(device_, memory.handle, HALYARD_MAP_READ, 0, 8, &pointer)));
  bytes[4] = static_cast<uint8_t*>(pointer)[4];  // no command wrote it
  table_->memory_unmap(device_, memory.handle);
  expect_bytes(memory.handle, bytes);
  table_->command_list_destroy(device_, list);
  table_->memory_free(device_, memory.handle);
}

TEST_P(NewerHost, AllocatesInQueueOrder) {
  Grown<halyard_device_properties_t> properties;
  ASSERT_TRUE(ok(table_->device_properties(device_, &properties.known)));
  if (!(properties->operations >> HALYARD_OPERATION_ALLOCA & 1)) GTEST_SKIP() << "the driver has no alloca";
  Memory memory;
  const auto request = request_of(100);
  Grown<halyard_operation_t> operation;
  operation->kind = HALYARD_OPERATION_ALLOCA;
  operation->alloca_ = {&request.known, &memory.handle, &memory.info.known};
  run(operation);
  expect_given(memory, 100);
  operation->kind = HALYARD_OPERATION_DEALLOCA;
  operation->dealloca = {memory.handle};
  run(operation);
  table_->memory_free(device_, memory.handle);
}

TEST_P(NewerHost, ImportsMemory) {
  if (!table_->memory_import) GTEST_SKIP() << "the driver imports nothing";
  alignas(4096) std::array<uint8_t, 4096> bytes = {};
  bytes[1] = 42;
  Memory memory;
  const auto request = request_of(2);
  Grown<halyard_external_memory_t> external;
  external->kind = HALYARD_EXTERNAL_HOST_ALLOCATION;
  external->pointer = bytes.data();
  external->fd = -1;
  external->access = HALYARD_MAP_READ | HALYARD_MAP_WRITE;
  external->size = bytes.size();
  ASSERT_TRUE(ok(
      table_->memory_import(device_, &request.known, &external.known, &memory.handle, &memory.info.known)));
  expect_given(memory, 2);
  expect_bytes(memory.handle, {0, 42});
  table_->memory_free(device_, memory.handle);
}

// Unknown kinds are refused when the list is created, by number [R102].
TEST_P(NewerHost, UnknownCommandsAreRefused) {
  GrownCommand<halyard_command_barrier_t> command(9876);
  Grown<halyard_command_list_args_t> args;
  args->affinity = 1;
  args->commands = &command.known.header;
  args->commands_size = sizeof command;
  args->command_count = 1;
  halyard_driver_command_list_t list = nullptr;
  const Status status = Status::adopt(table_->command_list_create(device_, &args.known, &list));
  EXPECT_EQ(status.code(), Code::UNIMPLEMENTED);
  EXPECT_NE(status.text().find("9876"), std::string::npos) << status.text();
  EXPECT_EQ(list, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Drivers, NewerHost, testing::ValuesIn(drivers()),
                         [](const auto& tried) { return tried.param.name; });

}  // namespace
}  // namespace halyard::hal
