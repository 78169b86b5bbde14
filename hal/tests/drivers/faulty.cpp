// The faulty driver: see faulty_driver.h. Handles are those of the wrapped driver, so one driver is wrapped
// at a time.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "faulty_driver.h"
#include "halyard/driver.h"

HALYARD_DRIVER_NOTE("faulty", "1.0", "faulty");

namespace {

constexpr const char* kNames[] = {
#define HALYARD_DRIVER_FUNCTION(name, mandatory) #name,
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
};
constexpr const char* kWrapVariable = "HALYARD_FAULTY_WRAP";
constexpr const char* kLoseVariable = "HALYARD_FAULTY_LOSE";
constexpr const char* kRefuseVariable = "HALYARD_FAULTY_REFUSE_OPEN";
constexpr char kNotText[] = "\xff\xfe\x01 not text";

struct Fault {
  int function = -1;
  int kind = FAULTY_NOTHING;
  int64_t at = 0;
  int32_t code = 0;
};

// A semaphore of the wrapped driver.
struct Timeline {
  halyard_driver_device_t device = nullptr;
  bool failed = false;
  bool pinned = false;  // while this driver fails it, so that it cannot be destroyed
  bool doomed = false;  // it is to be destroyed when it is no longer pinned
};

// Calls of the wrapped driver to the host, which another thread makes later.
struct LateWork {
  halyard_completed_fn completed;
  void* user;
};
struct LateSubscriber {
  halyard_driver_semaphore_t semaphore;
  halyard_subscriber_fn subscriber;
  void* user;
};

halyard_driver_table_t inner = {};
halyard_driver_table_t table = {};
std::string inner_kind;

std::mutex mutex;  // guards the variables below
std::vector<std::pair<halyard_driver_instance_t, const halyard_host_services_t*>> instances;
const halyard_host_services_t* services = nullptr;  // of any live instance
Fault fault;
std::array<int64_t, FAULTY_FUNCTIONS> counts = {};
int64_t struck = 0;  // number of injected faults
std::array<int64_t, FAULTY_HANDLES> live_handles = {};
std::set<halyard_driver_device_t> lost;
bool late = false;
std::map<halyard_driver_semaphore_t, Timeline> timelines;
std::list<LateSubscriber> late_subscribers;
std::deque<std::function<void()>> late_calls;
size_t late_pending = 0;
// Never destroyed, because a thread waits for it when the process ends.
std::condition_variable& late_changed = *new std::condition_variable;

template <auto& kVariable>
auto get() {
  const std::lock_guard lock(mutex);
  return kVariable;
}

halyard_status_t failure(int which, int32_t code) {
  const int64_t call = get<counts>()[static_cast<size_t>(which)];
  const halyard_host_services_t* const host = get<services>();
  char message[160];
  const int size = std::snprintf(message, sizeof message, "injected fault: %s, call %lld; do not ask for it",
                                 kNames[which], static_cast<long long>(call));
  return host->status_create(host->host, code, message, static_cast<size_t>(size));
}
halyard_status_t retain(halyard_status_t status) { return services->status_retain(services->host, status); }

void count(FaultyHandle kind, int64_t change) {
  const std::lock_guard lock(mutex);
  live_handles[kind] += change;
}

// A lost device still answers, and can be opened again.
bool works_without_device(int which) {
  return which == FAULTY_initialize || which == FAULTY_enumerate_devices || which == FAULTY_device_open ||
         which == FAULTY_device_properties;
}

// Faults from outside, for programs that cannot use the controls: see faulty_driver.h.
Fault asked_from_outside(int which) {
  const char* const variable = which == FAULTY_queue_submit  ? kLoseVariable
                               : which == FAULTY_device_open ? kRefuseVariable
                                                             : nullptr;
  const char* const file = variable ? std::getenv(variable) : nullptr;
  if (!file) return {};
  if (which == FAULTY_queue_submit && ::unlink(file) == 0) return {which, FAULTY_LOSE_DEVICE, 0, 0};
  if (which == FAULTY_device_open && ::access(file, F_OK) == 0)
    return {which, FAULTY_REFUSE, 0, HALYARD_UNAVAILABLE};
  return {};
}

// `device` is null if the function has none.
Fault strike(int which, halyard_driver_device_t device = nullptr) {
  const Fault outside = asked_from_outside(which);
  const std::lock_guard lock(mutex);
  ++counts[which];
  const bool is_at =
      fault.at > 0 ? fault.at == counts[which] : fault.at == 0 || counts[which] % -fault.at == 0;
  if (fault.function == which && is_at) {
    ++struck;
    return fault;
  }
  if (outside.kind != FAULTY_NOTHING) {
    ++struck;
    return outside;
  }
  if (lost.contains(device) && !works_without_device(which))
    return {which, FAULTY_REFUSE, 0, HALYARD_UNAVAILABLE};
  return {};
}

template <typename... A>
halyard_driver_device_t device_of(const std::tuple<A...>& arguments) {
  using First = std::tuple_element_t<0, std::tuple<A...>>;
  if constexpr (std::is_same_v<First, halyard_driver_device_t>) {
    return std::get<0>(arguments);
  } else {
    return nullptr;
  }
}

// ---- Calls that come late

void late_thread() {
  std::unique_lock lock(mutex);
  while (true) {
    late_changed.wait(lock, [] { return !late_calls.empty(); });
    const std::function<void()> call = std::move(late_calls.front());
    late_calls.pop_front();
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    call();
    lock.lock();
    --late_pending;
    late_changed.notify_all();
  }
}

void call_late(std::function<void()> call) {
  static const bool started = [] {
    std::thread(late_thread).detach();
    return true;
  }();
  static_cast<void>(started);
  const std::lock_guard lock(mutex);
  ++late_pending;
  late_calls.push_back(std::move(call));
  late_changed.notify_all();
}

void forget(const LateSubscriber* record) {
  const std::lock_guard lock(mutex);
  late_subscribers.remove_if([record](const LateSubscriber& each) { return &each == record; });
}

void completed_late(void* user, halyard_status_t status) {
  auto* work = static_cast<LateWork*>(user);
  call_late([work, status] {
    work->completed(work->user, status);
    delete work;
  });
}

void subscriber_late(void* user, halyard_status_t status) {
  auto* record = static_cast<LateSubscriber*>(user);
  call_late([record, status] {
    const LateSubscriber called = *record;
    forget(record);
    called.subscriber(called.user, status);
  });
}

// ---- Faults

void fail_semaphore(halyard_driver_semaphore_t semaphore, int which) {
  inner.semaphore_fail(semaphore, failure(which, HALYARD_DATA_LOSS));
}

void destroy_semaphore(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore) {
  count(FAULTY_SEMAPHORE, -1);
  {
    std::unique_lock lock(mutex);
    Timeline& timeline = timelines[semaphore];
    if (timeline.pinned) {
      timeline.doomed = true;
      return;
    }
    timelines.erase(semaphore);
  }
  inner.semaphore_destroy(device, semaphore);
}

// Fails all semaphores of the device. One after another, because callbacks may create and destroy semaphores.
void lose_device(halyard_driver_device_t device, halyard_status_t why) {
  std::unique_lock lock(mutex);
  lost.insert(device);
  while (true) {
    const auto next = std::ranges::find_if(timelines, [device](const auto& each) {
      return each.second.device == device && !each.second.failed;
    });
    if (next == timelines.end()) return;
    const halyard_driver_semaphore_t semaphore = next->first;
    next->second.failed = next->second.pinned = true;
    lock.unlock();
    inner.semaphore_fail(semaphore, retain(why));
    lock.lock();
    Timeline& timeline = timelines[semaphore];
    timeline.pinned = false;
    if (!timeline.doomed) continue;
    timelines.erase(semaphore);
    lock.unlock();
    inner.semaphore_destroy(device, semaphore);
    lock.lock();
  }
}

void distort(halyard_memory_info_t* info, const Fault& planted) {
  if (planted.code == 0) info->size = info->size > 0 ? info->size - 1 : 0;
  if (planted.code == 1) info->memory_type = 0;
  if (planted.code == 2) info->usage = 0;
}

void distort(halyard_device_properties_t* properties, int32_t how) {
  if (how == 0) properties->memory_alignment = 0;
  if (how == 1) properties->memory_alignment = 3;
  if (how == 2) properties->queue_count = 0;
  if (how == 3) properties->queue_count = 65;
  if (how == 4) properties->operations = 0;
  if (how == 5) properties->import_alignment = 3;
}

void distort(halyard_function_info_t* info, int32_t how) {
  if (how == 0) info->name = {nullptr, 5};
  if (how == 1) info->name.size = SIZE_MAX;
  if (how == 2) info->name = {kNotText, sizeof kNotText - 1};
}

// Called after a successful call: counts it and injects invalid answers.
template <int kWhich, typename Arguments>
void after(const Fault& now, const Arguments& arguments) {
  const bool nonsense = now.kind == FAULTY_NONSENSE;
  if constexpr (kWhich == FAULTY_device_open) count(FAULTY_DEVICE, 1);
  if constexpr (kWhich == FAULTY_device_properties)
    if (nonsense) distort(std::get<1>(arguments), now.code);
  if constexpr (kWhich == FAULTY_memory_allocate) {
    count(FAULTY_MEMORY, 1);
    if (nonsense) distort(std::get<3>(arguments), now);
  }
  if constexpr (kWhich == FAULTY_memory_import) {
    count(FAULTY_MEMORY, 1);
    if (nonsense) distort(std::get<4>(arguments), now);
  }
  if constexpr (kWhich == FAULTY_semaphore_create) {
    count(FAULTY_SEMAPHORE, 1);
    const std::lock_guard lock(mutex);
    timelines[*std::get<2>(arguments)].device = std::get<0>(arguments);
  }
  if constexpr (kWhich == FAULTY_executable_create) count(FAULTY_EXECUTABLE, 1);
  if constexpr (kWhich == FAULTY_command_list_create) count(FAULTY_LIST, 1);
  if constexpr (kWhich == FAULTY_executable_function_info)
    if (nonsense) distort(std::get<2>(arguments), now.code);
}

// ---- The table

// Most functions: count, then inject a fault or call the wrapped driver's function.
template <int kWhich, auto kEntry>
struct Forward;
template <int kWhich, typename R, typename... A, R (*halyard_driver_table_t::*kEntry)(A...)>
struct Forward<kWhich, kEntry> {
  static R call(A... arguments) {
    const std::tuple<A...> all(arguments...);
    const Fault now = strike(kWhich, device_of(all));
    if constexpr (std::is_same_v<R, halyard_status_t>) {
      using First = std::tuple_element_t<0, std::tuple<A...>>;
      if (now.kind == FAULTY_REFUSE) return failure(kWhich, now.code);
      if (now.kind == FAULTY_UNTOUCHED) return nullptr;
      if (now.kind == FAULTY_LOSE_DEVICE) {
        const halyard_status_t why = failure(kWhich, HALYARD_UNAVAILABLE);
        if constexpr (std::is_same_v<First, halyard_driver_device_t>) lose_device(std::get<0>(all), why);
        return why;
      }
      if constexpr (std::is_same_v<First, halyard_driver_semaphore_t>)
        if (now.kind == FAULTY_FAIL_SEMAPHORE) fail_semaphore(std::get<0>(all), kWhich);
      const halyard_status_t status = (inner.*kEntry)(arguments...);
      if (!status) after<kWhich>(now, all);
      return status;
    } else {
      return (inner.*kEntry)(arguments...);
    }
  }
};

halyard_status_t initialize(const halyard_driver_init_args_t* args, halyard_driver_instance_t* instance) {
  {
    const std::lock_guard lock(mutex);
    services = args->services;
    instances.emplace_back(nullptr, args->services);  // until the instance exists or has failed
  }
  const halyard_status_t status =
      Forward<FAULTY_initialize, &halyard_driver_table_t::initialize>::call(args, instance);
  const std::lock_guard lock(mutex);
  if (!status && *instance) {
    instances.back().first = *instance;
    ++live_handles[FAULTY_INSTANCE];
    return status;
  }
  instances.pop_back();
  services = instances.empty() ? nullptr : instances.back().second;
  return status;
}

void shutdown(halyard_driver_instance_t* instance) {
  if (!instance || !*instance) return;
  const halyard_driver_instance_t ended = *instance;
  inner.shutdown(instance);
  const std::lock_guard lock(mutex);
  std::erase_if(instances, [ended](const auto& each) { return each.first == ended; });
  services = instances.empty() ? nullptr : instances.back().second;
  --live_handles[FAULTY_INSTANCE];
}

halyard_status_t enumerate_devices(halyard_driver_instance_t instance, uint32_t capacity,
                                   halyard_device_info_t* infos, uint32_t* count) {
  const Fault now = strike(FAULTY_enumerate_devices);
  if (now.kind == FAULTY_REFUSE) return failure(FAULTY_enumerate_devices, now.code);
  if (now.kind == FAULTY_UNTOUCHED) return nullptr;
  static_cast<void>(instance);
  *count = 1;
  if (capacity > 0) {
    infos[0].kind = "faulty";
    infos[0].path = "";
    infos[0].name = "a device that fails";
  }
  if (now.kind != FAULTY_NONSENSE) return nullptr;
  if (now.code == 0) *count = capacity + 1;
  if (now.code == 1 && capacity > 0) infos[0].kind = infos[0].path = infos[0].name = nullptr;
  if (now.code == 2 && capacity > 0) infos[0].name = kNotText;
  if (now.code == 3) *count = UINT32_MAX;
  return nullptr;
}

halyard_status_t device_open(halyard_driver_instance_t instance, const halyard_device_open_args_t* args,
                             halyard_driver_device_t* device) {
  halyard_device_open_args_t given = *args;
  given.kind = {inner_kind.data(), inner_kind.size()};
  return Forward<FAULTY_device_open, &halyard_driver_table_t::device_open>::call(instance, &given, device);
}

void device_close(halyard_driver_device_t device) {
  strike(FAULTY_device_close);
  {
    const std::lock_guard lock(mutex);
    --live_handles[FAULTY_DEVICE];
    lost.erase(device);  // another device may get the same handle
  }
  inner.device_close(device);
}

template <int kWhich, FaultyHandle kHandle, auto kEntry, typename... A>
void destroy(A... arguments) {
  strike(kWhich);
  count(kHandle, -1);
  (inner.*kEntry)(arguments...);
}

void semaphore_destroy(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore) {
  strike(FAULTY_semaphore_destroy);
  destroy_semaphore(device, semaphore);
}

halyard_status_t semaphore_wait(halyard_driver_device_t device, const halyard_semaphore_wait_args_t* args) {
  const Fault now = strike(FAULTY_semaphore_wait, device);
  switch (now.kind) {
    case FAULTY_REFUSE:
      return failure(FAULTY_semaphore_wait, now.code);
    case FAULTY_UNTOUCHED:
      return nullptr;
    case FAULTY_LOSE_DEVICE: {
      const halyard_status_t why = failure(FAULTY_semaphore_wait, HALYARD_UNAVAILABLE);
      lose_device(device, why);
      return why;
    }
    case FAULTY_FAIL_SEMAPHORE:
      fail_semaphore(args->timepoints[0].semaphore, FAULTY_semaphore_wait);
      break;
    default:
      break;
  }
  return inner.semaphore_wait(device, args);
}

halyard_status_t semaphore_subscribe(halyard_driver_semaphore_t semaphore, uint64_t value,
                                     halyard_subscriber_fn subscriber, void* user) {
  using Plain = Forward<FAULTY_semaphore_subscribe, &halyard_driver_table_t::semaphore_subscribe>;
  LateSubscriber* record = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (late) record = &late_subscribers.emplace_back(LateSubscriber{semaphore, subscriber, user});
  }
  if (!record) return Plain::call(semaphore, value, subscriber, user);
  const halyard_status_t status = Plain::call(semaphore, value, subscriber_late, record);
  if (!status) return nullptr;
  forget(record);
  return status;
}

