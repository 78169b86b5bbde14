// The fake driver: see fake_driver.h. Executables have the format "fake". Their data is text with one line
// for each function: "name bindings constants"; "-" is a function without a name. A dispatch adds the number
// of workgroups (x*y*z) and all constants to the 32-bit number at the start of each binding. A descriptor of
// a semaphore is a file in memory that contains the value.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fake_driver.h"
#include "halyard/driver.h"

HALYARD_DRIVER_NOTE("fake", "1.0", "fake");

struct halyard_driver_instance {
  const halyard_host_services_t* services;
};

struct halyard_driver_device {
  std::string path;
  bool passes() const { return path == "passing" || path == "apart"; }
  bool helped() const { return path == "helped"; }
  bool queued() const { return path == "queued" || helped() || passes(); }
  bool bare() const { return path == "bare"; }
  bool opaque() const { return path == "opaque"; }
};

struct halyard_driver_memory {
  std::vector<uint8_t> own;
  uint8_t* bytes = nullptr;
  uint64_t size = 0;
};

struct Subscription {
  uint64_t value;
  halyard_subscriber_fn subscriber;
  void* user;
};

struct halyard_driver_semaphore {
  uint64_t value = 0;
  halyard_status_t failure = nullptr;
  std::list<Subscription> subscriptions;
  std::vector<int> exports;  // descriptors of the files with its exports
  int import = -1;           // descriptor of the imported file
};

// The header of a descriptor's file.
struct Shared {
  char is[8] = "fakesem";
  uint64_t value = 0;
};

struct Function {
  std::string name;
  std::string source;
  uint32_t bindings = 0;
  uint32_t constants = 0;
};

struct halyard_driver_executable {
  std::vector<Function> functions;
};

struct halyard_driver_command_list {
  halyard_command_list_args_t args;
};

