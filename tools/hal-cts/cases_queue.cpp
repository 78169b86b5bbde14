// Queue work: when it runs, in which order, and that its completion is reported once.
#include <pthread.h>

#include <atomic>
#include <cstring>

#include "bytes.h"
#include "cases.h"
#include "threads.h"

namespace halyard::cts {

void queue_signals_and_completes(Session& s) {
  const Semaphore semaphore = s.semaphore();
  Work& work = s.submit(barrier_operation(), {}, {{semaphore, 3}});
  s.succeeded("R63", "work without waits", s.end_of(work));
  s.value_is("R63", "its signal when completed was called", semaphore, 3);
  Work& silent = s.submit(barrier_operation());
  s.succeeded("R60", "work without waits and signals", s.end_of(silent));
}

void queue_waits_before_signals(Session& s) {
  const Semaphore wait = s.semaphore(), signal = s.semaphore();
  Work& work = s.submit(barrier_operation(), {{wait, 2}}, {{signal, 1}});
  s.must("semaphore_signal", "signal of 1", s.signal(wait, 1));
  s.value_is("R60", "the signal of work that is not due", signal, 0);
  s.equal("R60", "calls of completed of work that is not due", 0, work.calls.load());
  s.must("semaphore_signal", "signal of 2", s.signal(wait, 2));
  s.succeeded("R67", "work that has become due", s.end_of(work));
  s.value_is("R63", "its signal when completed was called", signal, 1);
}

void queue_many_waits_and_signals(Session& s) {
  constexpr uint64_t kMany = 40;
  Points waits, signals;
  for (uint64_t i = 0; i < kMany; ++i) {
    waits.push_back({s.semaphore(), i + 1});
    signals.push_back({s.semaphore(), 2 * i + 1});
  }
  Work& work = s.submit(barrier_operation(), waits, signals);
  for (uint64_t i = 0; i < kMany; ++i) {
    const auto& [semaphore, value] = waits[(i * 7 + 3) % kMany];
    s.value_is("R60", fmt::format("a signal of work with {} of {} waits reached", i, kMany),
               signals[0].semaphore, 0);
    s.must("semaphore_signal", "signal", s.signal(semaphore, value));
  }
  s.succeeded("R60", "work whose waits are all reached", s.end_of(work));
  for (const auto& [semaphore, value] : signals) s.value_is("R63", "each of its signals", semaphore, value);

  const Semaphore twice = s.semaphore(), once = s.semaphore();
  Work& same = s.submit(barrier_operation(), {{twice, 1}, {twice, 2}}, {{once, 1}, {once, 2}});
  s.must("semaphore_signal", "signal", s.signal(twice, 1));
  s.must("semaphore_signal", "signal", s.signal(twice, 2));
  s.succeeded("R60", "work that waits for one semaphore twice", s.end_of(same));
  s.value_is("R63", "a semaphore that it signals twice", once, 2);
}

void queue_signals_that_change_nothing(Session& s) {
  const Semaphore ahead = s.semaphore(10);
  for (const uint64_t value : {10, 4}) {
    s.succeeded("R64", fmt::format("work that signals {} of a timeline at 10", value),
                s.end_of(s.submit(barrier_operation(), {}, {{ahead, value}})));
    s.value_is("R64", "that timeline afterwards", ahead, 10);
  }
}

void queue_chain_in_reverse(Session& s) {
  // Each submission waits for the one that is submitted after it.
  constexpr uint64_t kLength = 50;
  const Semaphore semaphore = s.semaphore();
  std::vector<Work*> works;
  for (uint64_t i = kLength; i >= 1; --i)
    works.push_back(&s.submit(barrier_operation(), {{semaphore, i}}, {{semaphore, i + 1}}));
  for (const Work* work : works)
    s.equal("R60", "calls of completed before the chain begins", 0, work->calls.load());
  s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
  for (Work* work : works)
    s.succeeded("R67", "work of a chain that was submitted in reverse", s.end_of(*work));
  s.value_is("R66", "the timeline after the chain", semaphore, kLength + 1);
}

void queue_long_chain(Session& s) {
  // If a driver runs each submission within the completion of the previous one, this thread's stack
  // overflows.
  constexpr uint64_t kLength = 5000;
  constexpr size_t kStack = size_t{512} << 10;  // bytes
  const Semaphore semaphore = s.semaphore();
  Work* last = nullptr;
  for (uint64_t i = 1; i <= kLength; ++i)
    last = &s.submit(barrier_operation(), {{semaphore, i}}, {{semaphore, i + 1}});
  struct Start {
    Session& s;
    Semaphore semaphore;
    Outcome outcome;
  } start = {s, semaphore, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread = {};
  const int error = pthread_create(
      &thread, &attributes,
      [](void* user) -> void* {
        auto& it = *static_cast<Start*>(user);
        it.outcome = it.s.signal(it.semaphore, 1);
        return nullptr;
      },
      &start);
  pthread_attr_destroy(&attributes);
  if (error != 0) s.stop("R67", "a thread of this case", "that it starts", std::strerror(error));
  pthread_join(thread, nullptr);
  s.must("semaphore_signal", "signal of 1 by a thread with a small stack", start.outcome);
  s.succeeded("R67", fmt::format("the last of a chain of {}", kLength), s.end_of(*last));
  s.value_is("R67", "the timeline after the chain", semaphore, kLength + 1);
}

void queue_order_of_writes(Session& s) {
  // Copies a word through a chain of memories. The submissions are shuffled; each must see the word that the
  // previous one in the chain wrote.
  constexpr uint64_t kLength = 40;
  const std::vector<uint8_t> contents = noise(16);
  std::vector<Memory> row = {s.allocate(contents)};
  for (uint64_t i = 0; i < kLength; ++i)
    row.push_back(s.allocate(std::vector<uint8_t>(16, 0), i % 2 ? kStaging : kDeviceLocal));
  const Semaphore semaphore = s.semaphore();
  std::vector<Work*> works;
  for (uint64_t i = 0; i < kLength; ++i) {
    const uint64_t step = (i * 17 + 5) % kLength;  // 17 and 40 are coprime
    const List list =
        s.list(Recording().copy(range(row[step].handle, 0, 16), range(row[step + 1].handle, 0, 16)));
    works.push_back(&s.submit(execute_operation(list, {}), {{semaphore, step + 1}}, {{semaphore, step + 2}}));
  }
  s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
  s.must("R67", "wait for a chain of copies", s.await(semaphore, kLength + 1));
  same_bytes(s, "R63", "the end of a row of copies, each after the other", contents, s.read(row.back()));
  for (Work* work : works) s.succeeded("R63", "a copy of the row", s.end_of(*work));
}

void queue_every_affinity(Session& s) {
  const Memory memory = s.allocate(std::vector<uint8_t>(64 * 4, 0));
  const uint32_t queues = s.properties().queue_count;
  for (uint32_t queue = 0; queue < queues; ++queue) {
    const Semaphore semaphore = s.semaphore();
    const List list =
        s.list(Recording().fill(range(memory.handle, 4 * queue, 4), 0x01010101 * (queue + 1), 4));
    s.submit(execute_operation(list, {}), {}, {{semaphore, 1}}, uint64_t{1} << queue);
    s.succeeded("R60", fmt::format("work on queue {} alone", queue), s.await(semaphore, 1));
    s.equal("R63", fmt::format("what was written on queue {}", queue), queue + 1,
            uint32_t{s.read(memory, 4 * queue, 1)[0]});
  }
  // Work of one queue waits for work of another queue.
  const Semaphore chain = s.semaphore();
  for (uint32_t i = 0; i < 2 * queues; ++i)
    s.submit(barrier_operation(), {{chain, 2 * queues - i}}, {{chain, 2 * queues - i + 1}},
             uint64_t{1} << i % queues);
  s.must("semaphore_signal", "signal", s.signal(chain, 1));
  s.succeeded("R66", "a chain over all queues", s.await(chain, 2 * queues + 1));
}

void queue_waits_of_another_device(Session& s) {
  halyard_driver_device_t other = s.open(s.instance());
  const auto made = [&] {
    Semaphore semaphore = nullptr;
    s.must("semaphore_create", "semaphore_create on another device",
           s.take(s.table().semaphore_create(other, 0, &semaphore)));
    return semaphore;
  };
  const Semaphore wait = made(), signal = made();
  Work& work = s.submit(barrier_operation(), {{wait, 1}}, {{signal, 1}});
  s.must("semaphore_signal", "signal", s.signal(wait, 1));
  s.succeeded("R20", "work that waits for a semaphore of another device of the instance", s.end_of(work));
  s.value_is("R20", "the semaphore of that device which it signals", signal, 1);
  for (const Semaphore semaphore : {wait, signal}) s.table().semaphore_destroy(other, semaphore);
  s.table().device_close(other);
}

void queue_undeclared_operations(Session& s) {
  const Semaphore wait = s.semaphore(), signal = s.semaphore();
  const halyard_memory_request_t request = s.request(64);
  halyard_memory_info_t info = {.struct_size = sizeof info};
  halyard_driver_memory_t memory = nullptr;
  const Memory target = s.allocate(64);
  uint32_t source = 0;
  for (uint32_t kind = HALYARD_OPERATION_BARRIER; kind <= HALYARD_OPERATION_EXECUTE; ++kind) {
    if (s.does(kind)) continue;
    halyard_operation_t operation = cts::operation(kind);
    if (kind == HALYARD_OPERATION_ALLOCA) operation.alloca_ = {&request, &memory, &info};
    if (kind == HALYARD_OPERATION_DEALLOCA) operation = dealloca_operation(target.handle);
    if (kind == HALYARD_OPERATION_FILL) operation = fill_operation(range(target.handle, 0, 4), 0, 4);
    if (kind == HALYARD_OPERATION_UPDATE) operation = update_operation(&source, range(target.handle, 0, 4));
    if (kind == HALYARD_OPERATION_COPY)
      operation = copy_operation(range(target.handle, 0, 4), range(target.handle, 4, 4));
    s.refused_naming("R68", fmt::format("operation {}, whose bit is not set", kind), HALYARD_UNIMPLEMENTED,
                     fmt::format("{}", kind), s.try_submit(operation, {}, {{signal, 1}}, nullptr));
  }
  for (const uint32_t kind : {100u, 0x80000000u})
    s.refused_naming("R14", fmt::format("operation {}, which version 1 does not have", kind),
                     HALYARD_UNIMPLEMENTED, fmt::format("{}", kind),
                     s.try_submit(cts::operation(kind), {{wait, 1}}, {{signal, 1}}, nullptr));
  s.must("semaphore_signal", "signal", s.signal(wait, 1));
  s.value_is("R60", "the signal of submissions that were refused", signal, 0);
}

void queue_newer_submissions(Session& s) {
  struct {
    halyard_submission_t submission;
    uint8_t later[64];
  } grown;
  struct {
    halyard_operation_t operation;
    uint8_t later[64];
  } grown_operation;
  std::memset(static_cast<void*>(&grown), 0xEE, sizeof grown);
  std::memset(static_cast<void*>(&grown_operation), 0xEE, sizeof grown_operation);
  const Semaphore wait = s.semaphore(), signal = s.semaphore();
  const Memory memory = s.allocate(std::vector<uint8_t>(64, 0));
  const List list = s.list(Recording().fill(slot(0, 0, 64), 0x22, 1), 1);
  const Table table = {{memory.handle, 0, 64}};
  grown_operation.operation = execute_operation(list, table);
  grown_operation.operation.struct_size = sizeof grown_operation;
  const halyard_timepoint_t waits[] = {{wait, 1}}, signals[] = {{signal, 1}};
  static std::atomic<int> calls;  // not on the stack, because a call may come late
  calls = 0;
  grown.submission = {
      .struct_size = sizeof grown,
      .wait_count = 1,
      .signal_count = 1,
      .affinity = s.all_queues(),
      .waits = waits,
      .signals = signals,
      .operation = &grown_operation.operation,
      .completed = [](void* user, halyard_status_t) { ++*static_cast<std::atomic<int>*>(user); },
      .completed_user = &calls};
  s.must("R11", "queue_submit of a newer host",
         s.take(s.table().queue_submit(s.device(), &grown.submission)));
  s.must("semaphore_signal", "signal", s.signal(wait, 1));
  s.must("R11", "wait for work of a newer host", s.await(signal, 1));
  same_bytes(s, "R11", "what it has written", std::vector<uint8_t>(64, 0x22), s.read(memory));
  for (int i = 0; i < 1000 && calls == 0; ++i)
    static_cast<void>(s.wait({{signal, 2}}, false, now_ns() + 1'000'000));
  s.equal("R60", "calls of its completed", 1, calls.load());
}

void queue_extensions(Session& s) {
  const halyard_extension_t may = extension(0), must = extension(1);
  const halyard_operation_t operation = barrier_operation();
  static std::atomic<int> calls;  // not on the stack, because a call may come late
  calls = 0;
  halyard_submission_t submission = {
      .struct_size = sizeof submission,
      .affinity = s.all_queues(),
      .operation = &operation,
      .completed = [](void* user, halyard_status_t) { ++*static_cast<std::atomic<int>*>(user); },
      .completed_user = &calls,
      .extensions = &must};
  s.refused_naming("R13", "queue_submit with an unknown extension that must be understood",
                   HALYARD_UNIMPLEMENTED, fmt::format("{}", kUnknownExtension),
                   s.take(s.table().queue_submit(s.device(), &submission)));
  s.equal("R60", "calls of completed of what was refused", 0, calls.load());
  const Semaphore semaphore = s.semaphore();
  const halyard_timepoint_t signals[] = {{semaphore, 1}};
  submission.signals = signals;
  submission.signal_count = 1;
  submission.extensions = &may;
  s.must("R13", "queue_submit with an unknown extension that need not be understood",
         s.take(s.table().queue_submit(s.device(), &submission)));
  s.must("R13", "wait for it", s.await(semaphore, 1));
  for (int i = 0; i < 1000 && calls == 0; ++i)
    static_cast<void>(s.wait({{semaphore, 2}}, false, now_ns() + 1'000'000));
  s.equal("R60", "calls of its completed", 1, calls.load());
}

void queue_completed_may_do_anything(Session& s) {
  struct Shared {
    Session& s;
    Semaphore mine, next, done;
    Memory memory;
    List list;
  } shared = {s, s.semaphore(), s.semaphore(), s.semaphore(), s.allocate(64), nullptr};
  shared.list = s.list(Recording().fill(range(shared.memory.handle, 0, 64), 1, 1));
  Work& work = s.submit(
      execute_operation(shared.list, {}), {}, {{shared.mine, 1}}, 0,
      [](void* user) {
        auto& it = *static_cast<Shared*>(user);
        until_stopped([&it] {
          // The driver does not use the objects of the submission any more [R65].
          it.s.destroy(it.list);
          it.s.free(it.memory);
          it.s.destroy(it.mine);
          it.s.succeeded("R32", "signal in completed", it.s.signal(it.next, 1));
          it.s.submit(barrier_operation(), {{it.next, 1}}, {{it.done, 1}});
          it.s.fail(it.s.semaphore(), HALYARD_ABORTED, "failed in completed");
        });
      },
      &shared);
  s.succeeded("R65", "work whose completed destroys what it named", s.end_of(work));
  s.succeeded("R32", "wait for the work that completed submitted", s.await(shared.done, 1));
}

void queue_flush(Session& s) {
  if (!s.table().queue_flush) unsupported("queue_flush is null");
  const Semaphore semaphore = s.semaphore();
  s.submit(barrier_operation(), {}, {{semaphore, 1}});
  s.succeeded("queue_flush", "queue_flush", s.take(s.table().queue_flush(s.device(), s.all_queues())));
  s.succeeded("R67", "work after a flush", s.await(semaphore, 1));
}

void queue_threads(Session& s) {
  // Each thread has its own chain, and counts in its own part of one memory.
  constexpr int kThreads = 8;
  constexpr uint64_t kEach = 100;
  const Memory memory = s.allocate(std::vector<uint8_t>(kThreads * 64, 0));
  at_once(kThreads, [&](int thread) {
    const Semaphore semaphore = s.semaphore();
    const auto at = static_cast<uint64_t>(thread) * 64;
    for (uint64_t i = 0; i < kEach; ++i) {
      const uint64_t step = kEach - i;  // in reverse order
      const List list =
          s.list(Recording().fill(range(memory.handle, at, 64), static_cast<uint32_t>(step), 1));
      s.submit(execute_operation(list, {}), {{semaphore, step}}, {{semaphore, step + 1}});
    }
    s.must("semaphore_signal", "signal", s.signal(semaphore, 1));
    s.must("R67", fmt::format("wait of thread {} for its chain", thread), s.await(semaphore, kEach + 1));
  });
  same_bytes(s, "R63", "what 8 threads have written", std::vector<uint8_t>(kThreads * 64, kEach),
             s.read(memory));
}

}  // namespace halyard::cts
