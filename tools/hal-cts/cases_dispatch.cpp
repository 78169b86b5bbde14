// Dispatches of the functions in docs/hal-cts.md: iota, add, increment, refuse.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "bytes.h"
#include "cases.h"
#include "kernels.h"
#include "threads.h"

namespace halyard::cts {

namespace {

// Many devices require that storage ranges begin at multiples of this.

}  // namespace

void dispatch_grids_and_constants(Session& s) {
  for (const Kernel& kernel : kernels(s, "iota", 1, 2)) {
    const std::array<uint32_t, 3> grids[] = {{1, 1, 1}, {7, 1, 1},    {1, 5, 1}, {1, 1, 3},
                                             {3, 4, 5}, {1000, 1, 1}, {2, 3, 60}};
    for (const auto& [x, y, z] : grids) {
      const size_t count = size_t{x} * y * z;
      Words expected = iota(count, 1000 + x, 3 + z);
      expected.push_back(0xEEEEEEEE);  // after the binding
      const Memory output = words(s, Words(count + 1, 0xEEEEEEEE));
      const Dispatch d = {.x = x,
                          .y = y,
                          .z = z,
                          .constants = {1000 + x, 3 + z},
                          .bindings = {range(output.handle, 0, count * 4)}};
      s.must_execute(Recording().dispatch(command(kernel, d)));
      words_are(s, "R93", fmt::format("iota of {}x{}x{} workgroups", x, y, z), expected, output);
      s.free(output);
    }
  }
}

void dispatch_bindings(Session& s) {
  for (const Kernel& kernel : kernels(s, "add", 3, 0)) {
    constexpr uint32_t kCount = 33;
    const Words a = iota(kCount, 5, 7), b = iota(kCount, 100, 1000);
    Words sum(kCount);
    for (uint32_t i = 0; i < kCount; ++i) sum[i] = a[i] + b[i];
    const Memory first = words(s, a), output = words(s, Words(kCount, 0));
    // The second binding begins at an offset in its memory: once as a direct range, once as a slot.
    Words shifted(kStorageAlignment / 4, 0x77777777);
    shifted.insert(shifted.end(), b.begin(), b.end());
    const Memory second = words(s, shifted);
    constexpr uint64_t kLength = kCount * 4;
    Dispatch d = {
        .x = kCount,
        .bindings = {range(first.handle, 0, kLength), range(second.handle, kStorageAlignment, kLength),
                     range(output.handle, 0, kLength)}};
    s.must_execute(Recording().dispatch(command(kernel, d), 8));  // longer, as a newer host's
    words_are(s, "R104", "a + b with direct bindings", sum, output);

    d.bindings = {slot(2, 0, kLength), slot(0, 0, kLength), slot(1, kStorageAlignment, kLength)};
    const List list = s.list(Recording().dispatch(command(kernel, d)), 3);
    for (uint32_t round = 0; round < 3; ++round) {
      Words doubled(kStorageAlignment / 4, 0);
      doubled.resize(doubled.size() + kCount, 0);
      const Memory target = words(s, doubled);
      s.must("R105", "a list with bindings in slots",
             s.execute(list, {{second.handle, kStorageAlignment, kLength},
                              {target.handle, 0, kStorageAlignment + kLength},
                              {first.handle, 0, kLength}}));
      Words expected(kStorageAlignment / 4, 0);
      expected.insert(expected.end(), sum.begin(), sum.end());
      words_are(s, "R104", "a + b with bindings in slots", expected, target);
    }
    // The same memory in all three bindings.
    d.bindings.assign(3, range(first.handle, 0, kLength));
    s.must_execute(Recording().dispatch(command(kernel, d)));
    Words twice(kCount);
    for (uint32_t i = 0; i < kCount; ++i) twice[i] = a[i] + a[i];
    words_are(s, "R104", "a + a into a", twice, first);
  }
}

void dispatch_zero_workgroups(Session& s) {
  for (const Kernel& kernel : kernels(s, "increment", 1, 0)) {
    const Memory counter = words(s, Words(8, 3)), counts = words(s, {0, 4, 4, 4});
    for (int zero = 0; zero < 3; ++zero) {
      Dispatch d = {.x = 4, .y = 4, .z = 4, .bindings = {range(counter.handle, 0, 32)}};
      (zero == 0 ? d.x : zero == 1 ? d.y : d.z) = 0;
      s.must_execute(Recording().dispatch(command(kernel, d)));
    }
    const halyard_range_t indirect = range(counts.handle, 0, 12);
    const Dispatch d = {.bindings = {range(counter.handle, 0, 32)}, .indirect = &indirect};
    s.must_execute(Recording().dispatch(command(kernel, d)));
    words_are(s, "R106", "words after dispatches with a count of 0", Words(8, 3), counter);
  }
}

void dispatch_indirect(Session& s) {
  for (const Kernel& kernel : kernels(s, "iota", 1, 2)) {
    const Memory output = words(s, Words(64, 0));
    const Memory counts = words(s, Words(64, 1000));
    // An earlier command writes the counts, which begin at an offset.
    const Words real = {2, 3, 4};
    const halyard_range_t there = range(counts.handle, 20, 12);
    Dispatch d = {.x = 9,
                  .y = 9,
                  .z = 9,
                  .constants = {5, 2},
                  .bindings = {range(output.handle, 0, 256)},
                  .indirect = &there};
    Words expected = iota(24, 5, 2);
    expected.resize(64, 0);
    s.must_execute(Recording().update(real.data(), there).barrier().dispatch(command(kernel, d)));
    words_are(s, "R106", "iota of 2x3x4 workgroups, counts written by the command before", expected, output);

    const halyard_range_t in_slot = slot(0, 8, 12);
    d.indirect = &in_slot;
    d.bindings = {slot(1, 0, 256)};
    const List list = s.list(Recording().dispatch(command(kernel, d)), 2);
    for (const uint32_t count : {1u, 6u, 17u}) {
      const Memory target = words(s, Words(64, 0));
      const Memory given = words(s, {0, 0, 0, count, 1, 1, 0});
      s.must("R106", "a list with its counts in a slot",
             s.execute(list, {{given.handle, 4, 24}, {target.handle, 0, 256}}));
      expected = iota(count, 5, 2);
      expected.resize(64, 0);
      words_are(s, "R106", fmt::format("iota of {} workgroups, counts through a slot", count), expected,
                target);
    }
  }
}

void dispatch_barriers_between(Session& s) {
  for (const Kernel& kernel : kernels(s, "increment", 1, 0)) {
    constexpr uint32_t kTimes = 500;
    const Memory counter = words(s, Words(16, 0));
    Recording recording;
    const Dispatch d = {.x = 16, .bindings = {range(counter.handle, 0, 64)}};
    for (uint32_t i = 0; i < kTimes; ++i) {
      recording.dispatch(command(kernel, d)).barrier();
      if (i == kTimes / 2) recording.fill(range(counter.handle, 0, 32), 0, 4).barrier();
    }
    s.must_execute(std::move(recording));
    Words expected(16, kTimes);
    std::fill_n(expected.begin(), 8, kTimes - kTimes / 2 - 1);
    words_are(s, "R103", fmt::format("words after {} increments with barriers between", kTimes), expected,
              counter);
  }
}

void dispatch_as_operation(Session& s) {
  s.need_operation(HALYARD_OPERATION_DISPATCH, "dispatch");
  for (const Kernel& kernel : kernels(s, "iota", 1, 2)) {
    const Memory output = words(s, Words(12, 0));
    const Dispatch d = {
        .x = 3, .y = 2, .z = 2, .constants = {8, 1}, .bindings = {range(output.handle, 0, 48)}};
    const halyard_command_dispatch_t recorded = command(kernel, d);
    const Semaphore wait = s.semaphore(), signal = s.semaphore();
    Work& work = s.submit(dispatch_operation(&recorded), {{wait, 1}}, {{signal, 1}});
    words_are(s, "R60", "the output of a dispatch that is not due", Words(12, 0), output);
    s.must("semaphore_signal", "signal", s.signal(wait, 1));
    s.must("R63", "a dispatch as an operation", s.end_of(work));
    s.value_is("R63", "its signal", signal, 1);
    words_are(s, "R63", "its output", iota(12, 8, 1), output);
  }
}

void dispatch_into_read_only_imports(Session& s) {
  if (s.properties().import_alignment == 0 || !s.table().memory_import)
    unsupported("import_alignment is 0, or memory_import null");
  const std::vector<Kernel> increments = kernels(s, "increment", 1, 0);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (page % s.properties().import_alignment != 0)
    unsupported(
        fmt::format("import_alignment is {}, pages have {} bytes", s.properties().import_alignment, page));
  // Pages that terminate the process when written to.
  void* const pages = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    s.stop("R77", "a read-only page", "that the system gives one", std::strerror(errno));
  const halyard_memory_request_t request = s.request(page, HALYARD_MEMORY_OPTIMAL | kStaging);
  const halyard_external_memory_t external = {.struct_size = sizeof external,
                                              .kind = HALYARD_EXTERNAL_HOST_ALLOCATION,
                                              .pointer = pages,
                                              .fd = -1,
                                              .access = HALYARD_MAP_READ,
                                              .size = page};
  halyard_memory_info_t info = {.struct_size = sizeof info};
  Memory memory{.size = page};
  s.must("memory_import", "memory_import of a read-only page",
         s.take(s.table().memory_import(s.device(), &request, &external, &memory.handle, &info)));
  s.keep(memory);
  for (const Kernel& kernel : increments) {
    const Dispatch d = {.x = 4, .bindings = {range(memory.handle, 0, 16)}};
    const List list = s.list(Recording().dispatch(command(kernel, d)));
    // Either the execution fails, or the kernel does not get these bytes.
    const Outcome outcome = s.execute(list);
    if (!outcome.ok())
      s.refused("R77", "a kernel that writes to a read-only import", HALYARD_PERMISSION_DENIED, outcome);
    same_bytes(s, "R77", "a read-only import that a kernel wrote to", std::vector<uint8_t>(16, 0),
               {static_cast<const uint8_t*>(pages), 16});
  }
}

// Constants of a program: devices may write to the bytes, which are private to the process.
void dispatch_into_constants(Session& s) {
  if (!(s.properties().capabilities & HALYARD_DEVICE_WRITES_CONSTANTS))
    unsupported("HALYARD_DEVICE_WRITES_CONSTANTS");
  const uint64_t alignment = std::max<uint64_t>(s.properties().import_alignment, sizeof(uint32_t));
  if (s.properties().import_alignment == 0 || !s.table().memory_import)
    unsupported("import_alignment is 0, or memory_import null");
  const uint64_t size = (64 + alignment - 1) / alignment * alignment;
  for (const uint32_t access :
       {uint32_t{HALYARD_MAP_READ}, uint32_t{HALYARD_MAP_READ | HALYARD_MAP_PRIVATE}}) {
    for (const Kernel& kernel : kernels(s, "increment", 1, 0)) {
      const std::unique_ptr<uint8_t, decltype(&std::free)> bytes(
          static_cast<uint8_t*>(std::aligned_alloc(alignment, size)), std::free);
      std::memset(bytes.get(), 0, size);
      const halyard_memory_request_t request = s.request(size, HALYARD_MEMORY_OPTIMAL | kStaging);
      const halyard_external_memory_t external = {.struct_size = sizeof external,
                                                  .kind = HALYARD_EXTERNAL_HOST_ALLOCATION,
                                                  .pointer = bytes.get(),
                                                  .fd = -1,
                                                  .access = access,
                                                  .size = size};
      halyard_memory_info_t info = {.struct_size = sizeof info};
      Memory memory{.size = size};
      s.must("memory_import", "memory_import of constants",
             s.take(s.table().memory_import(s.device(), &request, &external, &memory.handle, &info)));
      const Dispatch direct_use = {.x = 4, .bindings = {range(memory.handle, 0, 16)}};
      const halyard_range_t entry = {.slot = 0, .offset = 0, .length = 16};
      const Dispatch slot_use = {.x = 4, .bindings = {entry}};
      const List first = s.list(Recording().dispatch(command(kernel, direct_use)));
      const List second = s.list(
          Recording().fill({.slot = 0, .offset = 16, .length = 16}, 5, 4).dispatch(command(kernel, slot_use)),
          1);
      s.must("R77", "a kernel that writes to constants", s.execute(first));
      s.must("R77", "commands that write to constants through a slot",
             s.execute(second, {{memory.handle, 0, 32}}));
      const Memory seen = words(s, Words(8, 9));
      s.must("R77", "a copy of the constants",
             s.execute(s.list(Recording().copy(range(memory.handle, 0, 32), range(seen.handle, 0, 32)))));
      words_are(s, "R77", "constants that were written to", {2, 2, 2, 2, 5, 5, 5, 5}, seen);
      if (!(access & HALYARD_MAP_PRIVATE))
        same_bytes(s, "R77", "the host's bytes of constants that are not private",
                   std::vector<uint8_t>(16, 0), {bytes.get(), 16});
      s.free(memory);
    }
  }
}

void dispatch_failing(Session& s) {
  for (const Kernel& kernel : kernels(s, "refuse", 0, 0)) {
    const Semaphore signal = s.semaphore(), after = s.semaphore();
    const List list = s.list(Recording().dispatch(command(kernel, {})));
    Work& work = s.submit(execute_operation(list, {}), {}, {{signal, 1}});
    Work& next = s.submit(barrier_operation(), {{signal, 1}}, {{after, 1}});
    const Outcome outcome = s.end_of(work);
    if (!s.check("R63", !outcome.ok(), "completed of a list whose kernel fails", "a failure", "success"))
      return;
    s.check("R51", !outcome.message.empty(), "its message", "text", "none");
    s.failed_with("R63", "its signal", signal, outcome.code, outcome.message);
    s.refused("R62", "work that waits for it", outcome.code, s.end_of(next));
    s.failed_with("R53", "the signal of that", after, outcome.code, outcome.message);
  }
}

// A grid that would run for years.
void dispatch_stopped(Session& s) {
  if (!(s.properties().capabilities & HALYARD_DEVICE_STOPS_WORK)) unsupported("HALYARD_DEVICE_STOPS_WORK");
  for (const Kernel& kernel : kernels(s, "increment", 1, 0)) {
    const Memory memory = words(s, Words(4, 0));
    const Dispatch endless = {
        .x = 4, .y = UINT16_MAX, .z = UINT16_MAX, .bindings = {range(memory.handle, 0, 16)}};
    const Dispatch short_one = {.x = 4, .bindings = {range(memory.handle, 0, 16)}};
    const List list = s.list(Recording().dispatch(command(kernel, endless)));
    const List other = s.list(Recording().dispatch(command(kernel, short_one)));
    for (const halyard_status_code_t code : {HALYARD_CANCELLED, HALYARD_DEADLINE_EXCEEDED}) {
      std::atomic<uint32_t> word = 0;
      const Semaphore signal = s.semaphore();
      std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        word = code;
      });
      s.stop_by(reinterpret_cast<const uint32_t*>(&word));
      Work& work = s.submit(execute_operation(list, {}), {}, {{signal, 1}});
      stopper.join();
      s.refused("R69", "a dispatch that was stopped", code, s.end_of(work));
      s.refused("R69", "its signal", code, s.await(signal, 1));
      s.refused("R69", "a list that is stopped before it is submitted", code, s.execute(list));
      s.stop_by(nullptr);
      s.must("R69", "the next dispatch", s.execute(other));
    }
  }
}