namespace {

struct Work {
  halyard_driver_device_t device;
  halyard_operation_t operation;
  halyard_driver_memory_t allocated = nullptr;
  std::vector<halyard_binding_t> bindings;
  std::vector<halyard_timepoint_t> waits, signals;
  halyard_completed_fn completed;
  void* user;
  halyard_status_t failure = nullptr;
};

std::vector<halyard_driver_instance_t> instances;
const halyard_host_services_t* services = nullptr;  // of any instance that is not shut down
std::mutex mutex;                                   // guards the variables below and every timeline
std::condition_variable changed;
std::set<halyard_driver_semaphore_t> semaphores;
std::list<std::unique_ptr<Work>> held;
std::deque<std::unique_ptr<Work>> ready;
std::string log_text;
int32_t refusal = 0;
int32_t failure = 0;
int32_t export_refusal = 0;
int32_t import_refusal = 0;
size_t exports = 0;
size_t imports = 0;
bool holds_back = false;
std::array<int64_t, FAKE_HANDLE_KINDS> live_handles = {};
size_t closed_in_callbacks = 0;
thread_local int calling = 0;  // callbacks of the host that run on this thread

void count(FakeHandle kind, int64_t change) {
  const std::lock_guard lock(mutex);
  live_handles[kind] += change;
}

halyard_status_t fail(int32_t code, const std::string& message) {
  return services->status_create(services->host, code, message.data(), message.size());
}
halyard_status_t retain(halyard_status_t status) { return services->status_retain(services->host, status); }
void release(halyard_status_t status) { services->status_release(services->host, status); }

template <typename T>
void answer(T* target, T source) {
  source.struct_size = target->struct_size;
  std::memcpy(target, &source, std::min<size_t>(target->struct_size, sizeof(T)));
}

// ---- Operations ----

uint8_t* address(const Work& work, const halyard_range_t& range) {
  if (range.memory) return range.memory->bytes + range.offset;
  const halyard_binding_t& binding = work.bindings[range.slot];
  return binding.memory->bytes + binding.offset + range.offset;
}

void fill(const Work& work, const halyard_range_t& target, uint32_t pattern, uint32_t size,
          std::ostream& out) {
  uint8_t* bytes = address(work, target);
  for (uint64_t i = 0; i < target.length; ++i) bytes[i] = static_cast<uint8_t>(pattern >> 8 * (i % size));
  out << "fill " << target.length << "\n";
}

void update(const Work& work, const halyard_range_t& target, const void* source, std::ostream& out) {
  std::memcpy(address(work, target), source, target.length);
  out << "update " << target.length << "\n";
}

void copy(const Work& work, const halyard_range_t& source, const halyard_range_t& target, std::ostream& out) {
  std::memmove(address(work, target), address(work, source), target.length);
  out << "copy " << target.length << "\n";
}

void dispatch(const Work& work, const halyard_command_dispatch_t& command, std::ostream& out) {
  uint32_t counts[3];
  std::memcpy(counts, command.workgroups, sizeof(counts));
  if (command.flags & HALYARD_DISPATCH_INDIRECT)
    std::memcpy(counts, address(work, command.indirect), sizeof(counts));
  uint32_t sum = counts[0] * counts[1] * counts[2];
  for (uint32_t i = 0; i < command.constant_count; ++i) sum += command.constants[i];
  for (uint32_t i = 0; i < command.binding_count; ++i) {
    if (command.bindings[i].length < sizeof(uint32_t)) continue;
    uint32_t value = 0;
    std::memcpy(&value, address(work, command.bindings[i]), sizeof(value));
    value += sum;
    std::memcpy(address(work, command.bindings[i]), &value, sizeof(value));
  }
  out << "dispatch " << command.executable->functions[command.function].name << "\n";
}

void execute(const Work& work, std::ostream& out) {
  const halyard_command_list_args_t& list = work.operation.execute.list->args;
  const auto* at = reinterpret_cast<const char*>(list.commands);
  for (uint32_t i = 0; i < list.command_count; ++i) {
    halyard_command_t header;
    std::memcpy(&header, at, sizeof(header));
    const void* body = at;
    if (header.kind == HALYARD_COMMAND_FILL) {
      const auto* it = static_cast<const halyard_command_fill_t*>(body);
      fill(work, it->target, it->pattern, it->pattern_size, out);
    } else if (header.kind == HALYARD_COMMAND_UPDATE) {
      const auto* it = static_cast<const halyard_command_update_t*>(body);
      update(work, it->target, it->source, out);
    } else if (header.kind == HALYARD_COMMAND_COPY) {
      const auto* it = static_cast<const halyard_command_copy_t*>(body);
      copy(work, it->source, it->target, out);
    } else if (header.kind == HALYARD_COMMAND_DISPATCH) {
      dispatch(work, *static_cast<const halyard_command_dispatch_t*>(body), out);
    }
    at += header.size;
  }
}

void give_bytes(halyard_driver_memory_t memory) {
  memory->own.resize(memory->size + 1);
  memory->bytes = memory->own.data();
}

halyard_status_t perform(Work& work) {
  std::ostringstream out;
  int32_t code = 0;
  {
    const std::lock_guard lock(mutex);
    code = std::exchange(failure, 0);
  }
  if (code != 0) return fail(code, "injected failure");
  const halyard_operation_t& operation = work.operation;
  switch (operation.kind) {
    case HALYARD_OPERATION_ALLOCA:
      give_bytes(work.allocated), out << "alloca\n";
      break;
    case HALYARD_OPERATION_DEALLOCA:
      operation.dealloca.memory->bytes = nullptr, out << "dealloca\n";
      break;
    case HALYARD_OPERATION_FILL:
      fill(work, operation.fill.target, operation.fill.pattern, operation.fill.pattern_size, out);
      break;
    case HALYARD_OPERATION_UPDATE:
      update(work, operation.update.target, operation.update.source, out);
      break;
    case HALYARD_OPERATION_COPY:
      copy(work, operation.copy.source, operation.copy.target, out);
      break;
    case HALYARD_OPERATION_EXECUTE:
      execute(work, out);
      break;
    default:
      out << "barrier\n";
  }
  const std::lock_guard lock(mutex);
  log_text += out.str();
  return nullptr;
}

// ---- Timelines and queue ----

// Called under the lock: updates the semaphore's exports.
void publish(halyard_driver_semaphore_t semaphore) {
  const Shared shared = {.value = semaphore->value};
  for (const int fd : semaphore->exports)
    if (!holds_back && ::pwrite(fd, &shared, sizeof shared, 0) != sizeof shared) std::abort();
}

// Called under the lock: sets a larger value or, if `why` is not null, the failure.
void advance(halyard_driver_semaphore_t semaphore, uint64_t value, halyard_status_t why) {
  if (semaphore->failure || (!why && value <= semaphore->value)) return;
  if (why) {
    semaphore->failure = retain(why);
  } else {
    semaphore->value = value;
    publish(semaphore);
  }
  changed.notify_all();
}

// Called under the lock when the source of the import may have advanced.
void follow(halyard_driver_semaphore_t semaphore) {
  Shared shared;
  if (semaphore->import < 0 || ::pread(semaphore->import, &shared, sizeof shared, 0) != sizeof shared) return;
  advance(semaphore, shared.value, nullptr);
}

void run(std::unique_ptr<Work> work) {
  halyard_status_t status = work->failure ? work->failure : perform(*work);
  {
    const std::lock_guard lock(mutex);
    for (const halyard_timepoint_t& signal : work->signals) advance(signal.semaphore, signal.value, status);
  }
  ++calling;
  work->completed(work->user, status);
  --calling;
}

// Called under the lock: whether all waits of the work are over.
bool is_ready(Work& work) {
  bool all = true;
  for (const halyard_timepoint_t& wait : work.waits) {
    if (wait.semaphore->failure) {
      work.failure = retain(wait.semaphore->failure);
      return true;
    }
    all &= wait.semaphore->value >= wait.value;
  }
  return all;
}

// Calls subscribers and runs work until none is ready.
void run_pending() {
  while (true) {
    std::function<void()> next;
    {
      const std::lock_guard lock(mutex);
      for (halyard_driver_semaphore_t semaphore : semaphores) follow(semaphore);
      for (auto it = held.begin(); it != held.end() && !next;) {
        if (!is_ready(**it)) {
          ++it;
          continue;
        }
        std::unique_ptr<Work> work = std::move(*it);
        it = held.erase(it);
        if (work->device->queued()) {
          ready.push_back(std::move(work));
        } else {
          next = [raw = work.release()] { run(std::unique_ptr<Work>(raw)); };
        }
      }
      for (halyard_driver_semaphore_t semaphore : semaphores) {
        for (auto it = semaphore->subscriptions.begin(); it != semaphore->subscriptions.end() && !next;
             ++it) {
          if (!semaphore->failure && semaphore->value < it->value) continue;
          next = [found = *it, status = retain(semaphore->failure)] {
            ++calling;
            found.subscriber(found.user, status);
            --calling;
          };
          semaphore->subscriptions.erase(it);
          break;
        }
        if (next) break;
      }
    }
    if (!next) return;
    next();
  }
}

// ---- The table ----

halyard_status_t initialize(const halyard_driver_init_args_t* args, halyard_driver_instance_t* instance) {
  *instance = new halyard_driver_instance{args->services};
  instances.push_back(*instance);
  services = args->services;
  return nullptr;
}

void shutdown(halyard_driver_instance_t* instance) {
  if (!instance || !*instance) return;
  std::erase(instances, *instance);
  services = instances.empty() ? nullptr : instances.back()->services;
  delete *instance;
  *instance = nullptr;
}

halyard_status_t enumerate_devices(halyard_driver_instance_t, uint32_t capacity, halyard_device_info_t* infos,
                                   uint32_t* count) {
  static const char* const paths[] = {"", "queued", "bare", "opaque"};
  for (uint32_t i = 0; i < std::min<uint32_t>(capacity, 4); ++i)
    answer(reinterpret_cast<halyard_device_info_t*>(reinterpret_cast<char*>(infos) + i * infos->struct_size),
           halyard_device_info_t{0, 0, "fake", paths[i], "fake device"});
  *count = 4;
  return nullptr;
}

halyard_status_t device_open(halyard_driver_instance_t, const halyard_device_open_args_t* args,
                             halyard_driver_device_t* device) {
  *device = new halyard_driver_device{std::string(args->path.data, args->path.size)};
  count(FAKE_DEVICE, 1);
  return nullptr;
}

void device_close(halyard_driver_device_t device) {
  if (calling != 0) {
    const std::lock_guard lock(mutex);
    ++closed_in_callbacks;
  }
  delete device;
  count(FAKE_DEVICE, -1);
}

halyard_status_t device_properties(halyard_driver_device_t device, halyard_device_properties_t* properties) {
  halyard_device_properties_t known = {};
  if (!device->queued()) known.capabilities |= HALYARD_DEVICE_RUNS_IN_CALLER;
  known.operations = uint64_t{1} << HALYARD_OPERATION_BARRIER | uint64_t{1} << HALYARD_OPERATION_EXECUTE;
  if (!device->bare()) {
    known.capabilities |= HALYARD_DEVICE_QUEUE_ALLOCA;
    for (const int kind : {HALYARD_OPERATION_ALLOCA, HALYARD_OPERATION_DEALLOCA, HALYARD_OPERATION_FILL,
                           HALYARD_OPERATION_UPDATE, HALYARD_OPERATION_COPY})
      known.operations |= uint64_t{1} << kind;
  }
  known.queue_count = 2;
  known.memory_alignment = 1;
  known.maximum_allocation = 1 << 20;
  if (device->passes()) {
    known.capabilities |= HALYARD_DEVICE_SEMAPHORE_EXPORT;
    known.semaphore_fd_kind = HALYARD_SEMAPHORE_FD_OPAQUE;
    device->path.copy(reinterpret_cast<char*>(known.semaphore_fd_group), sizeof known.semaphore_fd_group);
  }
  answer(properties, known);
  return nullptr;
}

halyard_status_t device_query_i64(halyard_driver_device_t, halyard_text_t, halyard_text_t, int32_t* known,
                                  int64_t*) {
  *known = 0;
  return nullptr;
}

void describe(halyard_driver_device_t device, const halyard_memory_request_t& request,
              halyard_memory_info_t* info) {
  halyard_memory_info_t given = {};
  given.memory_type = HALYARD_MEMORY_DEVICE_LOCAL | request.memory_type;
  given.usage = request.usage;
  if (!device->opaque()) {
    given.memory_type |= HALYARD_MEMORY_HOST_LOCAL;
    given.usage |= HALYARD_USAGE_MAPPING_SCOPED;
  }
  given.memory_type &= ~static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL);
  given.size = request.size;
  answer(info, given);
}