int32_t semaphore_unsubscribe(halyard_driver_semaphore_t semaphore, halyard_subscriber_fn subscriber,
                              void* user) {
  strike(FAULTY_semaphore_unsubscribe);
  LateSubscriber* record = nullptr;
  {
    const std::lock_guard lock(mutex);
    for (LateSubscriber& each : late_subscribers)
      if (each.semaphore == semaphore && each.subscriber == subscriber && each.user == user) record = &each;
  }
  if (!record) return inner.semaphore_unsubscribe(semaphore, subscriber, user);
  if (inner.semaphore_unsubscribe(semaphore, subscriber_late, record) == 0) return 0;
  forget(record);
  return 1;
}

void executable_grade(halyard_driver_device_t device, halyard_text_t format, const void* data, uint64_t size,
                      halyard_executable_grade_t* grade) {
  const Fault now = strike(FAULTY_executable_grade, device);
  if (now.kind == FAULTY_UNTOUCHED) return;
  inner.executable_grade(device, format, data, size, grade);
  if (now.kind != FAULTY_NONSENSE) return;
  if (now.code == 0) {
    grade->grade = HALYARD_GRADE_NO;
    std::memset(grade->reason, 'x', sizeof grade->reason);
  }
  if (now.code == 1) grade->grade = 77;
  if (now.code == 2) {
    grade->grade = HALYARD_GRADE_NO;
    std::memcpy(grade->reason, kNotText, sizeof kNotText);
  }
}

