// Of the kit (halyard/driver.hpp): the classes that a driver derives from, and its queue work.
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

#include "halyard/driver/trace.hpp"
#include "halyard/driver/waiting.hpp"

namespace halyard::kit {

// Bytes that a device gave or imported.
class Memory {
 public:
  virtual ~Memory() = default;
  // Alloca's turn has come: the bytes are there from now on. RESOURCE_EXHAUSTED.
  virtual Result<> commit() { return {}; }
  // Dealloca's turn has come: they may go; the handle stays until it is destroyed.
  virtual Result<> decommit() { return {}; }
  // For the host and for commands; FAILED_PRECONDITION before commit() and after decommit() [R73].
  virtual Result<uint8_t*> bytes() = 0;
  // Needed where memory is HOST_VISIBLE without HOST_COHERENT.
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
  // What it does not set is zero. Texts live as long as the executable.
  virtual Result<halyard_function_info_t> function_info(uint32_t function) const = 0;

 private:
  const Services& services_;
};

// The entries of a binding table.
using Table = std::span<const halyard_binding_t>;

// The memory and the offset in bytes that a range means: directly, or through a slot of the table.
struct Place {
  Memory* memory;
  uint64_t offset;
};
inline Place place_of(const halyard_range_t& range, Table table) {
  if (range.memory) return {reinterpret_cast<Memory*>(range.memory), range.offset};
  const halyard_binding_t& entry = table[range.slot];
  return {reinterpret_cast<Memory*>(entry.memory), entry.offset + range.offset};
}

class Work;

struct CommandList {
  std::vector<const halyard_command_t*> commands;  // the host keeps them [R101]
};

// Work that is due is done on the thread that makes it due: properties with HALYARD_DEVICE_RUNS_IN_CALLER.
// See QueuedDevice for the other way.
class Device {
 public:
  explicit Device(const Services& services) : services_(services) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  const Services& services() const { return services_; }

  virtual halyard_device_properties_t properties() const = 0;
  // hal.device.query; nothing: not known.
  virtual std::optional<int64_t> query(std::string_view category, std::string_view key) const {
    return (void)category, (void)key, std::nullopt;
  }
  virtual halyard_memory_statistics_t statistics() const { return {}; }
  virtual void trim() {}

  // Memory of at least what is requested; `info` says what it is. `later`: for an alloca, whose commit()
  // brings the bytes; else they are there at once. RESOURCE_EXHAUSTED, INVALID_ARGUMENT: no heap has the
  // memory type [R70].
  virtual Result<std::unique_ptr<Memory>> allocate(const halyard_memory_request_t& request, bool later,
                                                   halyard_memory_info_t& info) = 0;
  virtual Result<std::unique_ptr<Memory>> import_memory(const halyard_memory_request_t& request,
                                                        const halyard_external_memory_t& external,
                                                        halyard_memory_info_t& info) {
    (void)request, (void)info;
    return Failure{HALYARD_UNIMPLEMENTED,
                   "this device imports no external memory; found kind " + std::to_string(external.kind)};
  }

  // How well an executable fits: HALYARD_GRADE_*, and the reason. `data` is empty where the format alone is
  // judged.
  virtual uint32_t grade(std::string_view format, std::span<const uint8_t> data, std::string& reason) const {
    (void)data;
    reason = "this device runs no executables, so no '" + std::string(format) + "'";
    return HALYARD_GRADE_NO;
  }
  virtual Result<std::unique_ptr<Executable>> load(const halyard_executable_args_t& args) {
    return Failure{HALYARD_NOT_FOUND, "format '" + std::string(view(args.format)) +
                                          "' is unknown; this device runs no executables"};
  }

  // Whether a command can be recorded; UNIMPLEMENTED names the kind. Called once for each, when a list is
  // made.
  virtual Result<> check(const halyard_command_t& command) const = 0;
  // Does one command of a list, on whichever thread the work is done. A barrier has nothing to do where one
  // command ends before the next begins, and a group where nobody looks; they come here, too.
  virtual Result<> run(const halyard_command_t& command, Table table) = 0;

  // Where work goes when it is due.
  virtual void enqueue(Work& work, DueList& due);

  // ---- The kit's, for the table of functions

  Result<std::unique_ptr<Timeline>> create_semaphore(uint64_t initial) {
    return std::make_unique<Timeline>(services_, initial);
  }
  Result<std::unique_ptr<CommandList>> create_list(const halyard_command_list_args_t& args);
  Result<> submit(const halyard_submission_t& submission, DueList& due);
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
  // Looks for hardware; once. UNAVAILABLE with the reason where there is nothing to drive.
  virtual Result<> start() { return {}; }
  // The devices that there are; texts live as long as the instance.
  virtual std::vector<halyard_device_info_t> devices() const = 0;
  // NOT_FOUND names the paths there are. Opening one twice gives two.
  virtual Result<std::unique_ptr<Device>> open(const halyard_device_open_args_t& args) = 0;