halyard_status_t memory_allocate(halyard_driver_device_t device, const halyard_memory_request_t* request,
                                 halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  *memory = new halyard_driver_memory();
  (*memory)->size = request->size;
  give_bytes(*memory);
  describe(device, *request, info);
  count(FAKE_MEMORY, 1);
  return nullptr;
}

void memory_free(halyard_driver_device_t, halyard_driver_memory_t memory) {
  delete memory;
  count(FAKE_MEMORY, -1);
}

halyard_status_t memory_map(halyard_driver_device_t, halyard_driver_memory_t memory, uint32_t,
                            uint64_t offset, uint64_t, void** pointer) {
  if (!memory->bytes) return fail(HALYARD_FAILED_PRECONDITION, "no bytes");
  *pointer = memory->bytes + offset;
  return nullptr;
}
void memory_unmap(halyard_driver_device_t, halyard_driver_memory_t) {}
halyard_status_t memory_sync(halyard_driver_device_t, halyard_driver_memory_t, uint64_t, uint64_t) {
  return nullptr;
}

halyard_status_t semaphore_create(halyard_driver_device_t, uint64_t initial,
                                  halyard_driver_semaphore_t* semaphore) {
  *semaphore = new halyard_driver_semaphore();
  (*semaphore)->value = initial;
  const std::lock_guard lock(mutex);
  semaphores.insert(*semaphore);
  ++live_handles[FAKE_SEMAPHORE];
  return nullptr;
}

