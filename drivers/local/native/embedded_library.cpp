// Loads embedded ELF libraries into memory. The memory is reserved in one piece and filled while none of it
// is executable. Then it is protected so that no page is both writable and executable.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "elf_file.h"
#include "elf_image.h"
#include "fat_elf.h"
#include "native_code.h"
#include "processor.h"

namespace halyard::local {

namespace {

uint64_t page_size() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// A range of this process's address space, unmapped in the destructor.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation() {
    if (start_) munmap(start_, size_);
  }

  // The range is not accessible yet. Null: the system has no memory.
  static Reservation make(uint64_t size) {
    Reservation made;
    void* start = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return made;
    made.start_ = static_cast<uint8_t*>(start);
    made.size_ = size;
    return made;
  }
  uint8_t* start() const { return start_; }

 private:
  uint8_t* start_ = nullptr;
  uint64_t size_ = 0;
};

Result<> protect(uint8_t* start, uint64_t size, int access) {
  if (size == 0 || mprotect(start, size, access) == 0) return {};
  return fail(Code::PERMISSION_DENIED,
              "the system does not allow {} bytes of memory to be {}: {}; allow it for this process, or run "
              "the program without native code",
              size, access & PROT_EXEC ? "executed" : "used", std::generic_category().message(errno));
}

class EmbeddedLibrary final : public NativeCode {
 public:
  EmbeddedLibrary(ElfImage image, Reservation memory)
      : exports_(named_exports(image)), image_(std::move(image)), memory_(std::move(memory)) {
    const auto start = reinterpret_cast<uintptr_t>(memory_.start());
    const uint64_t base = (start + image_.alignment - 1) / image_.alignment * image_.alignment;
    base_ = memory_.start() + (base - start);
  }

  Result<> fill(FileBytes file) {
    HALYARD_TRY(protect(base_, image_.size, PROT_READ | PROT_WRITE));
    HALYARD_TRY(place_elf(image_, file, {base_, image_.size}, reinterpret_cast<uintptr_t>(base_)));
    uint64_t done = image_.begin;  // the pages before this address have their final protection
    for (const ElfSegment& segment : image_.segments) {
      const uint64_t first = segment.address / image_.page * image_.page;
      const uint64_t end = (segment.end() + image_.page - 1) / image_.page * image_.page;
      HALYARD_TRY(protect(at(done), first - done, PROT_NONE));
      HALYARD_TRY(protect(at(first), end - first, access(segment)));
      if (segment.executable)
        __builtin___clear_cache(reinterpret_cast<char*>(at(first)), reinterpret_cast<char*>(at(end)));
      done = end;
    }
    return protect(at(image_.read_only_later.address), image_.read_only_later.size, PROT_READ);
  }

  Result<> initialize() {
    if (image_.initializer != 0) reinterpret_cast<void (*)()>(at(image_.initializer))();
    for (uint64_t i = 0; i < image_.initializers.size; i += sizeof(uint64_t)) {
      uint64_t address = 0;
      std::memcpy(&address, at(image_.initializers.address + i), sizeof address);
      if (address == 0 || address == UINT64_MAX) continue;
      const uint64_t in_file = address - reinterpret_cast<uintptr_t>(base_) + image_.begin;
      if (!image_.has_memory(in_file, 1, &ElfSegment::executable))
        return broken_elf("an initializer at address {:#x} is not code of the library", in_file);
      reinterpret_cast<void (*)()>(at(in_file))();
    }
    return {};
  }

  void* find(const char* name) const override {
    const auto found = std::ranges::find(exports_, std::string_view(name), &Export::name);
    if (found == exports_.end()) return nullptr;
    return image_.has_memory(found->address, 1, &ElfSegment::executable) ? at(found->address) : nullptr;
  }

 private:
  uint8_t* at(uint64_t address) const { return base_ + (address - image_.begin); }

  static int access(const ElfSegment& segment) {
    if (segment.executable) return PROT_READ | PROT_EXEC;
    return segment.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  }

  // Names are copied, because the file is freed. Very long names, which many symbols may share, are dropped,
  // because nothing looks them up.
  struct Export {
    std::string name;
    uint64_t address;
  };
  static constexpr size_t kMaxName = 128;
  static std::vector<Export> named_exports(const ElfImage& image) {
    std::vector<Export> exports;
    for (const ElfExport& exported : image.exports)
      if (exported.name.size() <= kMaxName) exports.push_back({std::string(exported.name), exported.address});
    return exports;
  }

  const std::vector<Export> exports_;
  const ElfImage image_;
  const Reservation memory_;
  uint8_t* base_ = nullptr;
};

struct Found {
  FileBytes library;
  ElfImage image;
};

Result<Found> read(FileBytes file) {
  const ElfArchitecture* architecture = host_architecture();
  if (!architecture)
    return fail(Code::UNIMPLEMENTED, "native executables are not supported on this architecture");
  const FileBytes library = HALYARD_TRY(choose_from_fat_elf(file, *architecture));
  ElfImage image = HALYARD_TRY(read_elf(library, *architecture, page_size()));
  HALYARD_TRY(check_processor_levels(image.needed_levels));
  return Found{library, std::move(image)};
}

}  // namespace

Result<std::unique_ptr<NativeCode>> load_embedded_library(FileBytes file) {
  Found found = HALYARD_TRY(read(file));
  // Mapped memory starts at a page. A larger alignment skips part of the mapping.
  const uint64_t size = found.image.size + found.image.alignment - found.image.page;
  Reservation memory = Reservation::make(size);
  if (!memory.start())
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for the {} bytes of an ELF library: {}", size,
                std::generic_category().message(errno));
  auto library = std::make_unique<EmbeddedLibrary>(std::move(found.image), std::move(memory));
  HALYARD_TRY(library->fill(found.library));
  HALYARD_TRY(library->initialize());
  return library;
}

Result<> judge_embedded_library(FileBytes file, const char* function) {
  const Found found = HALYARD_TRY(read(file));
  const std::string_view wanted = function;
  if (std::ranges::find(found.image.exports, wanted, &ElfExport::name) == found.image.exports.end())
    return fail(Code::FAILED_PRECONDITION, "the ELF library has no function '{}'", wanted);
  return {};
}

}  // namespace halyard::local