uint32_t executable_function_count(halyard_driver_executable_t executable) {
  const Fault now = strike(FAULTY_executable_function_count);
  if (now.kind == FAULTY_NONSENSE) return UINT32_MAX;
  return inner.executable_function_count(executable);
}

// Reports a failure of work that was not run.
halyard_status_t fail_work(halyard_driver_device_t device, const halyard_submission_t& submission,
                           const Fault& now) {
  const bool loses = now.kind == FAULTY_LOSE_DEVICE;
  const halyard_operation_t& operation = *submission.operation;
  if (operation.kind == HALYARD_OPERATION_ALLOCA) {
    const halyard_operation_alloca_t& asked = operation.alloca_;
    if (const halyard_status_t status =
            inner.memory_allocate(device, asked.request, asked.memory, asked.info))
      return status;
    count(FAULTY_MEMORY, 1);
  }
  const halyard_status_t why = failure(FAULTY_queue_submit, loses ? HALYARD_UNAVAILABLE : now.code);
  for (uint32_t i = 0; i < submission.signal_count && now.kind != FAULTY_COMPLETE_ONLY; ++i)
    inner.semaphore_fail(submission.signals[i].semaphore, retain(why));
  if (loses) lose_device(device, why);
  submission.completed(submission.completed_user, why);
  return nullptr;
}

halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* asked) {
  const Fault now = strike(FAULTY_queue_submit, device);
  if (now.kind == FAULTY_REFUSE) return failure(FAULTY_queue_submit, now.code);
  halyard_submission_t submission = *asked;
  LateWork* work = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (late) work = new LateWork{asked->completed, asked->completed_user};
  }
  if (work) {
    submission.completed = completed_late;
    submission.completed_user = work;
  }
  const bool fails =
      now.kind == FAULTY_LOSE_DEVICE || now.kind == FAULTY_FAIL_WORK || now.kind == FAULTY_COMPLETE_ONLY;
  // Read before the work runs, because `completed` may free the submission's data.
  const bool gives_memory = submission.operation->kind == HALYARD_OPERATION_ALLOCA;
  const halyard_operation_alloca_t given =
      gives_memory ? submission.operation->alloca_ : halyard_operation_alloca_t{};
  halyard_driver_memory_t unused = nullptr;
  halyard_operation_t operation = *submission.operation;
  if (gives_memory && now.kind == FAULTY_UNTOUCHED) {
    operation.alloca_.memory = &unused;
    submission.operation = &operation;
  }
  const halyard_status_t status =
      fails ? fail_work(device, submission, now) : inner.queue_submit(device, &submission);
  if (status) {
    delete work;
    return status;
  }
  if (!gives_memory || fails) return nullptr;
  if (unused) {
    inner.memory_free(device, unused);
    return nullptr;
  }
  count(FAULTY_MEMORY, 1);
  if (now.kind == FAULTY_NONSENSE) distort(given.info, now);
  return nullptr;
}