void semaphore_destroy(halyard_driver_device_t, halyard_driver_semaphore_t semaphore) {
  {
    const std::lock_guard lock(mutex);
    semaphores.erase(semaphore);
    --live_handles[FAKE_SEMAPHORE];
  }
  release(semaphore->failure);
  for (const int fd : semaphore->exports) ::close(fd);
  if (semaphore->import >= 0) ::close(semaphore->import);
  delete semaphore;
}

halyard_status_t semaphore_query(halyard_driver_semaphore_t semaphore, uint64_t* value) {
  const std::lock_guard lock(mutex);
  follow(semaphore);
  if (semaphore->failure) return retain(semaphore->failure);
  *value = semaphore->value;
  return nullptr;
}

halyard_status_t semaphore_signal(halyard_driver_semaphore_t semaphore, uint64_t value) {
  {
    const std::lock_guard lock(mutex);
    if (!semaphore->failure && value <= semaphore->value) return fail(HALYARD_INVALID_ARGUMENT, "not larger");
    advance(semaphore, value, nullptr);
  }
  run_pending();
  return nullptr;
}

void semaphore_fail(halyard_driver_semaphore_t semaphore, halyard_status_t status) {
  {
    const std::lock_guard lock(mutex);
    advance(semaphore, 0, status);
  }
  release(status);
  run_pending();
}

