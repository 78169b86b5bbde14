// Shared by the fixtures of drivers' tests: a host that counts references to statuses, an open device with
// the handles that were created on it, and short functions for the calls of the function table.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "driver_calls.h"
#include "halyard/driver.h"
#include "recording.h"
#include "status_testing.h"

namespace halyard::driver_tests {

// An owned status of the driver.
using Outcome = Status;

inline testing::AssertionResult has_code(Code code, const Outcome& outcome) {
  if (outcome.code() == code) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << name(code) << ", found " << outcome.text();
}
#define EXPECT_CODE(code, ...) \
  EXPECT_TRUE(::halyard::driver_tests::has_code(::halyard::Code::code, __VA_ARGS__))

// The code, and all of these parts of the message.
inline void expect_fails(Code code, std::initializer_list<std::string_view> parts, const Outcome& outcome) {
  for (const std::string_view part : parts) EXPECT_TRUE(fails_with(outcome, code, part));
}

// Calls `use` with a status that the driver keeps.
template <typename Use>
auto borrowed(halyard_status_t status, Use use) {
  Status one = Status::adopt(status);
  const auto result = use(one);
  (void)std::move(one).release();
  return result;
}

class Host {
 public:
  Host() {
    services_.struct_size = sizeof services_;
    services_.host = this;
    services_.status_create = [](void* host, halyard_status_code_t code, const char* message, size_t size) {
      return static_cast<Host*>(host)->give(failure_code(static_cast<uint32_t>(code)), {message, size});
    };
    services_.status_retain = [](void* host, halyard_status_t status) -> halyard_status_t {
      if (!status) return nullptr;
      ++static_cast<Host*>(host)->live_;
      return borrowed(status, [](const Status& one) { return Status(one).release(); });
    };
    services_.status_release = [](void* host, halyard_status_t status) {
      (void)static_cast<Host*>(host)->take(status);
    };
    services_.status_code = [](void*, halyard_status_t status) {
      return borrowed(status,
                      [](const Status& one) { return static_cast<halyard_status_code_t>(one.code()); });
    };
    services_.status_message = [](void*, halyard_status_t status) {
      return borrowed(status, [](const Status& one) { return one.message().c_str(); });
    };
    services_.status_note = [](void*, halyard_status_t status, const char* note, size_t size) {
      return Status::adopt(status).note(std::string_view(note, size)).release();
    };
    services_.log = [](void* host, int32_t, const char* line, size_t size) {
      auto* self = static_cast<Host*>(host);
      const std::lock_guard lock(self->mutex_);
      self->log_.emplace_back(line, size);
    };
  }
  ~Host() { EXPECT_EQ(live_, 0) << "references to statuses that nobody released"; }
  Host(const Host&) = delete;

  const halyard_host_services_t& services() const { return services_; }
  // Records a trace from now on. Drivers look for it when they are initialized. `on_span` is called at the
  // end of each span.
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
    ++live_;
    return Status(code, std::string(message)).release();
  }
  std::vector<std::string> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  halyard_host_services_t services_ = {};
  std::function<void(const halyard_trace_span_t&)> on_span_;
  std::atomic<int> live_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> log_;
};

// The completion of a submission.
struct Completion {
  Host* host = nullptr;
  std::atomic<int> calls = 0;
  Outcome outcome;

  ~Completion() {
    EXPECT_TRUE(!host || calls != 0) << "a completion is destroyed before its work has completed";
  }
};

// The base of fixtures. A fixture initializes the driver, opens `device_` and closes both.
class DriverTest : public Handles {
 public:
  using Points = std::vector<halyard_timepoint_t>;
  using Options = std::vector<std::pair<std::string, std::string>>;
  using Completion = driver_tests::Completion;
  using Recording = driver_tests::Recording;

  // `memory_type`: of the memory that allocate() requests.
  explicit DriverTest(uint32_t memory_type, bool runs_in_caller = false)
      : memory_type_(memory_type), runs_in_caller_(runs_in_caller) {}

