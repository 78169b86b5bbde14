// Session: an instance and an open device, the handles that a case creates, and short functions that use
// them. At the end it destroys the remaining handles in the order that the ABI requires [R22]; then it checks
// that every `completed` was called once and every status was released. After a case that stopped, nothing is
// destroyed, because its work may still be in flight.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "check.h"
#include "device_code.h"
#include "driver.h"
#include "recording.h"
#include "services.h"

namespace halyard::cts {

// From drivers/testing: ranges, commands and operations in the form that a driver receives.
using driver_tests::barrier_operation;
using driver_tests::copy_operation;
using driver_tests::dealloca_operation;
using driver_tests::dispatch_operation;
using driver_tests::execute_operation;
using driver_tests::file_operation;
using driver_tests::fill_operation;
using driver_tests::operation;
using driver_tests::range;
using driver_tests::Recording;
using driver_tests::slot;
using driver_tests::update_operation;

using Points = std::vector<halyard_timepoint_t>;
using Semaphore = halyard_driver_semaphore_t;
using List = halyard_driver_command_list_t;
using Executable = halyard_driver_executable_t;
using Table = std::vector<halyard_binding_t>;

// The kinds of memory that programs request: staging memory, and memory for everything else.
inline constexpr uint32_t kStaging = HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE;
inline constexpr uint32_t kDeviceLocal = HALYARD_MEMORY_DEVICE_LOCAL;
inline constexpr uint64_t kStorageAlignment = 256;  // bytes; storage ranges begin at multiples of this

struct Memory {
  halyard_driver_memory_t handle = nullptr;
  uint32_t type = 0;  // granted
  uint64_t size = 0;  // requested, in bytes

  bool visible() const { return (type & HALYARD_MEMORY_HOST_VISIBLE) != 0; }
  bool coherent() const { return (type & HALYARD_MEMORY_HOST_COHERENT) != 0; }
};

// An accepted submission. It lives as long as the session.
struct Work {
  class Session* session = nullptr;
  std::atomic<int> calls = 0;          // number of calls of `completed`
  Outcome outcome;                     // of the first call
  void (*then)(void* user) = nullptr;  // called in `completed`, before the call is counted
  void* user = nullptr;
};

struct SessionOptions {
  int64_t patience_ns = 10'000'000'000;  // time limit for required events
  const std::vector<Program>* programs = nullptr;
  std::function<void(const std::string&)> note;    // receives texts for the caller, not for people
  std::function<void(const std::string&)> remark;  // printed after the name of a passed case
  CaseLog* case_log = nullptr;                     // records the steps of the case; may be null
};

class Session : public Checks {
 public:
  Session(std::string driver, Target target, SessionOptions options, Sink sink);

  // Initializes the driver and opens the device. Cases of the driver itself do this on their own.
  void start();
  // Closes this device and those beside it, and makes the final checks.
  void finish();
  // Destroys the handles, closes the device, and shuts the instance down if it is this session's own. May be
  // called again.
  void close();
  // Opens the device once more, for a case about several devices: in the same instance, or in one of its own.
  // The session of that device lives as long as this one, and reports to it.
  enum class Beside { same_instance, own_instance };
  Session& open_beside(Beside where);

  const std::string& driver() const { return driver_; }  // the path
  const Target& target() const { return target_; }
  Services& services() { return *services_; }
  void note(const std::string& text) const { options_.note(text); }
  // Adds a remark to a passed case: "712 of 2,118 tried".
  void remark(const std::string& text) const { options_.remark(text); }
  int64_t patience_ns() const { return options_.patience_ns; }
  Outcome take(halyard_status_t status) { return services_->take(status); }

  // The library's entry function and the table that it returns. Both are fetched on first use; before that no
  // code of the driver runs.
  halyard_driver_negotiate_fn negotiator();
  const halyard_driver_table_t& table();
  halyard_driver_instance_t initialize();
  halyard_driver_instance_t instance() const { return instance_; }
  halyard_driver_device_t open(halyard_driver_instance_t instance);
  halyard_driver_device_t device() const { return device_; }
  const halyard_device_properties_t& properties() const { return properties_; }
  bool has(uint32_t capability) const { return (properties_.capabilities & capability) != 0; }
  bool does(uint32_t operation) const { return (properties_.operations >> operation & 1) != 0; }
  void need_operation(uint32_t operation, const char* name) const;
  uint64_t all_queues() const;

