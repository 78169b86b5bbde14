// Several devices of one driver share no state [R25]: the device is opened once more in the same instance,
// and once more in another instance.
#include <array>

#include "bytes.h"
#include "cases.h"

namespace halyard::cts {

namespace {

std::array<Session*, 2> open_two_beside(Session& s) {
  return {&s.open_beside(Session::Beside::same_instance), &s.open_beside(Session::Beside::own_instance)};
}

}  // namespace

void device_statistics_of_each(Session& s) {
  constexpr uint64_t kSize = 3 << 20;
  for (Session* const other : open_two_beside(s)) {
    const halyard_memory_statistics_t before = other->memory_statistics();
    const Memory memory = s.allocate(kSize);
    const halyard_memory_statistics_t after = other->memory_statistics();
    s.free(memory);
    const auto same = [&](const char* what, uint64_t expected, uint64_t found) {
      s.equal("R25", fmt::format("{} of a device while another one has allocated {} bytes", what, kSize),
              expected, found);
    };
    same("host_bytes_live", before.host_bytes_live, after.host_bytes_live);
    same("device_bytes_live", before.device_bytes_live, after.device_bytes_live);
    same("host_bytes_allocated", before.host_bytes_allocated, after.host_bytes_allocated);
    same("device_bytes_allocated", before.device_bytes_allocated, after.device_bytes_allocated);
  }
}

void device_memory_of_each(Session& s) {
  constexpr size_t kSize = 4096, kMany = 16;
  std::vector<Memory> own;
  std::vector<std::vector<uint8_t>> contents;
  const auto allocate = [&] {
    const auto seed = static_cast<uint32_t>(own.size() + 1);
    own.push_back(s.allocate(contents.emplace_back(noise(kSize, seed))));
  };
  const auto is_unchanged = [&](const char* when) {
    for (size_t i = 0; i < own.size(); ++i)
      if (!same_bytes(s, "R25", fmt::format("memory of a device {}", when), contents[i], s.read(own[i])))
        return;
  };
  for (Session* const other : open_two_beside(s)) {
    std::vector<Memory> foreign;
    for (size_t i = 0; i < kMany; ++i) {  // in turns, as pools that devices share would interleave them
      allocate();
      foreign.push_back(other->allocate(noise(kSize, 0xF00D)));
    }
    is_unchanged("beside memory of another one");
    for (size_t i = 0; i < kMany / 2; ++i) other->free(foreign[i]);
    if (other->table().device_trim)
      s.must("device_trim", "device_trim", other->take(other->table().device_trim(other->device())));
    is_unchanged("after another one has freed and trimmed memory");
    other->close();
    is_unchanged("after another one was closed");
    allocate();
    is_unchanged("after another one was closed and this one has allocated again");
  }
}

void device_work_of_each(Session& s) {
  for (Session* const other : open_two_beside(s)) {
    const Semaphore wait = s.semaphore(), signal = s.semaphore(7);
    const Memory memory = s.allocate(std::vector<uint8_t>(64, 1));
    const List list = s.list(Recording().fill(range(memory.handle, 0, 64), 5, 1));
    Work& work = s.submit(execute_operation(list, {}), {{wait, 1}}, {{signal, 8}});
    // Work of the other device is done although work of this one waits.
    const Semaphore reached = other->semaphore();
    Work& foreign = other->submit(barrier_operation(), {}, {{reached, 1}});
    s.must("R25", "work of a device while work of another one waits", other->end_of(foreign));
    other->close();
    s.value_is("R25", "the signal of work that waits, after another device was closed", signal, 7);
    s.must("semaphore_signal", "a signal for the work that waits", s.signal(wait, 1));
    s.must("R25", "work that waited while another device was closed", s.end_of(work));
    s.value_is("R25", "its signal", signal, 8);
    same_bytes(s, "R25", "the bytes that it filled", std::vector<uint8_t>(64, 5), s.read(memory));
  }
}

}  // namespace halyard::cts