  Outcome initialize() {
    const halyard_driver_init_args_t args = {
        .struct_size = sizeof args, .abi_version = 1, .services = &host_.services()};
    return host_.take(table_.initialize(&args, &instance_));
  }
  void shutdown() {
    if (instance_) table_.shutdown(&instance_);
    EXPECT_EQ(instance_, nullptr);
  }
  Outcome try_open(std::string_view kind, std::string_view path, const Options& options,
                   halyard_driver_device_t* device, const halyard_extension_t* extensions = nullptr) {
    std::vector<halyard_option_t> list;
    for (const auto& [key, value] : options) list.push_back({text(key), text(value)});
    const halyard_device_open_args_t args = {.struct_size = sizeof args,
                                             .option_count = static_cast<uint32_t>(list.size()),
                                             .kind = text(kind),
                                             .path = text(path),
                                             .options = list.data(),
                                             .extensions = extensions};
    return host_.take(table_.device_open(instance_, &args, device));
  }
  // Closes the device, after destroying everything that was created on it.
  void close_device() {
    for (List list : std::exchange(lists_, {})) table_.command_list_destroy(device_, list);
    for (Executable executable : std::exchange(executables_, {}))
      table_.executable_destroy(device_, executable);
    for (Semaphore semaphore : std::exchange(semaphores_, {})) table_.semaphore_destroy(device_, semaphore);
    for (Memory memory : std::exchange(memories_, {})) table_.memory_free(device_, memory);
    if (device_) table_.device_close(std::exchange(device_, nullptr));
  }
  halyard_device_properties_t properties() {
    halyard_device_properties_t result = {.struct_size = sizeof result};
    EXPECT_OK(host_.take(table_.device_properties(device_, &result)));
    return result;
  }

  // ---- Memory

  halyard_memory_request_t request(uint64_t size) const { return request(size, memory_type_); }
  static halyard_memory_request_t request(uint64_t size, uint32_t type) {
    return {.struct_size = sizeof(halyard_memory_request_t),
            .memory_type = type,
            .usage = HALYARD_USAGE_DEFAULT,
            .affinity = 1,
            .size = size};
  }
  Memory allocate(uint64_t size) { return allocate(size, memory_type_); }
  Memory allocate(uint64_t size, uint32_t type) {
    const halyard_memory_request_t wanted = request(size, type);
    halyard_memory_info_t info = {.struct_size = sizeof info};
    Memory memory = nullptr;
    EXPECT_OK(host_.take(table_.memory_allocate(device_, &wanted, &memory, &info)));
    return owned(memory);
  }
  template <typename T>
  Memory allocate(const std::vector<T>& content) {
    const uint64_t size = content.size() * sizeof(T);
    Memory memory = allocate(size);
    if (size != 0) std::memcpy(bytes(memory), content.data(), size);
    if (table_.memory_flush) {
      EXPECT_OK(host_.take(table_.memory_flush(device_, memory, 0, size)));
    }
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
    return owned(memory);
  }
  void destroy(Memory memory) {
    std::erase(memories_, memory);
    table_.memory_free(device_, memory);
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
    if (table_.memory_invalidate) {
      EXPECT_OK(host_.take(table_.memory_invalidate(device_, memory, 0, count * sizeof(T))));
    }
    std::memcpy(result.data(), bytes(memory), count * sizeof(T));
    return result;
  }
  halyard_memory_statistics_t statistics() {
    halyard_memory_statistics_t result = {.struct_size = sizeof result};
    EXPECT_OK(host_.take(table_.device_memory_statistics(device_, &result)));
    return result;
  }

  // ---- Semaphores