halyard_status_t semaphore_wait(halyard_driver_device_t, const halyard_semaphore_wait_args_t* args) {
  std::unique_lock lock(mutex);
  halyard_status_t found = nullptr;
  const auto done = [&] {
    uint32_t reached = 0;
    for (uint32_t i = 0; i < args->timepoint_count && !found; ++i) {
      found = retain(args->timepoints[i].semaphore->failure);
      reached += args->timepoints[i].semaphore->value >= args->timepoints[i].value;
    }
    return found || reached == args->timepoint_count;
  };
  if (args->deadline_ns == HALYARD_WAIT_FOREVER) {
    changed.wait(lock, done);
    return found;
  }
  const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(args->deadline_ns)};
  if (changed.wait_until(lock, deadline, done)) return found;
  return fail(HALYARD_DEADLINE_EXCEEDED, "deadline");
}

halyard_status_t semaphore_subscribe(halyard_driver_semaphore_t semaphore, uint64_t value,
                                     halyard_subscriber_fn subscriber, void* user) {
  {
    const std::lock_guard lock(mutex);
    semaphore->subscriptions.push_back({value, subscriber, user});
  }
  run_pending();
  return nullptr;
}

int32_t semaphore_unsubscribe(halyard_driver_semaphore_t semaphore, halyard_subscriber_fn subscriber,
                              void* user) {
  const std::lock_guard lock(mutex);
  return semaphore->subscriptions.remove_if(
             [&](const Subscription& it) { return it.subscriber == subscriber && it.user == user; }) > 0;
}

halyard_status_t semaphore_export(halyard_driver_semaphore_t semaphore, int32_t* fd) {
  const std::lock_guard lock(mutex);
  if (const int32_t code = std::exchange(export_refusal, 0)) return fail(code, "injected refusal");
  const int file = ::memfd_create("fake semaphore", MFD_CLOEXEC);
  const int other = ::dup(file);
  const Shared shared = {.value = semaphore->value};
  if (file < 0 || other < 0 || ::pwrite(file, &shared, sizeof shared, 0) != sizeof shared)
    return fail(HALYARD_RESOURCE_EXHAUSTED, "no file");
  semaphore->exports.push_back(file);
  *fd = other;
  ++exports;
  return nullptr;
}

halyard_status_t semaphore_import(halyard_driver_device_t, int32_t fd,
                                  halyard_driver_semaphore_t* semaphore) {
  const std::lock_guard lock(mutex);
  if (const int32_t code = std::exchange(import_refusal, 0)) return fail(code, "injected refusal");
  Shared shared;
  if (::pread(fd, &shared, sizeof shared, 0) != sizeof shared || std::strcmp(shared.is, Shared().is) != 0)
    return fail(HALYARD_INVALID_ARGUMENT, "not a semaphore of this driver");
  *semaphore = new halyard_driver_semaphore();
  (*semaphore)->value = shared.value;
  (*semaphore)->import = fd;
  semaphores.insert(*semaphore);
  ++live_handles[FAKE_SEMAPHORE];
  ++imports;
  return nullptr;
}

size_t run_ready() {
  for (size_t done = 0;; ++done) {
    std::unique_ptr<Work> work;
    {
      const std::lock_guard lock(mutex);
      if (ready.empty()) return done;
      work = std::move(ready.front());
      ready.pop_front();
    }
    run(std::move(work));
    run_pending();
  }
}