  // ---- Memory (session_memory.cpp)
  halyard_memory_request_t request(uint64_t size, uint32_t type = kStaging) const;
  // The case is skipped if the driver has no statistics.
  halyard_memory_statistics_t memory_statistics();
  Outcome try_allocate(const halyard_memory_request_t& request, Memory* memory);
  Memory allocate(uint64_t size,
                  uint32_t type = kStaging);  // UNSUPPORTED: the host cannot access staging memory
  Memory allocate(const std::vector<uint8_t>& contents, uint32_t type = kStaging);
  void free(const Memory& memory);
  Outcome map(const Memory& memory, uint32_t access, uint64_t offset, uint64_t length, void** pointer);
  void unmap(const Memory& memory);
  // Access the bytes through a mapping or, if the host cannot access the memory, through staging memory.
  void write(const Memory& memory, uint64_t offset, std::span<const uint8_t> bytes);
  std::vector<uint8_t> read(const Memory& memory, uint64_t offset, uint64_t length);
  std::vector<uint8_t> read(const Memory& memory) { return read(memory, 0, memory.size); }
  // keep() lets the session free this memory at its end.
  void keep(const Memory& memory) { memories_.push_back(memory); }
  void forget(const Memory& memory);

  // ---- Semaphores
  Semaphore semaphore(uint64_t initial = 0);
  void destroy(Semaphore semaphore);
  Outcome signal(Semaphore semaphore, uint64_t value);
  void fail(Semaphore semaphore, halyard_status_code_t code, std::string_view message);
  Outcome query(Semaphore semaphore, uint64_t* value);
  // Returns the value; a failed query is a problem.
  void value_is(std::string_view rule, std::string_view what, Semaphore semaphore, uint64_t expected);
  void failed_with(std::string_view rule, std::string_view what, Semaphore semaphore,
                   halyard_status_code_t code, std::string_view message);
  Outcome wait(const Points& points, bool any, int64_t deadline_ns);
  // Waits at most for the session's patience.
  Outcome await(Semaphore semaphore, uint64_t value) { return wait({{semaphore, value}}, false, patience()); }
  int64_t patience() const;  // a deadline

  // ---- Queue work
  // `work` is set if the submission was accepted. Arguments are overwritten after the call [R23].
  Outcome try_submit(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                     Work** work, uint64_t affinity = 0, void (*then)(void*) = nullptr, void* user = nullptr);
  // The stop word of later submissions; null: none.
  void stop_by(const uint32_t* word) { stop_word_ = word; }
  Work& submit(const halyard_operation_t& operation, const Points& waits = {}, const Points& signals = {},
               uint64_t affinity = 0, void (*then)(void*) = nullptr, void* user = nullptr);
  // Waits until the work is completed and returns its outcome. Stops the case if that exceeds the patience.
  Outcome end_of(Work& work);
  Outcome run(const halyard_operation_t& operation) { return end_of(submit(operation)); }
  Memory alloca_(uint64_t size, const Points& waits, const Points& signals, Work** work = nullptr);

  // ---- Command lists and executables
  Outcome try_list(const Recording& recording, uint32_t binding_count, bool one_shot, List* list);
  List list(Recording recording, uint32_t binding_count = 0, bool one_shot = false);
  void destroy(List list);
  Outcome execute(List list, const Table& bindings = {});
  void must_execute(Recording recording, const Table& bindings = {});

  Outcome try_executable(std::string_view format, std::span<const uint8_t> data, Executable* executable);
  Executable executable(const Program& program);
  void destroy(Executable executable);
  halyard_executable_grade_t grade(std::string_view format, std::span<const uint8_t> data);
  // The programs at hand, and those that the device can run. Unsupported: it can run none.
  std::span<const Program> all_programs() const;
  std::vector<const Program*> programs();

 private:
  explicit Session(Session& first);  // of the same driver; reports to `first`
  void start_device();
  static void completed(void* user, halyard_status_t status);
  void check_completions(const char* when);

  const std::string driver_;
  const Target target_;
  const SessionOptions options_;
  const uint32_t* stop_word_ = nullptr;
  std::shared_ptr<Services> services_;
  halyard_driver_negotiate_fn negotiator_ = nullptr;
  halyard_driver_table_t table_ = {};  // struct_size 0: not fetched yet
  halyard_driver_instance_t instance_ = nullptr;
  bool owns_instance_ = true;
  halyard_driver_device_t device_ = nullptr;
  halyard_device_properties_t properties_ = {};

  std::mutex mutex_;  // guards the members below, for cases with several threads
  std::condition_variable completion_;
  std::deque<Work> works_;
  std::deque<Recording> recordings_;
  std::vector<Memory> memories_;
  std::vector<Semaphore> semaphores_;
  std::vector<List> lists_;
  std::vector<Executable> executables_;
  std::vector<std::unique_ptr<Session>> beside_;
};

// An extension of an unknown kind.
inline constexpr uint32_t kUnknownExtension = 8019693;
inline halyard_extension_t extension(uint32_t must_understand, const halyard_extension_t* next = nullptr) {
  return {sizeof(halyard_extension_t), kUnknownExtension, must_understand, 0, next};
}

int64_t now_ns();  // CLOCK_MONOTONIC
inline halyard_text_t text(std::string_view string) { return {string.data(), string.size()}; }

}  // namespace halyard::cts