  Semaphore semaphore(uint64_t initial = 0) {
    Semaphore result = nullptr;
    EXPECT_OK(host_.take(table_.semaphore_create(device_, initial, &result)));
    semaphores_.push_back(result);
    return result;
  }
  // Several semaphores with value 0.
  template <size_t kCount>
  std::array<Semaphore, kCount> semaphores() {
    std::array<Semaphore, kCount> result;
    for (Semaphore& each : result) each = semaphore();
    return result;
  }
  void destroy(Semaphore semaphore) {
    std::erase(semaphores_, semaphore);
    table_.semaphore_destroy(device_, semaphore);
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
  Outcome subscribe(Semaphore semaphore, uint64_t value, halyard_subscriber_fn subscriber, void* user) {
    return host_.take(table_.semaphore_subscribe(semaphore, value, subscriber, user));
  }
  Outcome wait(const Points& points, bool any, int64_t deadline_ns) {
    return wait_for({points.data(), points.size()}, any, deadline_ns);
  }
  // Allocates nothing.
  Outcome wait(Semaphore semaphore, uint64_t value, int64_t deadline_ns = HALYARD_WAIT_FOREVER) {
    const halyard_timepoint_t point = {semaphore, value};
    return wait_for({&point, 1}, false, deadline_ns);
  }

  // ---- Executables and recordings

  Outcome create(const halyard_executable_args_t& args, Executable* executable) {
    Outcome outcome = host_.take(table_.executable_create(device_, &args, executable));
    if (outcome.ok()) executables_.push_back(*executable);
    return outcome;
  }
  void destroy(Executable executable) {
    std::erase(executables_, executable);
    table_.executable_destroy(device_, executable);
  }
  halyard_function_info_t info(Executable executable, uint32_t function) {
    halyard_function_info_t result = {.struct_size = sizeof result};
    EXPECT_OK(host_.take(table_.executable_function_info(executable, function, &result)));
    return result;
  }
  List finish(Recording recording, uint32_t slots = 0, bool one_shot = false) {
    recordings_.push_back(std::make_unique<Recording>(std::move(recording)));
    const halyard_command_list_args_t args = recordings_.back()->args(slots, one_shot);
    List list = nullptr;
    EXPECT_OK(host_.take(table_.command_list_create(device_, &args, &list)));
    if (list) lists_.push_back(list);
    return list;
  }
  // Only tries whether the recording can become a list.
  Outcome try_finish(const Recording& recording) {
    const halyard_command_list_args_t args = recording.args(0);
    List list = nullptr;
    Outcome outcome = host_.take(table_.command_list_create(device_, &args, &list));
    if (list) table_.command_list_destroy(device_, list);
    return outcome;
  }

  // ---- Queue work

  Outcome submit(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                 Completion& completion) {
    return submit_to(device_, operation, waits, signals, completion);
  }
  Outcome submit_to(halyard_driver_device_t device, const halyard_operation_t& operation, const Points& waits,
                    const Points& signals, Completion& completion,
                    const std::atomic<uint32_t>* stop = nullptr) {
    completion.host = &host_;
    Outcome taken = submit_to(device, operation, waits, signals, completed, &completion, stop);
    if (!taken.ok()) completion.host = nullptr;
    return taken;
  }
  Outcome submit_to(halyard_driver_device_t device, const halyard_operation_t& operation, const Points& waits,
                    const Points& signals, halyard_completed_fn completed, void* user,
                    const std::atomic<uint32_t>* stop = nullptr) {
    const halyard_submission_t submission = {.struct_size = sizeof submission,
                                             .wait_count = static_cast<uint32_t>(waits.size()),
                                             .signal_count = static_cast<uint32_t>(signals.size()),
                                             .affinity = 1,
                                             .waits = waits.data(),
                                             .signals = signals.data(),
                                             .operation = &operation,
                                             .completed = completed,
                                             .completed_user = user,
                                             .stop = reinterpret_cast<const uint32_t*>(stop)};
    return host_.take(table_.queue_submit(device, &submission));
  }
  // The function `completed` of a submission, for a Completion.
  static void completed(void* user, halyard_status_t status) {
    auto* completion = static_cast<Completion*>(user);
    completion->outcome = completion->host->take(status);
    ++completion->calls;
  }
  // Waits for the effects of ready work, without another call of the driver. If work runs in the caller, its
  // effects are immediate. A condition that tries work again is for an outcome that the system's scheduler
  // can prevent in a single run, such as a second thread that takes part: a driver that never brings it about
  // fails when the time is over.
  template <typename Condition>
  bool comes_true(Condition condition) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point hang = Clock::now() + std::chrono::seconds(120);
    while (!condition()) {
      if (runs_in_caller_ || Clock::now() > hang) return false;
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
  // Runs ready work, which the driver must accept.
  Outcome run(const halyard_operation_t& operation) {
    Completion completion;
    EXPECT_OK(submit(operation, {}, {}, completion));
    return outcome(completion);
  }

  // Runs `work(i)` on `count` threads, for i from 0, and waits for all of them.
  template <typename Work>
  static void on_threads(size_t count, Work work) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  }

  Host host_;
  const halyard_driver_table_t& table_ = table();
  halyard_driver_instance_t instance_ = nullptr;
  halyard_driver_device_t device_ = nullptr;
  std::vector<Memory> memories_;
  std::vector<Semaphore> semaphores_;
  std::vector<Executable> executables_;
  std::vector<List> lists_;

 private:
  Outcome wait_for(std::span<const halyard_timepoint_t> points, bool any, int64_t deadline_ns) {
    const halyard_semaphore_wait_args_t args = {.struct_size = sizeof args,
                                                .any = any,
                                                .timepoint_count = static_cast<uint32_t>(points.size()),
                                                .timepoints = points.data(),
                                                .deadline_ns = deadline_ns};
    return host_.take(table_.semaphore_wait(device_, &args));
  }
  Memory owned(Memory memory) {
    if (memory) memories_.push_back(memory);
    return memory;
  }

  const uint32_t memory_type_;
  const bool runs_in_caller_;
  std::vector<std::unique_ptr<Recording>> recordings_;  // of the lists
};

}  // namespace halyard::driver_tests
