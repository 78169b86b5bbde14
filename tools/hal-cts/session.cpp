// An instance and its device, semaphores, queue work, lists and executables. Memory: session_memory.cpp.
#include "session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

#include "cts_flags.h"
#include "traced_table.h"

namespace halyard::cts {

int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Session::Session(std::string driver, Target target, SessionOptions options, Sink sink)
    : Checks(std::move(sink)),
      driver_(std::move(driver)),
      target_(std::move(target)),
      options_(std::move(options)),
      services_(std::make_shared<Services>(*this)) {
  set_case_log(options_.case_log);
}

Session::Session(Session& first)
    : Checks([&first](const Problem& it) { first.problem(it.rule, it.what, it.expected, it.found); }),
      driver_(first.driver_),
      target_(first.target_),
      options_(first.options_),
      services_(first.services_) {
  set_case_log(options_.case_log);
}

void Session::start() {
  instance_ = initialize();
  start_device();
}

Session& Session::open_beside(Beside where) {
  Session& made = *beside_.emplace_back(new Session(*this));
  made.owns_instance_ = where == Beside::own_instance;
  made.instance_ = made.owns_instance_ ? made.initialize() : instance_;
  made.start_device();
  return made;
}

void Session::start_device() {
  device_ = open(instance_);
  properties_.struct_size = sizeof properties_;
  must("device_properties", "device_properties", take(table().device_properties(device_, &properties_)));
}

void Session::finish() {
  for (const std::unique_ptr<Session>& each : beside_) each->close();
  close();
  services_->check_none_left();
}

void Session::close() {
  if (device_) {
    for (Work& work : works_) static_cast<void>(end_of(work));
    for (List list : lists_) table_.command_list_destroy(device_, list);
    for (Executable executable : executables_) table_.executable_destroy(device_, executable);
    for (Semaphore semaphore : semaphores_) table_.semaphore_destroy(device_, semaphore);
    for (const Memory& memory : memories_) table_.memory_free(device_, memory.handle);
    table_.device_close(device_);
    device_ = nullptr;
  }
  if (instance_ && owns_instance_) {
    table_.shutdown(&instance_);
    check("R9", instance_ == nullptr, "the handle after shutdown", "null", "not null");
  }
  instance_ = nullptr;
  check_completions("when the device was closed");
}

halyard_driver_negotiate_fn Session::negotiator() {
  if (negotiator_) return negotiator_;
  const Entered entered(case_log(), "dlopen");
  const Result<halyard_driver_negotiate_fn> loaded = load_driver(driver_);
  if (!loaded) stop("R5", "the library", "that it can be loaded", loaded.error().text);
  return negotiator_ = *loaded;
}

const halyard_driver_table_t& Session::table() {
  if (table_.struct_size > 0) return table_;
  const halyard_driver_request_t request = plain_request();
  halyard_driver_reply_t reply = {.struct_size = sizeof reply};
  const halyard_driver_negotiate_fn negotiate = negotiator();
  const Entered entered(case_log(), HALYARD_DRIVER_NEGOTIATE_SYMBOL);
  if (negotiate(&request, &reply) == 0 || !reply.table)
    stop("R6", "negotiation with a host of version 1", "agreement and a table",
         fmt::format("'{}'", reply.refusal));
  // Entries that an older driver does not have stay null.
  std::memcpy(&table_, reply.table, std::min<size_t>(reply.table->struct_size, sizeof table_));
  if (case_log()) table_ = traced(table_, *case_log());
  return table_;
}

halyard_driver_instance_t Session::initialize() {
  halyard_driver_init_args_t args = {
      .struct_size = sizeof args, .abi_version = HALYARD_DRIVER_ABI_V1, .services = &services_->table()};
  halyard_driver_instance_t instance = nullptr;
  must("initialize", "initialize", take(table().initialize(&args, &instance)));
  std::memset(static_cast<void*>(&args), 0xDD, sizeof args);
  if (!instance) stop("initialize", "the instance after initialize succeeded", "a handle", "null");
  return instance;
}

halyard_driver_device_t Session::open(halyard_driver_instance_t instance) {
  std::string kind = target_.kind, path = target_.path;
  auto strings = target_.options;
  std::vector<halyard_option_t> options;
  for (const auto& [key, value] : strings) options.push_back({text(key), text(value)});
  const halyard_device_open_args_t args = {.struct_size = sizeof args,
                                           .option_count = static_cast<uint32_t>(options.size()),
                                           .kind = text(kind),
                                           .path = text(path),
                                           .options = options.data()};
  halyard_driver_device_t device = nullptr;
  must("device_open", fmt::format("device_open of {}", target_.uri()),
       take(table().device_open(instance, &args, &device)));
  std::ranges::fill(kind, 'X');
  std::ranges::fill(path, 'X');
  if (!device) stop("device_open", "the device after device_open succeeded", "a handle", "null");
  return device;
}

void Session::need_operation(uint32_t operation, const char* name) const {
  if (!does(operation))
    unsupported(fmt::format("bit {} ({}) of the device's operations is not set", operation, name));
}

uint64_t Session::all_queues() const {
  return properties_.queue_count >= 64 ? ~uint64_t{0} : (uint64_t{1} << properties_.queue_count) - 1;
}

// ---- Semaphores

int64_t Session::patience() const { return now_ns() + options_.patience_ns; }

Semaphore Session::semaphore(uint64_t initial) {
  Semaphore made = nullptr;
  must("semaphore_create", "semaphore_create", take(table().semaphore_create(device_, initial, &made)));
  if (!made) stop("semaphore_create", "the semaphore after semaphore_create succeeded", "a handle", "null");
  const std::lock_guard lock(mutex_);
  semaphores_.push_back(made);
  return made;
}

void Session::destroy(Semaphore semaphore) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(semaphores_, semaphore);
  }
  table_.semaphore_destroy(device_, semaphore);
}