void dispatch_charged_to_a_budget(Session& s) {
  struct Ledger {
    std::atomic<int64_t> used = 0;
    bool refuses = false;
  };
  for (const Program* program : s.programs()) {
    for (const bool refuses : {false, true}) {
      Ledger ledger{.refuses = refuses};
      const halyard_memory_budget_t budget = {
          .struct_size = sizeof budget,
          .user = &ledger,
          .limit = refuses ? 0 : UINT64_MAX,
          .take = [](void* user, uint64_t bytes) -> int32_t {
            auto& self = *static_cast<Ledger*>(user);
            if (self.refuses && bytes != 0) return 0;
            self.used += static_cast<int64_t>(bytes);
            return 1;
          },
          .give_back =
              [](void* user, uint64_t bytes) {
                static_cast<Ledger*>(user)->used -= static_cast<int64_t>(bytes);
              },
          .used = [](void* user) { return static_cast<uint64_t>(static_cast<Ledger*>(user)->used.load()); }};
      const halyard_executable_args_t args = {.struct_size = sizeof args,
                                              .format = text(program->format),
                                              .data = program->data.data(),
                                              .data_size = program->data.size(),
                                              .affinity = s.all_queues(),
                                              .memory = &budget};
      Executable executable = nullptr;
      const Outcome made = s.take(s.table().executable_create(s.device(), &args, &executable));
      if (made.ok()) {
        for (uint32_t i = 0; i < s.table().executable_function_count(executable); ++i) {
          halyard_function_info_t info = {.struct_size = sizeof info};
          s.must("executable_function_info", "executable_function_info",
                 s.take(s.table().executable_function_info(executable, i, &info)));
          if (std::string_view(info.name.data, info.name.size) != "increment") continue;
          const Memory memory = words(s, Words(4, 0));
          const Dispatch d = {.x = 4, .bindings = {range(memory.handle, 0, 16)}};
          const List list = s.list(Recording().dispatch(command({executable, i}, d)));
          const Outcome outcome = s.execute(list);
          if (!outcome.ok())
            s.refused("R95", "a dispatch whose budget is spent", HALYARD_RESOURCE_EXHAUSTED, outcome);
          s.check("R95", refuses || outcome.ok(), "a dispatch with a budget", "success", outcome.message);
          s.destroy(list);
        }
        s.table().executable_destroy(s.device(), executable);
      } else {
        s.refused("R95", "an executable whose budget is spent", HALYARD_RESOURCE_EXHAUSTED, made);
      }
      s.equal("R95", "bytes that are charged when the executable is gone", int64_t{0}, ledger.used.load());
    }
  }
}

void dispatch_at_once_from_threads(Session& s) {
  for (const Kernel& kernel : kernels(s, "iota", 1, 2)) {
    at_once(8, [&](int thread) {
      const auto base = static_cast<uint32_t>(thread) * 1000;
      const Memory output = words(s, Words(100, 0));
      const Dispatch d = {.x = 100, .constants = {base, 1}, .bindings = {range(output.handle, 0, 400)}};
      const List list = s.list(Recording().dispatch(command(kernel, d)));
      for (int i = 0; i < 20; ++i) {
        s.write(output, 0, std::vector<uint8_t>(400, 0));
        s.must("R94", "a dispatch of an executable that other threads use", s.execute(list));
        words_are(s, "R94", "its output", iota(100, base, 1), output);
        if (s.failed()) return;
      }
    });
  }
}

}  // namespace halyard::cts