template <int kWhich, auto kEntry>
void fill_in() {
  if (inner.*kEntry) table.*kEntry = Forward<kWhich, kEntry>::call;
}

void fill_table() {
  table = {};
  table.struct_size = sizeof table;
#define HALYARD_DRIVER_FUNCTION(name, mandatory) fill_in<FAULTY_##name, &halyard_driver_table_t::name>();
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
  using Table = halyard_driver_table_t;
  table.initialize = initialize;
  table.shutdown = shutdown;
  table.enumerate_devices = enumerate_devices;
  table.device_open = device_open;
  table.device_close = device_close;
  table.memory_free = destroy<FAULTY_memory_free, FAULTY_MEMORY, &Table::memory_free>;
  table.semaphore_destroy = semaphore_destroy;
  table.semaphore_wait = semaphore_wait;
  table.semaphore_subscribe = semaphore_subscribe;
  table.semaphore_unsubscribe = semaphore_unsubscribe;
  table.executable_grade = executable_grade;
  table.executable_destroy =
      destroy<FAULTY_executable_destroy, FAULTY_EXECUTABLE, &Table::executable_destroy>;
  table.executable_function_count = executable_function_count;
  table.command_list_destroy =
      destroy<FAULTY_command_list_destroy, FAULTY_LIST, &Table::command_list_destroy>;
  table.queue_submit = queue_submit;
}