Outcome Session::signal(Semaphore semaphore, uint64_t value) {
  return take(table_.semaphore_signal(semaphore, value));
}

void Session::fail(Semaphore semaphore, halyard_status_code_t code, std::string_view message) {
  table_.semaphore_fail(semaphore, services_->give(code, message));
}

Outcome Session::query(Semaphore semaphore, uint64_t* value) {
  return take(table_.semaphore_query(semaphore, value));
}

void Session::value_is(std::string_view rule, std::string_view what, Semaphore semaphore, uint64_t expected) {
  uint64_t value = ~uint64_t{0};
  if (succeeded(rule, what, query(semaphore, &value))) equal(rule, what, expected, value);
}

void Session::failed_with(std::string_view rule, std::string_view what, Semaphore semaphore,
                          halyard_status_code_t code, std::string_view message) {
  uint64_t value = 0x5EED;
  const Outcome outcome = query(semaphore, &value);
  refused_naming(rule, what, code, message, outcome);
  if (!outcome.ok()) equal<uint64_t>("R83", "*value of a query of a failed semaphore", 0x5EED, value);
}

Outcome Session::wait(const Points& points, bool any, int64_t deadline_ns) {
  const halyard_semaphore_wait_args_t args = {.struct_size = sizeof args,
                                              .any = any,
                                              .timepoint_count = static_cast<uint32_t>(points.size()),
                                              .timepoints = points.data(),
                                              .deadline_ns = deadline_ns};
  return take(table_.semaphore_wait(device_, &args));
}

// ---- Queue work

void Session::completed(void* user, halyard_status_t status) {
  Work& work = *static_cast<Work*>(user);
  Session& self = *work.session;
  Outcome outcome = self.take(status);
  if (work.calls == 0 && work.then) work.then(work.user);
  const std::lock_guard lock(self.mutex_);
  if (work.calls == 0) work.outcome = std::move(outcome);
  ++work.calls;
  self.completion_.notify_all();
}

Outcome Session::try_submit(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                            Work** work, uint64_t affinity, void (*then)(void*), void* user) {
  Work* made = nullptr;
  {
    const std::lock_guard lock(mutex_);
    made = &works_.emplace_back();
  }
  made->session = this;
  made->then = then;
  made->user = user;
  // Each borrowed argument is in a separate block, which is overwritten when the call returns.
  Points borrowed_waits = waits, borrowed_signals = signals;
  Table bindings;
  halyard_operation_t borrowed = operation;
  if (operation.kind == HALYARD_OPERATION_EXECUTE && operation.execute.binding_count > 0) {
    bindings.assign(operation.execute.bindings, operation.execute.bindings + operation.execute.binding_count);
    borrowed.execute.bindings = bindings.data();
  }
  halyard_submission_t submission = {.struct_size = sizeof submission,
                                     .wait_count = static_cast<uint32_t>(waits.size()),
                                     .signal_count = static_cast<uint32_t>(signals.size()),
                                     .affinity = affinity ? affinity : all_queues(),
                                     .waits = borrowed_waits.data(),
                                     .signals = borrowed_signals.data(),
                                     .operation = &borrowed,
                                     .completed = completed,
                                     .completed_user = made,
                                     .stop = stop_word_};
  Outcome outcome = take(table_.queue_submit(device_, &submission));
  const auto spoil = [](auto& array) {
    if (!array.empty()) std::memset(static_cast<void*>(array.data()), 0xDD, array.size() * sizeof array[0]);
  };
  spoil(borrowed_waits);
  spoil(borrowed_signals);
  spoil(bindings);
  std::memset(static_cast<void*>(&borrowed), 0xDD, sizeof borrowed);
  std::memset(static_cast<void*>(&submission), 0xDD, sizeof submission);
  if (outcome.ok()) {
    if (work) *work = made;
    return outcome;
  }
  equal("R60", "calls of completed for a submission that was refused", 0, made->calls.load());
  made->session = nullptr;  // no call is outstanding
  return outcome;
}

