// The library finds the note in its own image.
#include "jit/build_id.h"

#include <elf.h>
#include <link.h>
#include <llvm/Config/llvm-config.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace halyard::jit {

std::string build_id() {
  struct Search {
    uintptr_t inside;
    std::string found;
  } search = {reinterpret_cast<uintptr_t>(&build_id), {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& wanted = *static_cast<Search*>(data);
        const std::span<const ElfW(Phdr)> headers(info->dlpi_phdr, info->dlpi_phnum);
        const auto holds = [&](const ElfW(Phdr) & header) {
          return header.p_type == PT_LOAD &&
                 wanted.inside - info->dlpi_addr - header.p_vaddr < header.p_memsz;
        };
        if (std::ranges::none_of(headers, holds)) return 0;
        for (const ElfW(Phdr) & header : headers) {
          if (header.p_type != PT_NOTE) continue;
          const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
          const char* const end = at + header.p_memsz;
          while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const size_t name = (note.n_namesz + 3u) & ~3u;
            const char* const bytes = at + sizeof note + name;
            if (note.n_type == NT_GNU_BUILD_ID) wanted.found.assign(bytes, note.n_descsz);
            at = bytes + ((note.n_descsz + 3u) & ~3u);
          }
        }
        return 1;
      },
      &search);
  return search.found.empty() ? search.found : search.found + LLVM_VERSION_STRING;
}

}  // namespace halyard::jit
