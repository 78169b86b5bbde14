// Of the kit (halyard/driver.hpp): the base classes of a driver, and its queue work.
#ifndef HALYARD_DRIVER_DEVICE_HPP_
#define HALYARD_DRIVER_DEVICE_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halyard/driver/stop.hpp"
#include "halyard/driver/trace.hpp"
#include "halyard/driver/waiting.hpp"

namespace halyard::kit {

// Memory that a device allocated or imported.
class Memory {
 public:
  virtual ~Memory() = default;
  // Called when an alloca runs: the bytes exist from now on. RESOURCE_EXHAUSTED: out of memory.
  virtual Result<> commit() { return {}; }
  // Called when a dealloca runs: the bytes may be freed, but not while the host maps them [R72]. The handle
  // stays valid until it is destroyed.
  virtual Result<> decommit() { return {}; }
  // The address of the bytes, for the host and for commands. FAILED_PRECONDITION before commit() and after
  // decommit() [R73].
  virtual Result<uint8_t*> bytes() = 0;
  // The same for a kernel or command that may write to the memory. Imported bytes without HALYARD_MAP_WRITE
  // and HALYARD_MAP_PRIVATE may be on read-only pages: fails with PERMISSION_DENIED, or replaces the bytes by
  // a copy [R77].
  virtual Result<uint8_t*> bytes_to_write() { return bytes(); }
  // A mapping by the host, and its end [R72]. Memory whose decommit() frees the bytes counts its mappings.
  virtual Result<uint8_t*> map(uint32_t access, uint64_t offset, uint64_t length) {
    (void)access, (void)length;
    return HALYARD_KIT_TRY(bytes()) + offset;
  }
  virtual void unmap() {}
  // Required if the memory is HOST_VISIBLE but not HOST_COHERENT.
  virtual Result<> flush(uint64_t offset, uint64_t length) { return (void)offset, (void)length, Result<>(); }
  virtual Result<> invalidate(uint64_t offset, uint64_t length) {
    return (void)offset, (void)length, Result<>();
  }
};

class Executable {
 public:
  explicit Executable(const Services& services) : services_(services) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable() = default;

  const Services& services() const { return services_; }
  virtual uint32_t function_count() const = 0;
  // Fields that the function does not set are zero. Strings live as long as the executable.
  virtual Result<halyard_function_info_t> function_info(uint32_t function) const = 0;

 private:
  const Services& services_;
};

// The arguments of one execution of a list: the entries of its binding table, and whether it should stop.
struct Table : std::span<const halyard_binding_t> {
  explicit Table(std::span<const halyard_binding_t> entries, Stop stops = {}) : span(entries), stop(stops) {}
  Stop stop;
};

// The memory and byte offset that a range refers to, directly or through a slot of the table.
struct Place {
  Memory* memory;
  uint64_t offset;
};
inline Place place_of(const halyard_range_t& range, const Table& table) {
  if (range.memory) return {reinterpret_cast<Memory*>(range.memory), range.offset};
  const halyard_binding_t& entry = table[range.slot];
  return {reinterpret_cast<Memory*>(entry.memory), entry.offset + range.offset};
}

class Work;

struct CommandList {
  std::vector<const halyard_command_t*> commands;  // owned by the host [R101]
};

// A device that runs ready work on the thread that made it ready; its properties include
// HALYARD_DEVICE_RUNS_IN_CALLER. QueuedDevice has threads of its own.
class Device {
 public:
  explicit Device(const Services& services) : services_(services) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  const Services& services() const { return services_; }

  virtual halyard_device_properties_t properties() const = 0;
  // Answers hal.device.query; nullopt: unknown key.
  virtual std::optional<int64_t> query(std::string_view category, std::string_view key) const {
    return (void)category, (void)key, std::nullopt;
  }
  virtual halyard_memory_statistics_t statistics() const { return {}; }
  virtual void trim() {}

  // Allocates at least the requested size; `info` describes the memory. `later`: the request is an alloca,
  // and commit() provides the bytes; otherwise they must exist on return. RESOURCE_EXHAUSTED;
  // INVALID_ARGUMENT: no heap has the memory type [R70].
  virtual Result<std::unique_ptr<Memory>> allocate(const halyard_memory_request_t& request, bool later,
                                                   halyard_memory_info_t& info) = 0;
  virtual Result<std::unique_ptr<Memory>> import_memory(const halyard_memory_request_t& request,
                                                        const halyard_external_memory_t& external,
                                                        halyard_memory_info_t& info) {
    (void)request, (void)info;
    return Failure{HALYARD_UNIMPLEMENTED,
                   "this device imports no external memory; found kind " + std::to_string(external.kind)};
  }

