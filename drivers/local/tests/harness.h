// The host of a driver, for tests: services that count leaks, owned handles, and shorthands for submissions.
// Tests only use the function table.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "driver_calls.h"
#include "halyard/driver.h"
#include "recording.h"

namespace halyard::local_tests {

// An owned status of the driver.
using Outcome = Status;

class Host {
 public:
  Host() {
    services_.struct_size = sizeof services_;
    services_.host = this;
    services_.status_create = [](void* host, halyard_status_code_t code, const char* message, size_t size) {
      ++static_cast<Host*>(host)->live_;
      return Status(failure_code(static_cast<uint32_t>(code)), std::string(message, size)).release();
    };
    services_.status_retain = [](void* host, halyard_status_t status) -> halyard_status_t {
      if (!status) return nullptr;
      ++static_cast<Host*>(host)->live_;
      Status borrowed = Status::adopt(status);
      Status copy = borrowed;
      (void)std::move(borrowed).release();
      return std::move(copy).release();
    };
    services_.status_release = [](void* host, halyard_status_t status) {
      (void)static_cast<Host*>(host)->take(status);
    };
    services_.status_code = [](void*, halyard_status_t status) -> halyard_status_code_t {
      Status borrowed = Status::adopt(status);
      const auto code = static_cast<halyard_status_code_t>(borrowed.code());
      (void)std::move(borrowed).release();
      return code;
    };
    services_.status_message = [](void*, halyard_status_t status) -> const char* {
      Status borrowed = Status::adopt(status);
      const char* message = borrowed.message().c_str();
      (void)std::move(borrowed).release();
      return message;
    };
    services_.status_note = [](void*, halyard_status_t status, const char* note, size_t size) {
      return Status::adopt(status).note(std::string_view(note, size)).release();
    };
    services_.log = [](void*, int32_t, const char*, size_t) {};
  }
  ~Host() { EXPECT_EQ(live_, 0) << "references to statuses that nobody released"; }
  Host(const Host&) = delete;

  const halyard_host_services_t& services() const { return services_; }
  // Records a trace from now on. `on_span` is called at the end of each span, on the thread that executed it.
  void trace(std::function<void(const halyard_trace_span_t& span)> on_span) {
    on_span_ = std::move(on_span);
    services_.trace_span = [](void* host, const halyard_trace_span_t* span) {
      static_cast<Host*>(host)->on_span_(*span);
    };
  }
  // Takes ownership of a reference that the driver returned.
  Outcome take(halyard_status_t status) {
    if (status) --live_;
    return Outcome::adopt(status);
  }
  // Returns a reference for the driver to own.
  halyard_status_t give(Code code, std::string_view message) {
    return services_.status_create(this, static_cast<halyard_status_code_t>(code), message.data(),
                                   message.size());
  }

