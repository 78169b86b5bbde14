// Command lists: tables of bindings, barriers, groups, later fields, many commands, many threads.
#include <algorithm>

#include "bytes.h"
#include "cases.h"
#include "threads.h"

namespace halyard::cts {

void list_barriers(Session& s) {
  // A chain of copies, each from the target of the previous copy. Without barriers a driver could run them in
  // any order.
  constexpr uint64_t kSteps = 100, kSize = 64;
  const std::vector<uint8_t> contents = noise(kSize);
  std::vector<uint8_t> begin((kSteps + 1) * kSize, 0);
  std::copy(contents.begin(), contents.end(), begin.begin());
  const Memory memory = s.allocate(begin, kDeviceLocal);
  Recording recording;
  for (uint64_t i = 0; i < kSteps; ++i)
    recording.copy(range(memory.handle, i * kSize, kSize), range(memory.handle, (i + 1) * kSize, kSize))
        .barrier();
  s.must_execute(std::move(recording));
  same_bytes(s, "R103", "the end of a row of copies with barriers between them", contents,
             s.read(memory, kSteps * kSize, kSize));

  // Several writes to the same range: the last write must remain.
  Recording same;
  for (uint32_t i = 1; i <= 200; ++i) same.fill(range(memory.handle, 0, kSize), i, 1).barrier();
  s.must_execute(std::move(same));
  same_bytes(s, "R103", "bytes that were filled 200 times with barriers between",
             std::vector<uint8_t>(kSize, 200), s.read(memory, 0, kSize));
}

void list_other_tables(Session& s) {
  const List list =
      s.list(Recording().copy(slot(0, 4, 32), slot(1, 8, 32)).barrier().fill(slot(1, 0, 4), 0xABCD, 2), 2);
  for (uint32_t round = 0; round < 20; ++round) {
    const std::vector<uint8_t> contents = noise(128, round + 1);
    const Memory source = s.allocate(contents), target = s.allocate(std::vector<uint8_t>(128, 0xEE));
    // The offsets differ each time.
    const uint64_t from = round * 4 % 60, to = (round * 8 + 16) % 68 / 4 * 4;
    s.must("R105", fmt::format("execution {} of a list, with another table", round),
           s.execute(list, {{source.handle, from, 128 - from}, {target.handle, to, 128 - to}}));
    std::vector<uint8_t> expected(128, 0xEE);
    std::copy_n(contents.begin() + static_cast<ptrdiff_t>(from) + 4, 32,
                expected.begin() + static_cast<ptrdiff_t>(to) + 8);
    for (uint64_t i = 0; i < 4; ++i) expected[to + i] = i % 2 ? 0xAB : 0xCD;
    if (!same_bytes(s, "R105",
                    fmt::format("what execution {} of a list has written through its table", round), expected,
                    s.read(target)))
      return;
  }
}

void list_waiting_with_other_tables(Session& s) {
  // All executions are submitted before any of them can run; the driver has only its own copies of the
  // tables.
  constexpr uint32_t kMany = 16;
  const List list = s.list(Recording().copy(slot(0, 0, 32), slot(1, 0, 32)), 2);
  const Semaphore wait = s.semaphore();
  std::vector<Memory> targets;
  std::vector<Work*> works;
  for (uint32_t i = 0; i < kMany; ++i) {
    const Memory source = s.allocate(noise(32, i + 1));
    targets.push_back(s.allocate(std::vector<uint8_t>(32, 0)));
    works.push_back(&s.submit(execute_operation(list, {{source.handle, 0, 32}, {targets[i].handle, 0, 32}}),
                              {{wait, i % 3 + 1}}));
  }
  for (const uint64_t value : {1, 2, 3}) s.must("semaphore_signal", "signal", s.signal(wait, value));
  for (uint32_t i = 0; i < kMany; ++i) {
    s.must("R105", "one of many executions of a list that waited", s.end_of(*works[i]));
    same_bytes(s, "R61", fmt::format("what execution {} has written through its table", i), noise(32, i + 1),
               s.read(targets[i]));
  }
}

void list_unused_slots(Session& s) {
  const Memory memory = s.allocate(std::vector<uint8_t>(64, 0));
  const List list = s.list(Recording().fill(slot(3, 0, 32), 7, 1), 4);
  const Table table = {{nullptr, 0, 0},         {nullptr, 0, 0}, {nullptr, 0, 0},
                       {memory.handle, 16, 48}, {nullptr, 0, 0}, {memory.handle, 0, 64}};
  s.must("R104", "a list with unused slots, and more entries than it needs", s.execute(list, table));
  std::vector<uint8_t> expected(64, 0);
  std::fill_n(expected.begin() + 16, 32, uint8_t{7});
  same_bytes(s, "R104", "what it has written", expected, s.read(memory));
}

void list_nested_offsets(Session& s) {
  // Several offsets of entries combined with offsets of ranges; the same memory in two slots.
  for (const uint64_t entry : {0, 4, 64, 100, 252}) {
    for (const uint64_t offset : {0, 1, 4, 63, 128}) {
      const std::vector<uint8_t> begin = noise(512);
      const Memory memory = s.allocate(begin);
      s.must_execute(Recording().copy(slot(0, offset, 16), slot(1, offset, 16)),
                     {{memory.handle, entry, 256}, {memory.handle, entry + 17, 240}});
      std::vector<uint8_t> expected = begin;
      std::copy_n(begin.begin() + static_cast<ptrdiff_t>(entry + offset), 16,
                  expected.begin() + static_cast<ptrdiff_t>(entry + offset + 17));
      if (!same_bytes(s, "R104", fmt::format("a copy at {} of an entry at {}", offset, entry), expected,
                      s.read(memory)))
        return;
      s.free(memory);
    }
  }
}

void list_empty(Session& s) {
  const List nothing = s.list(Recording()), barrier = s.list(Recording().barrier().barrier());
  for (int i = 0; i < 3; ++i) {
    s.succeeded("R105", "execution of an empty list", s.execute(nothing));
    s.succeeded("R105", "execution of a list of barriers", s.execute(barrier));
  }
}

void list_groups(Session& s) {
  const Memory memory = s.allocate(std::vector<uint8_t>(32, 0));
  Recording recording;
  recording.begin_group("outer")
      .fill(range(memory.handle, 0, 8), 1, 1)
      .begin_group("")
      .fill(range(memory.handle, 8, 8), 2, 1);
  recording.end_group().barrier().fill(range(memory.handle, 16, 8), 3, 1).end_group();
  s.must_execute(std::move(recording));
  std::vector<uint8_t> expected(32, 0);
  for (size_t i = 0; i < 24; ++i) expected[i] = static_cast<uint8_t>(i / 8 + 1);
  same_bytes(s, "R102", "what a list with debug groups has written", expected, s.read(memory));
}

void list_longer_commands(Session& s) {
  // Commands of a newer host, with fields after those of version 1.
  const std::vector<uint8_t> contents = noise(64), begin = noise(64, 2);
  const Memory source = s.allocate(contents), target = s.allocate(begin);
  Recording recording;
  recording.barrier(8).fill(range(target.handle, 0, 16), 0x99, 1, 16).barrier(64);
  recording.update(contents.data(), range(target.handle, 16, 16), 8)
      .copy(range(source.handle, 32, 16), range(target.handle, 32, 16), 24)
      .barrier();
  s.must_execute(std::move(recording));
  std::vector<uint8_t> expected = begin;
  std::fill_n(expected.begin(), 16, uint8_t{0x99});
  std::copy_n(contents.begin(), 16, expected.begin() + 16);
  std::copy_n(contents.begin() + 32, 16, expected.begin() + 32);
  same_bytes(s, "R102", "what longer commands have written", expected, s.read(target));
}

void list_unknown_commands(Session& s) {
  for (const uint32_t kind : {0u, 9u, 1000u, 0x80000001u}) {
    Recording recording;
    recording.barrier().add(kind, halyard_command_barrier_t{}).barrier();
    auto* const untouched = reinterpret_cast<List>(0x5EED);
    List list = untouched;
    s.refused_naming("R102", fmt::format("command_list_create with a command of kind {}", kind),
                     HALYARD_UNIMPLEMENTED, fmt::format("{}", kind), s.try_list(recording, 0, false, &list));
    s.check("R50", s.failed() || list == untouched, "*list after command_list_create failed", "untouched",
            "changed");
  }
}

void list_extensions(Session& s) {
  const halyard_extension_t may = extension(0), must = extension(1, &may);
  const Recording recording = Recording().barrier();
  halyard_command_list_args_t args = recording.args(0);
  args.affinity = s.all_queues();
  args.extensions = &must;
  List list = nullptr;
  s.refused_naming("R13", "command_list_create with an unknown extension that must be understood",
                   HALYARD_UNIMPLEMENTED, fmt::format("{}", kUnknownExtension),
                   s.take(s.table().command_list_create(s.device(), &args, &list)));
  args.extensions = &may;
  s.must("R13", "command_list_create with an unknown extension that need not be understood",
         s.take(s.table().command_list_create(s.device(), &args, &list)));
  s.table().command_list_destroy(s.device(), list);
}

void list_never_submitted(Session& s) {
  const Memory memory = s.allocate(noise(64));
  for (int i = 0; i < 100; ++i)
    s.destroy(s.list(Recording().fill(range(memory.handle, 0, 64), 0, 1), 0, i % 2 != 0));
  same_bytes(s, "R24", "memory that lists name which were never submitted", noise(64), s.read(memory));
}

void list_thousands_of_commands(Session& s) {
  constexpr uint64_t kCommands = 20000, kWords = 4096;
  const Memory memory = s.allocate(std::vector<uint8_t>(kWords * 4, 0), kDeviceLocal);
  const std::vector<uint8_t> host = noise(1000);
  std::vector<uint8_t> expected(kWords * 4, 0);
  Recording recording;
  uint32_t state = 1;
  for (uint64_t i = 0; i < kCommands; ++i) {
    state = state * 1664525u + 1013904223u;
    const uint64_t word = (state >> 8) % kWords,
                   length = 4 * (1 + (state >> 28) % std::min<uint64_t>(8, kWords - word));
    const halyard_range_t target = i % 2 ? range(memory.handle, word * 4, length) : slot(0, word * 4, length);
    if (i % 3 == 0) {
      const uint64_t from = state % 900;
      recording.update(host.data() + from, target);
      std::copy_n(host.begin() + static_cast<ptrdiff_t>(from), length,
                  expected.begin() + static_cast<ptrdiff_t>(word * 4));
    } else {
      recording.fill(target, state, 4);
      for (uint64_t j = 0; j < length; ++j)
        expected[word * 4 + j] = static_cast<uint8_t>(state >> 8 * (j % 4));
    }
    recording.barrier();
  }
  s.must_execute(std::move(recording), {{memory.handle, 0, kWords * 4}});
  same_bytes(s, "R103", fmt::format("memory after {} commands", kCommands), expected, s.read(memory));
}

void list_at_once_from_threads(Session& s) {
  // One list, with a different table in each thread. A driver may prepare the list during its first
  // execution.
  constexpr int kThreads = 8;
  const List list =
      s.list(Recording().copy(slot(0, 0, 256), slot(1, 0, 256)).barrier().fill(slot(1, 0, 4), 0x55, 1), 2);
  at_once(kThreads, [&](int thread) {
    const std::vector<uint8_t> contents = noise(256, static_cast<uint32_t>(thread) + 1);
    const Memory source = s.allocate(contents), target = s.allocate(std::vector<uint8_t>(256, 0));
    std::vector<uint8_t> expected = contents;
    std::fill_n(expected.begin(), 4, uint8_t{0x55});
    for (int i = 0; i < 50; ++i) {
      s.write(target, 0, std::vector<uint8_t>(256, 0));
      s.must("R105", "execution of a list that other threads execute",
             s.execute(list, {{source.handle, 0, 256}, {target.handle, 0, 256}}));
      if (!same_bytes(s, "R105", "what it has written through its own table", expected, s.read(target)))
        return;
    }
  });
}

}  // namespace halyard::cts