  // Grades an executable: HALYARD_GRADE_* and the reason. `data` is empty if only the format is to be graded.
  virtual uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const {
    (void)data;
    reason = "this device runs no executables, so no '" + std::string(format) + "'";
    return HALYARD_GRADE_NO;
  }
  virtual Result<std::unique_ptr<Executable>> load(const halyard_executable_args_t& args) {
    return Failure{HALYARD_NOT_FOUND, "format '" + std::string(view(args.format)) +
                                          "' is unknown; this device runs no executables"};
  }

  // Checks that a command can be recorded; UNIMPLEMENTED names its kind. Called once for each command when a
  // list is created.
  virtual Result<> check(const halyard_command_t& command) const = 0;
  // Runs one command of a list, on the thread that runs the work. Barriers and debug groups are passed too; a
  // device that runs commands in order can ignore them. Work that was stopped ends before its next command; a
  // command that takes long checks table.stop, and then the device can declare HALYARD_DEVICE_STOPS_WORK
  // [R69].
  virtual Result<> run(const halyard_command_t& command, Table table) = 0;

  // Queues work that has become ready.
  virtual void enqueue(Work& work, TaskList& ready);

  // ---- Functions for the function table

  Result<std::unique_ptr<Timeline>> create_semaphore(uint64_t initial) {
    return std::make_unique<Timeline>(services_, initial);
  }
  Result<std::unique_ptr<CommandList>> create_list(const halyard_command_list_args_t& args);
  Result<> submit(const halyard_submission_t& submission, TaskList& ready);
  Status wait(Timepoints points, bool any, int64_t deadline_ns) {
    return wait_for<Timeline>(services_, points, any, deadline_ns);
  }
  template <typename T>
  void destroy(T* object) {
    delete object;
  }

 private:
  const Services& services_;
};

class Instance {
 public:
  explicit Instance(const Services& services) : services_(services) {}
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  virtual ~Instance() = default;

  const Services& services() const { return services_; }
  // Looks for hardware; called once. UNAVAILABLE, with the reason, if there is no device.
  virtual Result<> start() { return {}; }
  // The devices found; their strings live as long as the instance.
  virtual std::vector<halyard_device_info_t> devices() const = 0;
  // NOT_FOUND lists the existing paths. Each call opens a separate device.
  virtual Result<std::unique_ptr<Device>> open(const halyard_device_open_args_t& args) = 0;

 private:
  const Services& services_;
};

// One submission, from queue_submit until it has completed, with copies of everything that was borrowed
// [R61].
class Work : public Task, public Held<Work, Timeline, TaskList> {
 public:
  Work(Device& device, const halyard_submission_t& submission, Memory* transient)
      : device_(device),
        transient_(transient),
        operation_(copy_sized(*submission.operation)),
        signals_(submission.signals, submission.signals + submission.signal_count),
        stop_(submission),
        completed_(submission.completed),
        completed_user_(submission.completed_user),
        waits_(submission.wait_count) {
    run = [](Task& self, TaskList& ready) { static_cast<Work&>(self).finish(ready); };
    if (operation_.kind == HALYARD_OPERATION_EXECUTE)
      bindings_.assign(operation_.execute.bindings,
                       operation_.execute.bindings + operation_.execute.binding_count);
    prepare(waits_, {submission.waits, submission.wait_count});
  }

  // Starts to wait. From now on any thread may make the work ready and run it, so the caller must not touch
  // the work again.
  void begin(TaskList& ready) { hold(waits_, ready); }
  void on_ready(TaskList& ready) { device_.enqueue(*this, ready); }
  void dispose() { delete this; }
  // Runs the operation, unless a wait failed [R62]; then signals; then notifies the host [R63]. Destroys the
  // work at the end.
  void finish(TaskList& ready) {
    failure_of_work_ = take_failure(waits_, tell_.unwatched);
    Status& failure = failure_of_work_;
    if (!failure) {
      trace_began(device_.services(), completed_user_);
      failure = guarded(device_.services(), [&] { return perform(); });
    }
    for (const halyard_timepoint_t& point : signals_) {
      auto& timeline = timeline_of<Timeline>(point);
      if (failure) {
        timeline.fail(failure, ready);
      } else {
        timeline.advance(point.value, ready);
      }
    }
    tell_.work = this;
    tell_.run = [](Task& self, TaskList&) {
      auto& tell = static_cast<Tell&>(self);
      Work& work = *tell.work;
      work.completed_(work.completed_user_, std::move(work.failure_of_work_).release());
      work.leave(tell.unwatched + 1);
    };
    ready.push_call(tell_);
  }