// Runs all ready work, regardless of the timepoints that the caller waits for.
void device_help(halyard_driver_device_t device, const halyard_semaphore_wait_args_t*) {
  if (device->helped()) run_ready();
}

// Ready work is under way, because it needs only run_ready.
int32_t semaphore_underway(halyard_driver_semaphore_t semaphore, uint64_t value) {
  const std::lock_guard lock(mutex);
  if (semaphore->failure) return 0;
  if (semaphore->value >= value) return 1;
  for (const std::unique_ptr<Work>& work : ready)
    for (const halyard_timepoint_t& signal : work->signals)
      if (signal.semaphore == semaphore && signal.value >= value) return 1;
  return 0;
}

void executable_grade(halyard_driver_device_t, halyard_text_t format, const void*, uint64_t,
                      halyard_executable_grade_t* grade) {
  halyard_executable_grade_t given = {};
  const bool known = std::string(format.data, format.size) == "fake";
  given.grade = known ? HALYARD_GRADE_NATIVE : HALYARD_GRADE_NO;
  if (!known) std::strcpy(given.reason, "fake loads 'fake' only");
  answer(grade, given);
}

halyard_status_t executable_create(halyard_driver_device_t, const halyard_executable_args_t* args,
                                   halyard_driver_executable_t* executable) {
  if (args->constant_count > 0) return fail(HALYARD_INVALID_ARGUMENT, "the executable takes no constants");
  std::istringstream text(std::string(static_cast<const char*>(args->data), args->data_size));
  auto made = std::make_unique<halyard_driver_executable>();
  for (Function function; text >> function.name;) {
    if (!(text >> function.bindings >> function.constants)) return fail(HALYARD_INVALID_ARGUMENT, "bad data");
    if (function.name == "-") function.name.clear();
    const size_t at = function.name.find('@');
    function.source = at == std::string::npos ? "" : function.name.substr(at + 1);
    function.name = function.name.substr(0, at);
    made->functions.push_back(function);
  }
  *executable = made.release();
  count(FAKE_EXECUTABLE, 1);
  return nullptr;
}

void executable_destroy(halyard_driver_device_t, halyard_driver_executable_t executable) {
  delete executable;
  count(FAKE_EXECUTABLE, -1);
}

uint32_t executable_function_count(halyard_driver_executable_t executable) {
  return static_cast<uint32_t>(executable->functions.size());
}

halyard_status_t executable_function_info(halyard_driver_executable_t executable, uint32_t index,
                                          halyard_function_info_t* info) {
  const Function& function = executable->functions[index];
  halyard_function_info_t given = {};
  given.binding_count = function.bindings;
  given.constant_count = function.constants;
  given.workgroup_size[0] = 8;
  given.local_memory = 64;
  given.name = {function.name.data(), function.name.size()};
  given.source = {function.source.data(), function.source.size()};
  if (function.source == "null") given.source = {nullptr, 4};
  answer(info, given);
  return nullptr;
}

halyard_status_t command_list_create(halyard_driver_device_t, const halyard_command_list_args_t* args,
                                     halyard_driver_command_list_t* list) {
  *list = new halyard_driver_command_list{*args};
  count(FAKE_LIST, 1);
  return nullptr;
}

void command_list_destroy(halyard_driver_device_t, halyard_driver_command_list_t list) {
  delete list;
  count(FAKE_LIST, -1);
}

halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  auto work = std::make_unique<Work>();
  work->device = device;
  work->operation = *submission->operation;
  work->completed = submission->completed;
  work->user = submission->completed_user;
  work->waits.assign(submission->waits, submission->waits + submission->wait_count);
  work->signals.assign(submission->signals, submission->signals + submission->signal_count);
  {
    const std::lock_guard lock(mutex);
    if (const int32_t code = std::exchange(refusal, 0)) return fail(code, "injected refusal");
  }
  if (work->operation.kind == HALYARD_OPERATION_EXECUTE) {
    const halyard_operation_execute_t& execute = work->operation.execute;
    work->bindings.assign(execute.bindings, execute.bindings + execute.binding_count);
  } else if (work->operation.kind == HALYARD_OPERATION_ALLOCA) {
    const halyard_operation_alloca_t& alloca_ = work->operation.alloca_;
    work->allocated = new halyard_driver_memory();
    work->allocated->size = alloca_.request->size;
    describe(device, *alloca_.request, alloca_.info);
    *alloca_.memory = work->allocated;
    count(FAKE_MEMORY, 1);
  }
  {
    const std::lock_guard lock(mutex);
    held.push_back(std::move(work));
  }
  run_pending();
  return nullptr;
}