 private:
  halyard_host_services_t services_ = {};
  std::function<void(const halyard_trace_span_t&)> on_span_;
  std::atomic<int> live_ = 0;
};

using namespace driver_tests;  // operations, ranges and slots by their short names

inline testing::AssertionResult is_ok(const Outcome& outcome) {
  if (outcome.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << outcome.text();
}
inline testing::AssertionResult has_code(Code code, const Outcome& outcome) {
  if (outcome.code() == code) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << name(code) << ", found " << outcome.text();
}
#define EXPECT_OK(...) EXPECT_TRUE(::halyard::local_tests::is_ok(__VA_ARGS__))
#define EXPECT_CODE(code, ...) \
  EXPECT_TRUE(::halyard::local_tests::has_code(::halyard::Code::code, __VA_ARGS__))

// An open device and everything needed to use it. Handles are destroyed with the fixture, in reverse order.
// The test parameter is the kind of device; with kCompiled behind it, kernels are compiled.
inline constexpr std::string_view kCompiled = "?jit=always";
class LocalTest : public testing::TestWithParam<const char*>, public driver_tests::Handles {
 public:
  using Options = std::vector<halyard_option_t>;

  // `workers`: of devices with workers, independent of the number of processors.
  explicit LocalTest(const char* kind = GetParam(), std::string_view workers = "3")
      : kind_(std::string_view(kind).substr(0, std::string_view(kind).find('?'))),
        compiles_(std::string_view(kind).ends_with(kCompiled)),
        workers_(workers),
        table_(table()) {
    const halyard_driver_init_args_t init = {
        .struct_size = sizeof init, .abi_version = 1, .services = &host_.services()};
    EXPECT_OK(host_.take(table_.initialize(&init, &instance_)));
    device_ = open();
  }
  ~LocalTest() override {
    close_device();
    table_.shutdown(&instance_);
    EXPECT_EQ(instance_, nullptr);
  }

  bool runs_in_caller() const { return kind_ == "local-sync"; }
  halyard_driver_device_t open() { return open(kind_); }
  halyard_driver_device_t open(std::string_view kind, Options options = {}) {
    if (kind == "local-task") options.push_back({text("workers"), text(workers_)});
    if (compiles_) options.push_back({text("jit"), text("always")});
    const halyard_device_open_args_t args = {.struct_size = sizeof args,
                                             .option_count = static_cast<uint32_t>(options.size()),
                                             .kind = text(kind),
                                             .options = options.data()};
    halyard_driver_device_t device = nullptr;
    EXPECT_OK(host_.take(table_.device_open(instance_, &args, &device)));
    return device;
  }
  // The device, with everything created on it.
  void close_device() {
    for (List list : std::exchange(lists_, {})) table_.command_list_destroy(device_, list);
    for (Executable executable : std::exchange(executables_, {}))
      table_.executable_destroy(device_, executable);
    for (Semaphore semaphore : std::exchange(semaphores_, {})) table_.semaphore_destroy(device_, semaphore);
    for (Memory memory : std::exchange(memories_, {})) table_.memory_free(device_, memory);
    table_.device_close(device_);
  }
  // The same for another device.
  void reopen(const Options& options) {
    close_device();
    device_ = open(kind_, options);
  }

  // ---- Memory

  static halyard_memory_request_t request(uint64_t size, uint32_t type = HALYARD_MEMORY_DEVICE_LOCAL) {
    return {.struct_size = sizeof(halyard_memory_request_t),
            .memory_type = type,
            .usage = HALYARD_USAGE_DEFAULT,
            .affinity = 1,
            .size = size};
  }
  Memory allocate(uint64_t size) {
    const halyard_memory_request_t wanted = request(size);
    halyard_memory_info_t info = {.struct_size = sizeof info};
    Memory memory = nullptr;
    EXPECT_OK(host_.take(table_.memory_allocate(device_, &wanted, &memory, &info)));
    memories_.push_back(memory);
    return memory;
  }
  template <typename T>
  Memory allocate(const std::vector<T>& content) {
    Memory memory = allocate(content.size() * sizeof(T));
    if (!content.empty()) std::memcpy(bytes(memory), content.data(), content.size() * sizeof(T));
    return memory;
  }
  // Memory over the bytes. `access`: HALYARD_MAP_*.
  Memory import_memory(const void* pointer, uint64_t size, uint32_t access) {
    const halyard_memory_request_t wanted = request(size);
    const halyard_external_memory_t external = {.struct_size = sizeof external,
                                                .kind = HALYARD_EXTERNAL_HOST_ALLOCATION,
                                                .pointer = const_cast<void*>(pointer),
                                                .fd = -1,
                                                .access = access,
                                                .size = size};
    halyard_memory_info_t info = {.struct_size = sizeof info};
    Memory memory = nullptr;
    EXPECT_OK(host_.take(table_.memory_import(device_, &wanted, &external, &memory, &info)));
    if (memory) memories_.push_back(memory);
    return memory;
  }
  uint8_t* bytes(Memory memory) {
    void* pointer = nullptr;
    EXPECT_OK(map(memory, &pointer));
    if (pointer) table_.memory_unmap(device_, memory);
    return static_cast<uint8_t*>(pointer);
  }
  Outcome map(Memory memory, void** pointer) {
    return host_.take(table_.memory_map(device_, memory, HALYARD_MAP_READ, 0, 0, pointer));
  }
  template <typename T>
  std::vector<T> content(Memory memory, size_t count) {
    std::vector<T> result(count);
    std::memcpy(result.data(), bytes(memory), count * sizeof(T));
    return result;
  }

  // ---- Semaphores

  Semaphore semaphore(uint64_t initial = 0) {
    Semaphore result = nullptr;
    EXPECT_OK(host_.take(table_.semaphore_create(device_, initial, &result)));
    semaphores_.push_back(result);
    return result;
  }
  Outcome signal(Semaphore semaphore, uint64_t value) {
    return host_.take(table_.semaphore_signal(semaphore, value));
  }
  void fail(Semaphore semaphore, Code code, std::string_view message = "failed by the test") {
    table_.semaphore_fail(semaphore, host_.give(code, message));
  }
  Outcome query(Semaphore semaphore, uint64_t* value) {
    return host_.take(table_.semaphore_query(semaphore, value));
  }
  uint64_t value(Semaphore semaphore) {
    uint64_t value = ~uint64_t{0};
    EXPECT_OK(query(semaphore, &value));
    return value;
  }
  Outcome failure(Semaphore semaphore) {
    uint64_t value = 0;
    return query(semaphore, &value);
  }
  Outcome wait(std::vector<halyard_timepoint_t> points, bool any, int64_t deadline) {
    const halyard_semaphore_wait_args_t args = {.struct_size = sizeof args,
                                                .any = any,
                                                .timepoint_count = static_cast<uint32_t>(points.size()),
                                                .timepoints = points.data(),
                                                .deadline_ns = deadline};
    return host_.take(table_.semaphore_wait(device_, &args));
  }

  // ---- Queue work

  // Records the completion of a submission.
  struct Completion {
    Host* host = nullptr;
    std::atomic<int> calls = 0;
    Outcome outcome;

    ~Completion() {
      EXPECT_TRUE(!host || calls != 0) << "a completion is destroyed before its work has completed";
    }
  };
  static void completed(void* user, halyard_status_t status) {
    auto* completion = static_cast<Completion*>(user);
    completion->outcome = completion->host->take(status);
    ++completion->calls;
  }

  using Points = std::vector<halyard_timepoint_t>;
  Outcome submit(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                 Completion& completion) {
    completion.host = &host_;
    const halyard_submission_t submission = {.struct_size = sizeof submission,
                                             .wait_count = static_cast<uint32_t>(waits.size()),
                                             .signal_count = static_cast<uint32_t>(signals.size()),
                                             .affinity = 1,
                                             .waits = waits.data(),
                                             .signals = signals.data(),
                                             .operation = &operation,
                                             .completed = completed,
                                             .completed_user = &completion};
    Outcome taken = host_.take(table_.queue_submit(device_, &submission));
    if (!taken.ok()) completion.host = nullptr;
    return taken;
  }
  // Waits for the effects of ready work: immediate if it runs in the caller, otherwise without another call.
  // A condition that tries work again is for an outcome that the system's scheduler can prevent in a single
  // run, such as a second thread that takes part: a driver that never brings it about fails when the time is
  // over.
  template <typename Condition>
  bool comes_true(Condition condition) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point hang = Clock::now() + std::chrono::seconds(120);
    while (!condition()) {
      if (runs_in_caller() || Clock::now() > hang) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
  }
  bool is_done(const Completion& completion) const {
    return comes_true([&] { return completion.calls != 0; }) && completion.calls == 1;
  }
  // The result of the work.
  Outcome outcome(const Completion& completion) const {
    EXPECT_TRUE(is_done(completion));
    return completion.outcome;
  }
  // Runs ready work.
  Outcome run(const halyard_operation_t& operation) {
    Completion completion;
    EXPECT_OK(submit(operation, {}, {}, completion));
    return outcome(completion);
  }

  // An alloca, whose memory is freed through `memories_`.
  Memory queue_allocate(uint64_t size, const Points& waits, const Points& signals, Completion& completion) {
    Memory memory = nullptr;
    halyard_memory_info_t info = {.struct_size = sizeof info};
    halyard_operation_t result = operation(HALYARD_OPERATION_ALLOCA);
    const halyard_memory_request_t wanted = request(size);
    result.alloca_ = {&wanted, &memory, &info};
    EXPECT_OK(submit(result, waits, signals, completion));
    EXPECT_NE(memory, nullptr);
    EXPECT_EQ(info.size, size);
    if (memory) memories_.push_back(memory);
    return memory;
  }

  // ---- Recordings

  using Recording = driver_tests::Recording;
  // The recording lives as long as the list.
  List finish(const Recording& recording, uint32_t binding_count = 0) {
    const halyard_command_list_args_t args = recording.args(binding_count);
    List list = nullptr;
    EXPECT_OK(host_.take(table_.command_list_create(device_, &args, &list)));
    if (list) lists_.push_back(list);
    return list;
  }

  halyard_memory_statistics_t statistics() {
    halyard_memory_statistics_t result = {.struct_size = sizeof result};
    EXPECT_OK(host_.take(table_.device_memory_statistics(device_, &result)));
    return result;
  }

  const std::string_view kind_;
  const bool compiles_;
  const std::string_view workers_;
  Host host_;
  const halyard_driver_table_t& table_;
  halyard_driver_instance_t instance_ = nullptr;
  halyard_driver_device_t device_ = nullptr;
  std::vector<Memory> memories_;
  std::vector<Semaphore> semaphores_;
  std::vector<Executable> executables_;
  std::vector<List> lists_;
};

// Instantiates the tests of a fixture for each kind of device: NAME/local_sync, NAME/local_task.
inline std::string name_of_kind(const testing::TestParamInfo<const char*>& kind) {
  return std::string_view(kind.param).starts_with("local-sync") ? "local_sync" : "local_task";
}
#define HALYARD_ON_EVERY_DEVICE(fixture_) \
  INSTANTIATE_TEST_SUITE_P(Devices, fixture_, testing::Values("local-sync", "local-task"), name_of_kind)
// The same, and once more with compiled kernels, where this build has the compiler.
#ifdef HALYARD_TEST_COMPILED
#define HALYARD_ON_EVERY_DEVICE_AND_COMPILED(fixture_) \
  HALYARD_ON_EVERY_DEVICE(fixture_);                   \
  INSTANTIATE_TEST_SUITE_P(Compiled, fixture_,         \
                           testing::Values("local-sync?jit=always", "local-task?jit=always"), name_of_kind)
#else
#define HALYARD_ON_EVERY_DEVICE_AND_COMPILED HALYARD_ON_EVERY_DEVICE
#endif

}  // namespace halyard::local_tests