 private:
  struct Tell : Task {
    Work* work = nullptr;
    size_t unwatched = 0;
  };

  Result<> perform() {
    HALYARD_KIT_TRY(stop_.check());
    switch (operation_.kind) {
      case HALYARD_OPERATION_ALLOCA:
        return transient_->commit();
      case HALYARD_OPERATION_DEALLOCA:
        return reinterpret_cast<Memory*>(operation_.dealloca.memory)->decommit();
      case HALYARD_OPERATION_EXECUTE:
        for (const halyard_command_t* command :
             reinterpret_cast<CommandList*>(operation_.execute.list)->commands) {
          HALYARD_KIT_TRY(stop_.check());
          HALYARD_KIT_TRY(device_.run(*command, Table(bindings_, stop_)));
        }
        return {};
      default:  // a barrier: submit() accepts no other kinds
        return {};
    }
  }

  Device& device_;
  Memory* const transient_;  // the memory of an alloca, else null
  const halyard_operation_t operation_;
  const std::vector<halyard_timepoint_t> signals_;
  std::vector<halyard_binding_t> bindings_;
  const Stop stop_;
  const halyard_completed_fn completed_;
  void* const completed_user_;
  std::vector<Wait> waits_;
  Tell tell_;
  Status failure_of_work_;
};

inline void Device::enqueue(Work& work, TaskList& ready) { ready.push_work(work); }

inline Result<> Device::submit(const halyard_submission_t& submission, TaskList& ready) {
  const halyard_operation_t& operation = *submission.operation;
  if (operation.kind >= 64 || !(properties().operations >> operation.kind & 1))
    return Failure{HALYARD_UNIMPLEMENTED, "operation of kind " + std::to_string(operation.kind) +
                                              " is not among those that this device offers"};
  std::unique_ptr<Memory> transient;
  halyard_memory_info_t info = {sizeof info, 0, 0, 0, 0};
  if (operation.kind == HALYARD_OPERATION_ALLOCA)
    transient = HALYARD_KIT_TRY(allocate(*operation.alloca_.request, true, info));
  Work* const work = new Work(*this, submission, transient.get());
  if (transient) {  // accepted: nothing may fail from here on [R60, R73]
    fill_sized(*operation.alloca_.info, info);
    *operation.alloca_.memory = reinterpret_cast<halyard_driver_memory_t>(transient.release());
  }
  work->begin(ready);
  return {};
}

inline Result<std::unique_ptr<CommandList>> Device::create_list(const halyard_command_list_args_t& args) {
  auto list = std::make_unique<CommandList>();
  const auto* at = reinterpret_cast<const char*>(args.commands);
  for (uint32_t i = 0; i < args.command_count; ++i) {
    const auto& command = *reinterpret_cast<const halyard_command_t*>(at);
    if (Result<> taken = check(command); !taken) return std::move(taken.failure());
    list->commands.push_back(&command);
    at += command.size;
  }
  return list;
}

// A device with one thread for queue work and another for calls of the host. A slow subscriber, or one that
// waits for later work of the device, delays other calls but no queue work.
class QueuedDevice : public Device {
 public:
  using Device::Device;
  // Both threads run everything posted to them, then end. The host closes a device only after all its work
  // has completed, so the threads use no member of a derived class any more [R22].
  ~QueuedDevice() override {
    work_.stop();
    calls_.stop();
  }
  // Must be called before the first submission, at the end of Instance::open. Throws std::system_error.
  void start() {
    calls_.start([](Task& call) {
      TaskList ready;
      call.run(call, ready);
    });
    work_.start([this](Task& work) {
      TaskList ready;
      work.run(work, ready);
      ready.run_work();  // of other devices, which run in the caller
      while (Task* const call = ready.pop_call()) calls_.post(*call);
    });
  }
  void enqueue(Work& work, TaskList&) final { work_.post(work); }

 private:
  TaskThread calls_;
  TaskThread work_;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_DEVICE_HPP_
