// After `completed` a driver must not use the objects of a submission. Here all of them are gone by then:
// handles are destroyed, other blocks occupy their addresses, and host bytes are on inaccessible pages.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "bytes.h"
#include "cases.h"
#include "threads.h"

namespace halyard::cts {

namespace {

// Pages whose access can be revoked.
class Pages {
 public:
  Pages(Session& s, uint64_t size) : size_(size) {
    const int access = PROT_READ | PROT_WRITE;
    pages_ = mmap(nullptr, size_, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages_ == MAP_FAILED)
      s.stop("R65", "pages of this case", "that the system gives some", std::strerror(errno));
  }
  Pages(const Pages&) = delete;
  ~Pages() { munmap(pages_, size_); }

  // The analyzer does not follow the constructor of an aggregate in a `new` expression.
  // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn)
  uint8_t* data() const { return static_cast<uint8_t*>(pages_); }
  uint64_t size() const { return size_; }
  void take_away() const { mprotect(pages_, size_, PROT_NONE); }

 private:
  const uint64_t size_;
  void* pages_ = nullptr;
};

// Blocks of every small size, several of each size, which include the blocks that this thread has freed last.
// A late write to freed memory changes one of them.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  ~Blocks() {
    for (const Block& block : blocks_) std::free(block.bytes);
  }

  void fill() {
    blocks_.reserve(kMaxSize / 16 * kOfEach);
    for (size_t size = 16; size <= kMaxSize; size += 16)
      for (size_t i = 0; i < kOfEach; ++i) {
        auto* const bytes = static_cast<uint8_t*>(std::malloc(size));
        if (!bytes) return;
        std::memset(bytes, kByte, size);
        blocks_.push_back({bytes, size});
      }
  }
  // The size of a block that has changed; 0: none.
  size_t touched() const {
    for (const Block& block : blocks_)
      if (std::any_of(block.bytes, block.bytes + block.size, [](uint8_t byte) { return byte != kByte; }))
        return block.size;
    return 0;
  }

 private:
  static constexpr size_t kMaxSize = 2048, kOfEach = 4;
  static constexpr uint8_t kByte = 0xDD;
  struct Block {
    uint8_t* bytes;
    size_t size;
  };
  std::vector<Block> blocks_;
};

// Waits until late accesses should have happened.
void let_late_ones_come(Session& s) {
  s.must("R65", "work after work whose named things are gone", s.run(barrier_operation()));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

void queue_handles_after_completed(Session& s) {
  struct Shared {
    Session& s;
    Semaphore wait, signal;
    Memory memory;
    List list;
    Blocks blocks;
  };
  for (int round = 0; round < 10; ++round) {
    // On the heap, because a late driver may still read the blocks.
    auto& shared = *new Shared{s, s.semaphore(), s.semaphore(), s.allocate(64), nullptr, {}};
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): allocate() gives the handle
    shared.list = s.list(Recording().fill(range(shared.memory.handle, 0, 64), 1, 1).barrier());
    // Half of the work can run at once, the other half waits for a signal.
    const Points waits = round % 2 ? Points{{shared.wait, 1}} : Points{};
    Work& work = s.submit(
        execute_operation(shared.list, {}), waits, {{shared.signal, 1}}, 0,
        [](void* user) {
          auto& it = *static_cast<Shared*>(user);
          it.s.destroy(it.list);
          it.s.free(it.memory);
          it.s.destroy(it.signal);
          it.blocks.fill();
        },
        &shared);
    if (round % 2) s.must("semaphore_signal", "signal of 1", s.signal(shared.wait, 1));
    s.step("after completed, in which what the submission named was destroyed and overwritten");
    s.must("R65", "work whose completed destroys what it named", s.end_of(work));
    let_late_ones_come(s);
    const size_t touched = shared.blocks.touched();
    if (!s.check("R65", touched == 0, "memory that a destroyed list, memory or semaphore had had",
                 "that nobody writes to it", fmt::format("that a block of {} bytes was written to", touched)))
      return;
    delete &shared;
  }
}