// ---- Controls

void wrap(const char* path, const char* kind) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto negotiate = reinterpret_cast<halyard_driver_negotiate_fn>(
      library ? ::dlsym(library, HALYARD_DRIVER_NEGOTIATE_SYMBOL) : nullptr);
  const halyard_driver_request_t request = {
      sizeof request, HALYARD_DRIVER_ABI_V1, HALYARD_DRIVER_ABI_V1, HALYARD_SANITIZER_KIND, "faulty",
      nullptr};
  halyard_driver_reply_t reply = {};
  reply.struct_size = sizeof reply;
  if (!negotiate || negotiate(&request, &reply) == 0) {
    std::fprintf(stderr, "faulty driver: cannot wrap '%s': %s\n", path,
                 library ? reply.refusal : ::dlerror());
    std::abort();
  }
  inner = {};
  std::memcpy(&inner, reply.table, std::min<size_t>(reply.table->struct_size, sizeof inner));
  inner_kind = kind;
  fill_table();
}

const FaultyControls controls = {
    .wrap = wrap,
    .reset =
        [] {
          const std::lock_guard lock(mutex);
          fault = {};
          counts = {};
          struck = 0;
          lost.clear();
          late = false;
        },
    .inject =
        [](int function, int kind, int64_t at, int32_t code) {
          const std::lock_guard lock(mutex);
          fault = {function, kind, at, code};
        },
    .calls = [](int function) { return get<counts>()[static_cast<size_t>(function)]; },
    .injected = get<struck>,
    .live = [](int handle) { return get<live_handles>()[static_cast<size_t>(handle)]; },
    .be_late =
        [](int32_t is_late) {
          const std::lock_guard lock(mutex);
          late = is_late != 0;
        },
    .await_late_calls =
        [] {
          std::unique_lock lock(mutex);
          late_changed.wait(lock, [] { return late_pending == 0; });
        },
};

const halyard_driver_kind_t kinds[] = {{"faulty", "another driver, with faults; for tests"}};

}  // namespace

extern "C" HALYARD_DRIVER_EXPORT const FaultyControls* faulty_driver_controls() { return &controls; }

int32_t halyard_driver_negotiate(const halyard_driver_request_t*, halyard_driver_reply_t* reply) {
  if (const char* const text = inner.initialize ? nullptr : std::getenv(kWrapVariable)) {
    const std::string asked = text;  // "KIND=PATH"
    const size_t equals = asked.find('=');
    if (equals != std::string::npos) wrap(asked.substr(equals + 1).c_str(), asked.substr(0, equals).c_str());
  }
  if (!inner.initialize) {
    std::snprintf(reply->refusal, sizeof reply->refusal, "no driver is wrapped");
    return 0;
  }
  reply->abi_version = HALYARD_DRIVER_ABI_V1;
  reply->table = &table;
  reply->kinds = kinds;
  reply->kind_count = 1;
  return 1;
}
