// Two commands in a row: the first is large, the second is small and accesses the end of the first one's
// range. Without the order that a barrier or a semaphore requires, the second command reads, or leaves, wrong
// bytes.
#include <cstring>
#include <functional>

#include "bytes.h"
#include "cases.h"
#include "kernels.h"

namespace halyard::cts {

namespace {

constexpr uint64_t kLarge = uint64_t{24}
                            << 20;  // bytes: copying them takes much longer than starting the next command
constexpr uint64_t kSmall = 256;    // bytes
constexpr uint64_t kTail = kLarge - kSmall;
constexpr uint32_t kColumns = 256, kRows = 128;  // workgroups, for the same amount of work in kernels
constexpr uint64_t kGrid = uint64_t{kColumns} * kRows;

using Record = std::function<void(Recording&)>;

// Both commands in a list; then two submissions with a semaphore between them, the second one submitted
// first.
void in_order(Session& s, const std::string& what, const Record& begin, const Record& first,
              const Record& second,
              const std::function<void(std::string_view rule, const std::string& what)>& check) {
  for (const bool by_semaphores : {false, true}) {
    for (int round = 0; round < 2 && !s.failed(); ++round) {
      Recording before;
      begin(before);
      s.must_execute(std::move(before));
      Recording one, other;
      first(one);
      if (by_semaphores) {
        second(other);
        const Semaphore t = s.semaphore();
        const List earlier = s.list(std::move(one)), later = s.list(std::move(other));
        Work& last = s.submit(execute_operation(later, {}), {{t, 2}}, {{t, 3}});
        s.submit(execute_operation(earlier, {}), {{t, 1}}, {{t, 2}});
        s.must("semaphore_signal", "signal of 1", s.signal(t, 1));
        s.must("R63", what, s.end_of(last));
        check("R63", what + ", with a semaphore between");
      } else {
        one.barrier();
        second(one);
        s.must_execute(std::move(one));
        check("R103", what + ", with a barrier between");
      }
    }
  }
}

}  // namespace

void list_order_of_large_and_small(Session& s) {
  const std::vector<uint8_t> contents = noise(kSmall), other = noise(kSmall, 2);
  const Memory source = s.allocate(kLarge, kDeviceLocal), target = s.allocate(kLarge, kDeviceLocal),
               small = s.allocate(kSmall);
  s.write(source, kTail, contents);
  const auto all = [](const Memory& memory) { return range(memory.handle, 0, kLarge); };
  const auto tail = [](const Memory& memory) { return range(memory.handle, kTail, kSmall); };
  const halyard_range_t little = range(small.handle, 0, kSmall);
  const auto fill_of = [](const halyard_range_t& range, uint32_t pattern) {
    return [=](Recording& recording) { recording.fill(range, pattern, 1); };
  };
  const auto copy_of = [](const halyard_range_t& from, const halyard_range_t& to) {
    return [=](Recording& recording) { recording.copy(from, to); };
  };
  const auto filled = [](uint8_t pattern) { return std::vector<uint8_t>(kSmall, pattern); };
  const auto tail_is = [&](const Memory& memory, const std::vector<uint8_t>& expected) {
    return [&s, memory, expected](std::string_view rule, const std::string& what) {
      same_bytes(s, rule, what, expected, s.read(memory, memory.size - kSmall, kSmall));
    };
  };
  const Record clear_target = fill_of(all(target), 0);
  in_order(s, "a fill, then a copy of its last bytes", clear_target, fill_of(all(target), 7),
           copy_of(tail(target), little), tail_is(small, filled(7)));
  in_order(s, "a copy, then a copy of its last bytes", clear_target, copy_of(all(source), all(target)),
           copy_of(tail(target), little), tail_is(small, contents));
  in_order(
      s, "a copy, then a fill of the last bytes that it read",
      [&](Recording& recording) { recording.update(other.data(), tail(source)).fill(all(target), 0, 1); },
      copy_of(all(source), all(target)), fill_of(tail(source), 9), tail_is(target, other));
  in_order(s, "two fills of the last bytes", clear_target, fill_of(all(target), 1), fill_of(tail(target), 2),
           tail_is(target, filled(2)));
  in_order(
      s, "a copy, then an update of its last bytes", clear_target, copy_of(all(source), all(target)),
      [&](Recording& recording) { recording.update(other.data(), tail(target)); }, tail_is(target, other));
}

void dispatch_order_of_large_and_small(Session& s) {
  const std::vector<Kernel> iotas = kernels(s, "iota", 1, 2), increments = kernels(s, "increment", 1, 0);
  const Memory grid = s.allocate(kGrid * 4, kDeviceLocal), small = s.allocate(kSmall);
  constexpr uint64_t kLast = kGrid * 4 - kSmall;
  constexpr auto kWords = static_cast<uint32_t>(kSmall / 4);
  const halyard_range_t all = range(grid.handle, 0, kGrid * 4), tail = range(grid.handle, kLast, kSmall),
                        little = range(small.handle, 0, kSmall);
  const Words last = iota(kWords, 11 + 3 * (static_cast<uint32_t>(kGrid) - kWords), 3);
  Words incremented = last;
  for (uint32_t& word : incremented) ++word;
  const Record clear = [&](Recording& recording) { recording.fill(all, 0, 4); };
  const Record copy = [&](Recording& recording) { recording.copy(tail, little); };
  const auto small_is = [&](const Words& expected) {
    return [&s, &small, expected](std::string_view rule, const std::string& what) {
      words_are(s, rule, what, expected, small);
    };
  };
  for (size_t i = 0; i < iotas.size(); ++i) {
    const Dispatch large = {.x = kColumns, .y = kRows, .constants = {11, 3}, .bindings = {all}};
    const Dispatch few = {.x = kWords, .bindings = {tail}};
    const auto first = command(iotas[i], large), second = command(increments[i % increments.size()], few);
    const Record count = [&](Recording& recording) { recording.dispatch(first); };
    const Record increment = [&](Recording& recording) { recording.dispatch(second); };
    in_order(s, "a dispatch, then a copy of its last words", clear, count, copy, small_is(last));
    in_order(
        s, "a fill, then a dispatch over its last words", clear,
        [&](Recording& recording) { recording.fill(all, 5, 4); },
        [&](Recording& recording) { recording.dispatch(second).barrier().copy(tail, little); },
        small_is(Words(kWords, 6)));
    in_order(
        s, "a dispatch, then one over its last words", clear, count,
        [&](Recording& recording) { increment(recording), recording.barrier().copy(tail, little); },
        small_is(incremented));
    in_order(
        s, "a dispatch, then a fill of its last words, then a copy of them", clear, count,
        [&](Recording& recording) { recording.fill(tail, 1, 4).barrier().copy(tail, little); },
        small_is(Words(kWords, 1)));
    if (s.failed()) return;
  }
}

}  // namespace halyard::cts