void queue_host_bytes_after_completed(Session& s) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const std::vector<uint8_t> contents = noise(page);
  struct Shared {
    Session& s;
    List list = nullptr;
    Memory imported;
    Pages commands, source, target;
  };
  // Destroys a list, including its commands and the data to which they point.
  const Memory memory = s.allocate(page);
  {
    auto& shared = *new Shared{s, nullptr, {}, {s, page}, {s, page}, {s, page}};
    std::ranges::copy(contents, shared.source.data());
    const Recording recording =
        Recording().update(shared.source.data(), range(memory.handle, 0, page)).barrier();
    halyard_command_list_args_t args = recording.args(0);
    args.affinity = s.all_queues();
    std::memcpy(shared.commands.data(), args.commands, args.commands_size);
    args.commands = reinterpret_cast<const halyard_command_t*>(shared.commands.data());
    s.must("command_list_create", "command_list_create",
           s.take(s.table().command_list_create(s.device(), &args, &shared.list)));
    Work& work = s.submit(
        execute_operation(shared.list, {}), {}, {}, 0,
        [](void* user) {
          auto& it = *static_cast<Shared*>(user);
          it.s.table().command_list_destroy(it.s.device(), it.list);
          it.commands.take_away();
          it.source.take_away();
        },
        &shared);
    s.must("R63", "a list with an update", s.end_of(work));
    s.step("after completed of a list, whose commands and source are no longer there");
    let_late_ones_come(s);
    same_bytes(s, "R63", "what an update has written", contents, s.read(memory));
  }
  // The source of an update operation.
  if (s.does(HALYARD_OPERATION_UPDATE)) {
    auto& shared = *new Shared{s, nullptr, {}, {s, page}, {s, page}, {s, page}};
    std::ranges::copy(contents, shared.source.data());
    Work& work = s.submit(
        update_operation(shared.source.data(), range(memory.handle, 0, page)), {}, {}, 0,
        [](void* user) { static_cast<Shared*>(user)->source.take_away(); }, &shared);
    s.must("R63", "an update as an operation", s.end_of(work));
    s.step("after completed of an update, whose source is no longer there");
    let_late_ones_come(s);
  }
  // Imported host bytes.
  if (s.properties().import_alignment == 0 || page % s.properties().import_alignment != 0 ||
      !s.table().memory_import)
    return;
  auto& shared = *new Shared{s, nullptr, {}, {s, page}, {s, page}, {s, page}};
  const halyard_memory_request_t request = s.request(page, HALYARD_MEMORY_OPTIMAL | kStaging);
  const halyard_external_memory_t external = {.struct_size = sizeof external,
                                              .kind = HALYARD_EXTERNAL_HOST_ALLOCATION,
                                              .pointer = shared.target.data(),
                                              .fd = -1,
                                              .access = HALYARD_MAP_READ | HALYARD_MAP_WRITE,
                                              .size = page};
  halyard_memory_info_t info = {.struct_size = sizeof info};
  s.must("memory_import", "memory_import",
         s.take(s.table().memory_import(s.device(), &request, &external, &shared.imported.handle, &info)));
  shared.list = s.list(Recording().fill(range(shared.imported.handle, 0, page), 3, 1).barrier());
  Work& work = s.submit(
      execute_operation(shared.list, {}), {}, {}, 0,
      [](void* user) {
        auto& it = *static_cast<Shared*>(user);
        it.s.destroy(it.list);
        it.s.table().memory_free(it.s.device(), it.imported.handle);
        same_bytes(it.s, "R63", "imported bytes in completed", std::vector<uint8_t>(it.target.size(), 3),
                   {it.target.data(), it.target.size()});
        it.target.take_away();
      },
      &shared);
  s.must("R63", "a fill of imported bytes", s.end_of(work));
  s.step("after completed of a fill of imported bytes, which are no longer there");
  let_late_ones_come(s);
}

void queue_bytes_after_completed(Session& s) {
  constexpr uint64_t kSize = uint64_t{4} << 20;  // bytes; a signal that is too early is detected at the end
  struct Shared {
    Session& s;
    Memory memory;
  } shared = {s, s.allocate(kSize)};
  if (!shared.memory.visible() || !shared.memory.coherent())
    unsupported(
        "staging memory is not coherent: writes of the host and of late work could not be told apart");
  const std::vector<uint8_t> mine = noise(kSize, 3);
  for (uint32_t round = 1; round <= 3 && !s.failed(); ++round) {
    const List list = s.list(Recording().fill(range(shared.memory.handle, 0, kSize), round, 1));
    Work& work = s.submit(
        execute_operation(list, {}), {}, {}, 0,
        [](void* user) {
          auto& it = *static_cast<Shared*>(user);
          until_stopped([&it] {
            const std::vector<uint8_t> last = it.s.read(it.memory, kSize - 64, 64);
            it.s.check("R63", last.front() == last.back() && last.front() != 0,
                       "the end of a large fill, in completed", "the pattern",
                       fmt::format("0x{:02x} and 0x{:02x}", last.front(), last.back()));
            it.s.write(it.memory, 0, noise(kSize, 3));
          });
        },
        &shared);
    s.must("R63", "a large fill", s.end_of(work));
    let_late_ones_come(s);
    same_bytes(s, "R65", "what the host wrote in completed of a large fill", mine, s.read(shared.memory));
  }
}

}  // namespace halyard::cts