Work& Session::submit(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                      uint64_t affinity, void (*then)(void*), void* user) {
  Work* work = nullptr;
  must("queue_submit", fmt::format("queue_submit of operation {}", operation.kind),
       try_submit(operation, waits, signals, &work, affinity, then, user));
  return *work;
}

Outcome Session::end_of(Work& work) {
  if (!work.session) return {};
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.patience_ns);
  std::unique_lock lock(mutex_);
  if (!completion_.wait_until(lock, until, [&] { return work.calls > 0; })) {
    lock.unlock();
    stop("R60", "work that was accepted, and is due", "completed is called",
         fmt::format("it was not called within {} s", options_.patience_ns / 1'000'000'000));
  }
  return work.outcome;
}

void Session::check_completions(const char* when) {
  for (const Work& work : works_)
    if (work.session &&
        !equal("R60", fmt::format("calls of completed for one submission, {}", when), 1, work.calls.load()))
      return;
}

// ---- Command lists

Outcome Session::try_list(const Recording& recording, uint32_t binding_count, bool one_shot, List* list) {
  halyard_command_list_args_t args = recording.args(binding_count);
  args.one_shot = one_shot;
  args.affinity = all_queues();
  Outcome outcome = take(table_.command_list_create(device_, &args, list));
  std::memset(static_cast<void*>(&args), 0xDD, sizeof args);
  if (outcome.ok()) {
    const std::lock_guard lock(mutex_);
    lists_.push_back(*list);
  }
  return outcome;
}

List Session::list(Recording recording, uint32_t binding_count, bool one_shot) {
  Recording* kept = nullptr;
  {
    const std::lock_guard lock(mutex_);
    kept = &recordings_.emplace_back(std::move(recording));
  }
  List made = nullptr;
  must("command_list_create", "command_list_create", try_list(*kept, binding_count, one_shot, &made));
  return made;
}

void Session::destroy(List list) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(lists_, list);
  }
  table_.command_list_destroy(device_, list);
}

Outcome Session::execute(List list, const Table& bindings) { return run(execute_operation(list, bindings)); }

void Session::must_execute(Recording recording, const Table& bindings) {
  const List made = list(std::move(recording), static_cast<uint32_t>(bindings.size()), true);
  must("R60", "execution of a command list", execute(made, bindings));
  destroy(made);
}

// ---- Executables

Outcome Session::try_executable(std::string_view format, std::span<const uint8_t> data,
                                Executable* executable) {
  std::string borrowed(format);
  halyard_executable_args_t args = {.struct_size = sizeof args,
                                    .format = text(borrowed),
                                    .data = data.data(),
                                    .data_size = data.size(),
                                    .affinity = all_queues()};
  Outcome outcome = take(table_.executable_create(device_, &args, executable));
  std::ranges::fill(borrowed, 'X');
  std::memset(static_cast<void*>(&args), 0xDD, sizeof args);
  if (outcome.ok()) {
    const std::lock_guard lock(mutex_);
    executables_.push_back(*executable);
  }
  return outcome;
}

Executable Session::executable(const Program& program) {
  Executable made = nullptr;
  must("executable_create", fmt::format("executable_create of {} ({})", program.format, program.origin),
       try_executable(program.format, program.data, &made));
  return made;
}

void Session::destroy(Executable executable) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(executables_, executable);
  }
  table_.executable_destroy(device_, executable);
}

halyard_executable_grade_t Session::grade(std::string_view format, std::span<const uint8_t> data) {
  halyard_executable_grade_t grade = {.struct_size = sizeof grade, .grade = 0xEEEEEEEE};
  std::memset(grade.reason, 'x', sizeof grade.reason);
  table_.executable_grade(device_, text(format), data.data(), data.size(), &grade);
  const bool terminated = std::memchr(grade.reason, 0, sizeof grade.reason) != nullptr;
  check("R90", terminated, "the reason of a grade", "terminated text", "256 bytes without a 0");
  if (!terminated) grade.reason[sizeof grade.reason - 1] = 0;
  check("R90", grade.grade <= HALYARD_GRADE_NATIVE, fmt::format("the grade of '{}'", format), "0 to 3",
        fmt::format("{}", grade.grade));
  return grade;
}

std::span<const Program> Session::all_programs() const {
  return options_.programs ? std::span<const Program>(*options_.programs) : std::span<const Program>();
}

std::vector<const Program*> Session::programs() {
  std::vector<const Program*> known;
  std::string why;
  for (const Program& program : all_programs()) {
    const halyard_executable_grade_t judged = grade(program.format, program.data);
    if (judged.grade >= HALYARD_GRADE_LOADABLE) {
      known.push_back(&program);
    } else {
      why += fmt::format("{}'{}' ({}): {}", why.empty() ? "" : "; ", program.format, program.origin,
                         judged.reason);
    }
  }
  if (known.empty())
    unsupported(
        fmt::format("executable_grade says that no program at hand runs here: {}; give one with "
                    "{}=FORMAT=FILE",
                    why, flag::executable));
  return known;
}

}  // namespace halyard::cts