 private:
  const Services& services_;
};

// One submission, from queue_submit until it is done, with copies of what was only borrowed [R61].
class Work : public Due, public Held<Work, Timeline, DueList> {
 public:
  Work(Device& device, const halyard_submission_t& submission, Memory* transient)
      : device_(device),
        transient_(transient),
        operation_(copy_sized(*submission.operation)),
        signals_(submission.signals, submission.signals + submission.signal_count),
        completed_(submission.completed),
        completed_user_(submission.completed_user),
        waits_(submission.wait_count) {
    run = [](Due& self, DueList& due) { static_cast<Work&>(self).finish(due); };
    if (operation_.kind == HALYARD_OPERATION_EXECUTE)
      bindings_.assign(operation_.execute.bindings,
                       operation_.execute.bindings + operation_.execute.binding_count);
    prepare(waits_, {submission.waits, submission.wait_count});
  }

  // Begins to wait. From then on any thread may make it due and do it: it may not be touched any more.
  void begin(DueList& due) { hold(waits_, due); }
  void is_due(DueList& due) { device_.enqueue(*this, due); }
  void dispose() { delete this; }
  // The operation, unless a wait failed [R62]; then the signals; then the host is told [R63]. The work is
  // gone afterwards.
  void finish(DueList& due) {
    failure_of_work_ = take_failure(waits_, tell_.unwatched);
    Status& failure = failure_of_work_;
    if (!failure) {
      trace_began(device_.services(), completed_user_);
      failure = guarded(device_.services(), [&] { return perform(); });
    }
    for (const halyard_timepoint_t& point : signals_) {
      auto& timeline = timeline_of<Timeline>(point);
      if (failure) {
        timeline.fail(failure, due);
      } else {
        timeline.advance(point.value, due);
      }
    }
    tell_.work = this;
    tell_.run = [](Due& self, DueList&) {
      auto& tell = static_cast<Tell&>(self);
      Work& work = *tell.work;
      work.completed_(work.completed_user_, std::move(work.failure_of_work_).release());
      work.leave(tell.unwatched + 1);
    };
    due.push_call(tell_);
  }

 private:
  struct Tell : Due {
    Work* work = nullptr;
    size_t unwatched = 0;
  };

  Result<> perform() {
    switch (operation_.kind) {
      case HALYARD_OPERATION_ALLOCA:
        return transient_->commit();
      case HALYARD_OPERATION_DEALLOCA:
        return reinterpret_cast<Memory*>(operation_.dealloca.memory)->decommit();
      case HALYARD_OPERATION_EXECUTE:
        for (const halyard_command_t* command :
             reinterpret_cast<CommandList*>(operation_.execute.list)->commands)
          if (Result<> done = device_.run(*command, bindings_); !done) return done;
        return {};
      default:  // a barrier: submit() takes no others
        return {};
    }
  }

  Device& device_;
  Memory* const transient_;  // of an alloca
  const halyard_operation_t operation_;
  const std::vector<halyard_timepoint_t> signals_;
  std::vector<halyard_binding_t> bindings_;
  const halyard_completed_fn completed_;
  void* const completed_user_;
  std::vector<Wait> waits_;
  Tell tell_;
  Status failure_of_work_;
};

inline void Device::enqueue(Work& work, DueList& due) { due.push_work(work); }

inline Result<> Device::submit(const halyard_submission_t& submission, DueList& due) {
  const halyard_operation_t& operation = *submission.operation;
  if (operation.kind >= 64 || !(properties().operations >> operation.kind & 1))
    return Failure{HALYARD_UNIMPLEMENTED, "operation of kind " + std::to_string(operation.kind) +
                                              " is not among those that this device offers"};
  std::unique_ptr<Memory> transient;
  halyard_memory_info_t info = {sizeof info, 0, 0, 0, 0};
  if (operation.kind == HALYARD_OPERATION_ALLOCA)
    transient = HALYARD_KIT_TRY(allocate(*operation.alloca_.request, true, info));
  Work* const work = new Work(*this, submission, transient.get());
  if (transient) {  // accepted: nothing fails from here on [R60, R73]
    fill_sized(*operation.alloca_.info, info);
    *operation.alloca_.memory = reinterpret_cast<halyard_driver_memory_t>(transient.release());
  }
  work->begin(due);
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

// A device with a thread for work and another for calls of the host: a subscriber that is slow, or waits for
// later work of the device, delays other calls but no work.
class QueuedDevice : public Device {
 public:
  using Device::Device;
  // Both threads end when everything posted to them is done. The host closes a device when all its work is
  // done, so nothing of a derived class is used any more [R22].
  ~QueuedDevice() override {
    work_.stop();
    calls_.stop();
  }
  // Before the first submission: at the end of Instance::open. Throws std::system_error.
  void start() {
    calls_.start([](Due& call) {
      DueList due;
      call.run(call, due);
    });
    work_.start([this](Due& work) {
      DueList due;
      work.run(work, due);
      due.run_work();  // of devices that run in their caller
      while (Due* const call = due.pop_call()) calls_.post(*call);
    });
  }
  void enqueue(Work& work, DueList&) final { work_.post(work); }

 private:
  Runner calls_;
  Runner work_;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_DEVICE_HPP_
