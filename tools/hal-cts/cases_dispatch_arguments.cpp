// The arguments of each dispatch: its grid, its constants, its bindings.
#include <array>
#include <atomic>

#include "bytes.h"
#include "cases.h"
#include "interruption.h"
#include "kernels.h"
#include "threads.h"

namespace halyard::cts {

namespace {

// The words that one workgroup of the function 'spread' writes, one per invocation if it has several.
constexpr uint32_t kSpread = 24;

}  // namespace

void dispatch_workgroups_of_several(Session& s) {
  constexpr uint32_t kGuard = 1000, kBase = 5;
  for (const Kernel& kernel : kernels(s, "spread", 1, 1)) {
    const std::array<uint32_t, 3> grids[] = {{1, 1, 1}, {3, 1, 1}, {1, 5, 1},
                                             {1, 1, 2}, {2, 3, 4}, {17, 2, 1}};
    for (const auto& [x, y, z] : grids) {
      for (const bool is_indirect : {false, true}) {
        const uint32_t count = x * y * z * kSpread;
        // The memory after the bound range has room for the words of a grid that is too large.
        const Memory output = words(s, Words(count * 4 + kGuard, 7)), counts = words(s, {x, y, z});
        const halyard_range_t indirect = range(counts.handle, 0, 12);
        const Dispatch d = {.x = is_indirect ? 0 : x,
                            .y = y,
                            .z = z,
                            .constants = {kBase},
                            .bindings = {range(output.handle, 0, count * 4)},
                            .indirect = is_indirect ? &indirect : nullptr};
        s.must_execute(Recording().dispatch(command(kernel, d)));
        Words expected = iota(count, 7 + kBase, 1);
        expected.resize(count * 4 + kGuard, 7);
        const std::string what =
            fmt::format("{}x{}x{} workgroups, {}, each of which adds to {} words of its own", x, y, z,
                        is_indirect ? "counted in memory" : "counted in the command", kSpread);
        if (!words_are(s, "R93", what, expected, output)) return;
        s.free(output);
        s.free(counts);
      }
    }
  }
}

// iota and spread depend only on the number that all three dimensions make together, which an exchange of two
// dimensions, of the grid and of the workgroup alike, leaves as it is.
void dispatch_numbers_of_workgroups(Session& s) {
  for (const Kernel& kernel : kernels(s, "place", 1, 0)) {
    const std::array<uint32_t, 3> grids[] = {{5, 1, 1}, {1, 6, 1}, {1, 1, 7}, {2, 3, 4}, {4, 2, 3}};
    for (const auto& [x, y, z] : grids) {
      for (const bool is_indirect : {false, true}) {
        Words expected;
        for (uint32_t k = 0; k < z; ++k)
          for (uint32_t j = 0; j < y; ++j)
            for (uint32_t i = 0; i < x; ++i) expected.push_back(i + (j << 8) + (k << 16));
        const Memory output = words(s, Words(expected.size(), 0xEEEEEEEE)), counts = words(s, {x, y, z});
        const halyard_range_t indirect = range(counts.handle, 0, 12);
        const Dispatch d = {.x = is_indirect ? 0 : x,
                            .y = y,
                            .z = z,
                            .bindings = {range(output.handle, 0, expected.size() * 4)},
                            .indirect = is_indirect ? &indirect : nullptr};
        s.must_execute(Recording().dispatch(command(kernel, d)));
        const std::string what =
            fmt::format("{}x{}x{} workgroups, {}, each of which writes x + 256 * y + 65536 * z", x, y, z,
                        is_indirect ? "counted in memory" : "counted in the command");
        if (!words_are(s, "R93", what, expected, output)) return;
        s.free(output);
        s.free(counts);
      }
    }
  }
}

void dispatch_arguments_of_each(Session& s) {
  constexpr uint32_t kWords = 8, kMany = 16;
  for (const Kernel& kernel : kernels(s, "iota", 1, 2)) {
    const auto dispatch_of = [&](const Memory& memory, uint32_t base) {
      return Dispatch{.x = kWords, .constants = {base, 3}, .bindings = {range(memory.handle, 0, kWords * 4)}};
    };
    const auto output = [&] { return words(s, Words(kWords, 0)); };
    const auto is = [&](const char* what, const Memory& memory, uint32_t base) {
      words_are(s, "R94", what, iota(kWords, base, 3), memory);
    };
    // All dispatches in one list, without barriers between them.
    std::vector<Memory> outputs;
    std::vector<Dispatch> dispatches;
    for (uint32_t i = 0; i < kMany; ++i)
      dispatches.push_back(dispatch_of(outputs.emplace_back(output()), i * 100));
    Recording together;
    for (const Dispatch& d : dispatches) together.dispatch(command(kernel, d));
    s.must_execute(std::move(together));
    for (uint32_t i = 0; i < kMany; ++i) is("one of many dispatches of a list", outputs[i], i * 100);

    // Each dispatch in a list. All lists are created before one is executed. They are executed in another
    // order, some of them twice.
    std::vector<List> lists;
    for (uint32_t i = 0; i < kMany; ++i) {
      s.write(outputs[i], 0, std::vector<uint8_t>(kWords * 4, 0));
      lists.push_back(s.list(Recording().dispatch(command(kernel, dispatches[i]))));
    }
    for (uint32_t i = 0; i < kMany + 4; ++i)
      s.must("R105", "a list with a dispatch", s.execute(lists[i * 5 % kMany]));
    for (uint32_t i = 0; i < kMany; ++i)
      is("a dispatch, its list made before others were executed", outputs[i], i * 100);

    // All lists are submitted before any of them can run.
    const Semaphore wait = s.semaphore();
    std::vector<Work*> works;
    for (uint32_t i = 0; i < kMany; ++i) {
      s.write(outputs[i], 0, std::vector<uint8_t>(kWords * 4, 0));
      works.push_back(&s.submit(execute_operation(lists[i], {}), {{wait, i % 2 + 1}}));
    }
    for (const uint64_t value : {1, 2}) s.must("semaphore_signal", "signal", s.signal(wait, value));
    for (Work* work : works) s.must("R63", "a dispatch that waited", s.end_of(*work));
    for (uint32_t i = 0; i < kMany; ++i) is("a dispatch that waited beside others", outputs[i], i * 100);
    if (s.failed()) return;
  }
}

void dispatch_arguments_of_each_device(Session& s) {
  constexpr uint32_t kWords = 8;
  // The functions of one device.
  struct Side {
    Session& session;
    uint32_t base;
    std::vector<Memory> outputs = {};
    std::vector<Dispatch> dispatches = {};
    std::vector<List> lists = {};
  };
  static_cast<void>(kernels(s, "iota", 1, 2));  // unsupported: no second device is opened
  Side sides[] = {{s, 1000},
                  {s.open_beside(Session::Beside::same_instance), 2000},
                  {s.open_beside(Session::Beside::own_instance), 3000}};
  for (Side& side : sides) {
    const std::vector<Kernel> found = kernels(side.session, "iota", 1, 2);
    side.dispatches.reserve(found.size());
    for (const Kernel& kernel : found) {
      const Memory& output = side.outputs.emplace_back(words(side.session, Words(kWords, 0)));
      const Dispatch& d = side.dispatches.emplace_back(Dispatch{
          .x = kWords, .constants = {side.base, 1}, .bindings = {range(output.handle, 0, kWords * 4)}});
      side.lists.push_back(side.session.list(Recording().dispatch(command(kernel, d))));
    }
  }
  const auto run = [&](Side& side, const char* when) {
    for (size_t i = 0; i < side.lists.size(); ++i) {
      side.session.write(side.outputs[i], 0, std::vector<uint8_t>(kWords * 4, 0));
      side.session.must("R25", fmt::format("a dispatch {}", when), side.session.execute(side.lists[i]));
      words_are(side.session, "R25", fmt::format("the output of a dispatch {}", when),
                iota(kWords, side.base, 1), side.outputs[i]);
    }
  };
  for (Side& side : sides) run(side, "beside other devices, which have lists of the same function");
  sides[1].session.close();
  for (Side* const side : {&sides[0], &sides[2]}) run(*side, "after another device was closed");
  sides[2].session.close();
  run(sides[0], "after two other devices were closed");
}

void dispatch_arguments_of_each_thread(Session& s) {
  constexpr uint32_t kWords = 4, kMaxRounds = 3000;
  const int64_t end = now_ns() + s.patience_ns() / 16;
  for (const Kernel& kernel : kernels(s, "iota", 1, 2)) {
    // Stops one thread within queue_submit of the first dispatch while another thread submits the second.
    const std::array<Memory, 2> outputs = {words(s, Words(kWords, 0)), words(s, Words(kWords, 0))};
    std::array<Dispatch, 2> dispatches;
    std::array<List, 2> lists = {};
    for (size_t i = 0; i < 2; ++i) {
      dispatches[i] = {.x = kWords, .bindings = {range(outputs[i].handle, 0, kWords * 4)}};
      dispatches[i].constants = {i == 0 ? 1000u : 2000u, 1};
      lists[i] = s.list(Recording().dispatch(command(kernel, dispatches[i])));
    }
    std::array<Work*, 2> works = {};
    std::atomic<bool> over = false;
    at_once(2, [&](int thread) {
      const auto submit = [&](size_t i) {
        until_stopped([&] { works[i] = &s.submit(execute_operation(lists[i], {})); });
      };
      if (thread == 1) return serve_interruptions([&] { submit(1); }, [&] { return over.load(); });
      until_stopped([&] {
        Interruption interruption;
        for (uint32_t round = 0; round < kMaxRounds && (round == 0 || now_ns() < end) && !s.failed();
             ++round) {
          for (const Memory& memory : outputs) s.write(memory, 0, std::vector<uint8_t>(kWords * 4, 0));
          interruption.during([&] { submit(0); });
          for (Work* work : works)
            if (work) s.must("R94", "a dispatch while another thread submits one", s.end_of(*work));
          words_are(s, "R94", "its output", iota(kWords, 1000, 1), outputs[0]);
          words_are(s, "R94", "the output of the other one", iota(kWords, 2000, 1), outputs[1]);
        }
      });
      over = true;
    });
    for (const List list : lists) s.destroy(list);
    if (s.failed()) return;
  }
}

void dispatch_offsets_through_slots(Session& s) {
  constexpr uint32_t kWords = 8;
  constexpr uint64_t kLength = kWords * 4, kSize = 4096;
  struct Offsets {
    uint64_t entry, range;
  };
  for (const Kernel& kernel : kernels(s, "increment", 1, 0)) {
    for (const auto& [entry, range] : {Offsets{0, 0},
                                       {256, 512},
                                       {252, 4},
                                       {4, 252},
                                       {128, 128},
                                       {60, 196},
                                       {4, 0},
                                       {0, 4},
                                       {12, 24},
                                       {64, 0},
                                       {100, 100}}) {
      const Memory memory = words(s, Words(kSize / 4, 1));
      const Dispatch d = {.x = kWords, .bindings = {slot(0, range, kLength)}};
      const std::string what = fmt::format("a binding at {} of an entry at {}", range, entry);
      List list = nullptr;
      Recording* const recording = new Recording;  // must outlive the list
      recording->dispatch(command(kernel, d));
      Outcome outcome = s.try_list(*recording, 1, false, &list);
      Work* work = nullptr;
      if (outcome.ok())
        outcome =
            s.try_submit(execute_operation(list, {{memory.handle, entry, kSize - entry}}), {}, {}, &work);
      if (work) outcome = s.end_of(*work);
      const bool is_aligned = (entry + range) % kStorageAlignment == 0;
      if (is_aligned) s.must("R104", what + ", together a multiple of 256", outcome);
      if (!outcome.ok()) s.refused("R104", what, HALYARD_INVALID_ARGUMENT, outcome);
      Words expected(kSize / 4, 1);
      if (outcome.ok())
        for (uint64_t i = 0; i < kWords; ++i) expected[(entry + range) / 4 + i] = 2;
      if (list) s.destroy(list);
      delete recording;
      if (!words_are(s, "R104", "words after " + what, expected, memory)) return;
      s.free(memory);
    }
  }
}

}  // namespace halyard::cts