const halyard_driver_table_t table = {.struct_size = sizeof table,
                                      .initialize = initialize,
                                      .shutdown = shutdown,
                                      .enumerate_devices = enumerate_devices,
                                      .device_open = device_open,
                                      .device_close = device_close,
                                      .device_properties = device_properties,
                                      .device_query_i64 = device_query_i64,
                                      .memory_allocate = memory_allocate,
                                      .memory_free = memory_free,
                                      .memory_map = memory_map,
                                      .memory_unmap = memory_unmap,
                                      .memory_flush = memory_sync,
                                      .memory_invalidate = memory_sync,
                                      .semaphore_create = semaphore_create,
                                      .semaphore_destroy = semaphore_destroy,
                                      .semaphore_query = semaphore_query,
                                      .semaphore_signal = semaphore_signal,
                                      .semaphore_fail = semaphore_fail,
                                      .semaphore_wait = semaphore_wait,
                                      .semaphore_subscribe = semaphore_subscribe,
                                      .semaphore_unsubscribe = semaphore_unsubscribe,
                                      .semaphore_import = semaphore_import,
                                      .semaphore_export = semaphore_export,
                                      .executable_grade = executable_grade,
                                      .executable_create = executable_create,
                                      .executable_destroy = executable_destroy,
                                      .executable_function_count = executable_function_count,
                                      .executable_function_info = executable_function_info,
                                      .command_list_create = command_list_create,
                                      .command_list_destroy = command_list_destroy,
                                      .queue_submit = queue_submit,
                                      .semaphore_underway = semaphore_underway,
                                      .device_help = device_help};

const halyard_driver_kind_t kinds[] = {{"fake", "for tests"}};

// ---- Controls ----

template <auto& kVariable>
auto get() {
  const std::lock_guard lock(mutex);
  return kVariable;
}
template <auto& kVariable>
void set(int32_t value) {
  const std::lock_guard lock(mutex);
  kVariable = value;
}

const FakeControls controls = {
    .reset =
        [] {
          const std::lock_guard lock(mutex);
          log_text.clear();
          refusal = failure = export_refusal = import_refusal = 0;
          exports = imports = 0;
        },
    .live = [](FakeHandle kind) { return get<live_handles>()[kind]; },
    .ready =
        [] {
          const std::lock_guard lock(mutex);
          return ready.size();
        },
    .run_ready = run_ready,
    .log =
        [](char* text, size_t capacity) {
          const std::string log = get<log_text>();
          std::copy_n(log.data(), std::min(capacity, log.size()), text);
          return log.size();
        },
    .refuse_next = set<refusal>,
    .fail_next = set<failure>,
    .closed_in_callbacks = get<closed_in_callbacks>,
    .exported = get<exports>,
    .imported = get<imports>,
    .refuse_export = set<export_refusal>,
    .refuse_import = set<import_refusal>,
    .hold_back =
        [](int32_t holds) {
          {
            const std::lock_guard lock(mutex);
            holds_back = holds != 0;
            for (halyard_driver_semaphore_t semaphore : semaphores) publish(semaphore);
          }
          run_pending();
        },
};

}  // namespace

extern "C" HALYARD_DRIVER_EXPORT const FakeControls* fake_driver_controls() { return &controls; }

int32_t halyard_driver_negotiate(const halyard_driver_request_t*, halyard_driver_reply_t* reply) {
  halyard_driver_reply_t filled = {};
  filled.abi_version = HALYARD_DRIVER_ABI_V1;
  filled.table = &table;
  filled.kinds = kinds;
  filled.kind_count = 1;
  answer(reply, filled);
  return 1;
}
