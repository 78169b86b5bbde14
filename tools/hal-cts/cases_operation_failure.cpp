// Failing operations: every way to make an operation fail on this device that needs no device code.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "bytes.h"
#include "cases.h"
#include "subscriptions.h"

namespace halyard::cts {

namespace {

// An open file descriptor, or -1.
class OpenFile {
 public:
  OpenFile(const char* path, int flags) : fd_(open(path, flags | O_CLOEXEC)) {}
  OpenFile(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

class Attempts {
 public:
  explicit Attempts(Session& s) : s_(s) {}

  // Adds an operation that cannot succeed.
  void add(const std::string& what, const halyard_operation_t& operation) {
    const Semaphore signal = s_.semaphore(), after = s_.semaphore();
    Subscription subscription(s_);
    s_.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(signal, 1));
    Work& work = s_.submit(operation, {}, {{signal, 1}});
    Work& next = s_.submit(barrier_operation(), {{signal, 1}}, {{after, 1}});
    const Outcome outcome = s_.end_of(work);
    ++count_;
    uint64_t value = 0;
    const Outcome signalled = s_.query(signal, &value);
    if (!s_.check("R63", !outcome.ok(), what + ": completed", "a failure", "success") ||
        !s_.check("R63", !signalled.ok(), what + ": its signal", outcome.text(),
                  fmt::format("the value {}", value)))
      return;
    s_.check("R51", !outcome.message.empty(), what + ": the message", "text", "none");
    s_.failed_with("R63", what + ": its signal", signal, outcome.code, outcome.message);
    subscription.is_called("R86", what + ": a subscriber to its signal", 1);
    s_.equal("R53", what + ": what the subscriber is told", outcome.text(), subscription.outcome().text());
    s_.refused("R62", what + ": work that waits for it", outcome.code, s_.end_of(next));
    s_.failed_with("R53", what + ": the signal of that", after, outcome.code, outcome.message);
    s_.succeeded("R63", what + ": work that has nothing to do with it", s_.run(barrier_operation()));
  }
  int count() const { return count_; }

 private:
  Session& s_;
  int count_ = 0;
};

// If the driver detects missing bytes, mapping reports that [R73], and work on the bytes must fail.
void use_of_missing_bytes(Session& s, Attempts& attempts) {
  const Semaphore never = s.semaphore(), signal = s.semaphore();
  const Memory memory = s.alloca_(64, {{never, 1}}, {{signal, 1}}), other = s.allocate(noise(64));
  void* pointer = nullptr;
  Outcome mapped;
  if (memory.visible()) mapped = s.map(memory, HALYARD_MAP_READ, 0, 64, &pointer);
  if (pointer) s.unmap(memory);
  if (mapped.code == HALYARD_FAILED_PRECONDITION) {
    const halyard_range_t missing = range(memory.handle, 0, 64), there = range(other.handle, 0, 64);
    const List fill = s.list(Recording().fill(missing, 0, 1)),
               copy = s.list(Recording().copy(missing, there)),
               through_slot = s.list(Recording().copy(there, slot(0, 0, 64)), 1);
    attempts.add("a fill of an alloca before its turn", execute_operation(fill, {}));
    attempts.add("a copy from an alloca before its turn", execute_operation(copy, {}));
    const Table table = {{memory.handle, 0, 64}};
    attempts.add("a copy through a slot to an alloca before its turn",
                 execute_operation(through_slot, table));
    if (s.does(HALYARD_OPERATION_COPY))
      attempts.add("a copy, as an operation, from an alloca before its turn", copy_operation(missing, there));
  }
  s.must("semaphore_signal", "signal", s.signal(never, 1));
  s.must("R73", "wait for the alloca", s.await(signal, 1));
}

}  // namespace

void failure_of_an_operation(Session& s) {
  Attempts attempts(s);
  const Memory memory = s.allocate(100);
  const halyard_range_t bytes = range(memory.handle, 0, 100);
  const OpenFile empty("/dev/null", O_RDONLY), folder("/", O_RDONLY | O_DIRECTORY),
      full("/dev/full", O_WRONLY);
  if (s.does(HALYARD_OPERATION_READ) && empty.get() >= 0)
    attempts.add("a read of 100 bytes of /dev/null",
                 file_operation(HALYARD_OPERATION_READ, empty.get(), 0, bytes));
  if (s.does(HALYARD_OPERATION_READ) && folder.get() >= 0)
    attempts.add("a read of a folder", file_operation(HALYARD_OPERATION_READ, folder.get(), 0, bytes));
  if (s.does(HALYARD_OPERATION_WRITE) && full.get() >= 0)
    attempts.add("a write to /dev/full", file_operation(HALYARD_OPERATION_WRITE, full.get(), 0, bytes));
  if (s.does(HALYARD_OPERATION_ALLOCA) && s.has(HALYARD_DEVICE_QUEUE_ALLOCA))
    use_of_missing_bytes(s, attempts);
  if (attempts.count() == 0)
    unsupported(
        "no operation of this device can be made to fail without device code: it reads and writes no files, "
        "and does "
        "not see that bytes of an alloca are missing");
}

}  // namespace halyard::cts
