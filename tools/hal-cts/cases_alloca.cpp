// Memory that is allocated and deallocated in queue order.
#include "bytes.h"
#include "cases.h"

namespace halyard::cts {

namespace {

void need_alloca(Session& s) {
  if (!s.has(HALYARD_DEVICE_QUEUE_ALLOCA)) unsupported("the capability QUEUE_ALLOCA is not set");
}

Work& submit_fill(Session& s, const Memory& memory, uint32_t pattern, const Points& waits,
                  const Points& signals) {
  return s.submit(
      execute_operation(s.list(Recording().fill(range(memory.handle, 0, memory.size), pattern, 1)), {}),
      waits, signals);
}

}  // namespace

void alloca_handle_at_once(Session& s) {
  need_alloca(s);
  const Semaphore wait = s.semaphore(), signal = s.semaphore();
  for (const uint64_t size : {0, 1, 100, 65536}) {
    Work* work = nullptr;
    static_cast<void>(s.alloca_(size, {}, {}, &work));
    s.succeeded("R73", fmt::format("alloca of {} bytes", size), s.end_of(*work));
  }
  Work* work = nullptr;
  static_cast<void>(s.alloca_(100, {{wait, 1}}, {{signal, 1}}, &work));
  s.value_is("R60", "the signal of an alloca that is not due", signal, 0);
  s.must("semaphore_signal", "signal", s.signal(wait, 1));
  s.succeeded("R73", "the alloca when it is due", s.end_of(*work));
  s.value_is("R63", "its signal", signal, 1);
}

void alloca_bytes_in_queue_order(Session& s) {
  need_alloca(s);
  // All work is submitted before any of it can run: alloca, fill, copy out, dealloca.
  const Semaphore t = s.semaphore();
  const Memory transient = s.alloca_(1000, {{t, 1}}, {{t, 2}});
  Work& filled = submit_fill(s, transient, 0x3C, {{t, 2}}, {{t, 3}});
  const Memory result = s.allocate(std::vector<uint8_t>(1000, 0));
  const List copy = s.list(Recording().copy(slot(0, 0, 1000), range(result.handle, 0, 1000)), 1);
  Work& copied = s.submit(execute_operation(copy, {{transient.handle, 0, 1000}}), {{t, 3}}, {{t, 4}});
  Work& gone = s.submit(dealloca_operation(transient.handle), {{t, 4}}, {{t, 5}});
  s.must("semaphore_signal", "signal", s.signal(t, 1));
  s.must("R73", "wait for alloca, fill, copy and dealloca", s.await(t, 5));
  for (Work* work : {&filled, &copied, &gone}) s.succeeded("R73", "work on an alloca", s.end_of(*work));
  same_bytes(s, "R73", "what was copied out of an alloca", std::vector<uint8_t>(1000, 0x3C), s.read(result));
}

void alloca_use_before_its_turn(Session& s) {
  need_alloca(s);
  const Semaphore never = s.semaphore(), signal = s.semaphore(), other = s.semaphore();
  const Memory memory = s.alloca_(64, {{never, 1}}, {{signal, 1}});
  if (memory.visible()) {
    void* pointer = nullptr;
    const Outcome mapped = s.map(memory, HALYARD_MAP_READ, 0, 64, &pointer);
    s.refused("R73", "memory_map of an alloca before its turn", HALYARD_FAILED_PRECONDITION, mapped);
  }
  // A fill that does not wait for the alloca: the driver need not detect the error, but must not harm other
  // work.
  const Memory innocent = s.allocate(noise(256));
  const Outcome outcome = s.end_of(submit_fill(s, memory, 0, {}, {{other, 1}}));
  if (!outcome.ok())
    s.refused("R73", "a fill of an alloca before its turn", HALYARD_FAILED_PRECONDITION, outcome);
  same_bytes(s, "R73", "other memory", noise(256), s.read(innocent));
  s.must("semaphore_signal", "signal", s.signal(never, 1));
  s.must("R73", "wait for the alloca", s.await(signal, 1));
  s.succeeded("R73", "a fill when it is there", s.end_of(submit_fill(s, memory, 0x11, {}, {})));
  same_bytes(s, "R73", "its bytes", std::vector<uint8_t>(64, 0x11), s.read(memory));
}

void alloca_use_after_dealloca(Session& s) {
  need_alloca(s);
  const Semaphore t = s.semaphore();
  const Memory memory = s.alloca_(64, {}, {{t, 1}});
  s.submit(dealloca_operation(memory.handle), {{t, 1}}, {{t, 2}});
  s.must("R73", "wait for the dealloca", s.await(t, 2));
  const Memory innocent = s.allocate(noise(64));
  const Outcome outcome = s.end_of(submit_fill(s, memory, 0, {}, {}));
  if (!outcome.ok())
    s.refused("R73", "a fill of an alloca after its dealloca", HALYARD_FAILED_PRECONDITION, outcome);
  same_bytes(s, "R73", "memory that was allocated after the dealloca", noise(64), s.read(innocent));
  // The handle is valid until memory_free, which the session calls, even if the memory is not mapped any
  // more.
  s.free(memory);
}

void alloca_failed_waits(Session& s) {
  need_alloca(s);
  const Semaphore failed = s.semaphore(), signal = s.semaphore(), good = s.semaphore(), after = s.semaphore();
  s.fail(failed, HALYARD_ABORTED, "no alloca today");
  Work* work = nullptr;
  const Memory never = s.alloca_(64, {{failed, 1}}, {{signal, 1}}, &work);
  s.refused_naming("R62", "an alloca whose wait has failed", HALYARD_ABORTED, "no alloca today",
                   s.end_of(*work));
  s.failed_with("R62", "its signal", signal, HALYARD_ABORTED, "no alloca today");
  s.free(never);  // a handle that never had bytes

  // A skipped dealloca leaves the bytes unchanged.
  const Memory kept = s.alloca_(64, {}, {{good, 1}});
  s.must("R73", "wait for an alloca", s.await(good, 1));
  s.must("R63", "a fill", s.end_of(submit_fill(s, kept, 0x42, {}, {})));
  Work& skipped = s.submit(dealloca_operation(kept.handle), {{failed, 1}}, {{after, 1}});
  s.refused("R62", "a dealloca whose wait has failed", HALYARD_ABORTED, s.end_of(skipped));
  same_bytes(s, "R74", "the bytes after a dealloca that was skipped", std::vector<uint8_t>(64, 0x42),
             s.read(kept));
}

void alloca_refused_types(Session& s) {
  need_alloca(s);
  auto* const untouched = reinterpret_cast<halyard_driver_memory_t>(0x5EED);
  halyard_driver_memory_t memory = untouched;
  halyard_memory_info_t info = {.struct_size = sizeof info};
  const Semaphore signal = s.semaphore();
  const halyard_memory_request_t request = s.request(64, 0x40000000u | HALYARD_MEMORY_DEVICE_VISIBLE);
  halyard_operation_t operation = cts::operation(HALYARD_OPERATION_ALLOCA);
  operation.alloca_ = {&request, &memory, &info};
  s.refused("R60", "alloca of a type that no heap has (0x40000010)", HALYARD_INVALID_ARGUMENT,
            s.try_submit(operation, {}, {{signal, 1}}, nullptr));
  s.check("R60", memory == untouched, "alloca's *memory after queue_submit failed", "untouched", "changed");
  s.value_is("R60", "its signal", signal, 0);
}

void alloca_many(Session& s) {
  need_alloca(s);
  // Transient buffers as programs use them: three exist at any time.
  constexpr uint64_t kSteps = 300;
  const Semaphore t = s.semaphore();
  uint64_t now = 0;
  std::vector<Memory> live;
  for (uint64_t i = 0; i < kSteps; ++i) {
    live.push_back(s.alloca_(1 + i * 97 % 10000, {{t, now}}, {{t, now + 1}}));
    submit_fill(s, live.back(), static_cast<uint32_t>(i), {{t, now + 1}}, {{t, now + 2}});
    now += 2;
    if (live.size() < 4) continue;
    s.submit(dealloca_operation(live.front().handle), {{t, now}}, {{t, now + 1}});
    ++now;
    live.erase(live.begin());
  }
  s.must("R73", "wait for all", s.await(t, now));
  for (size_t i = 0; i < live.size(); ++i)
    same_bytes(s, "R73", "an alloca after others went",
               std::vector<uint8_t>(live[i].size, static_cast<uint8_t>(kSteps - live.size() + i)),
               s.read(live[i]));
}

}  // namespace halyard::cts
