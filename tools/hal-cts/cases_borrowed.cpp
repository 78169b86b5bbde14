// Borrowed memory: the driver must not read beyond its end, nor write outside of the range.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bytes.h"
#include "cases.h"

namespace halyard::cts {

void executable_nothing_behind_the_data(Session& s) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const Program* program : s.programs()) {
    const uint64_t size = program->data.size(), room = (size + page - 1) / page * page;
    void* const pages =
        mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
      s.stop("R92", "pages of this case", "that the system gives some", std::strerror(errno));
    uint8_t* const data = static_cast<uint8_t*>(pages) + (room - size);
    std::ranges::copy(program->data, data);
    mprotect(data + size, page, PROT_NONE);
    s.step(fmt::format("executable_grade of {} whose last byte is the last of a page", program->format));
    s.check("R90", s.grade(program->format, {data, size}).grade >= HALYARD_GRADE_LOADABLE,
            "the grade of data at the end of a page", "LOADABLE or NATIVE", "less");
    s.step(fmt::format("executable_create of {} whose last byte is the last of a page", program->format));
    Executable executable = nullptr;
    s.must("R92", "executable_create of data at the end of a page",
           s.try_executable(program->format, {data, size}, &executable));
    s.destroy(executable);
    munmap(pages, room + page);
  }
}

void list_overlap_through_slots(Session& s) {
  constexpr uint64_t kSize = 4096, kLength = 1024, kFrom = 512;
  for (const uint64_t to : {kFrom, kFrom + 4, kFrom + 256, kFrom - 256, kFrom + kLength - 1}) {
    const std::vector<uint8_t> begin = noise(kSize);
    const Memory memory = s.allocate(begin);
    const List list = s.list(Recording().copy(slot(0, 0, kLength), slot(1, 0, kLength)), 2);
    const std::string what =
        fmt::format("a copy of {} bytes from {} to {} of one memory, through slots", kLength, kFrom, to);
    const Outcome outcome = s.execute(list, {{memory.handle, kFrom, kLength}, {memory.handle, to, kLength}});
    if (!outcome.ok()) s.refused("R104", what, HALYARD_INVALID_ARGUMENT, outcome);
    // The contents of the target are undefined now; the bytes around it are defined.
    std::vector<uint8_t> found = s.read(memory);
    std::copy_n(begin.begin() + static_cast<ptrdiff_t>(to), kLength,
                found.begin() + static_cast<ptrdiff_t>(to));
    if (!same_bytes(s, "R104", "bytes outside of the target of " + what, begin, found)) return;
    s.free(memory);
  }
}

}  // namespace halyard::cts
