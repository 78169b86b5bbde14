// Loads shared libraries with the system's loader, bytes through a file that only this process can see.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "elf_file.h"
#include "native_code.h"
#include "processor.h"

namespace halyard::local {

namespace {

// A footer that may follow the library: the offsets of the library and of its debug information.
struct Footer {
  char magic[8];
  uint32_t version;
  uint32_t flags;
  uint64_t library_offset;
  uint64_t library_size;
  uint64_t debug_offset;
  uint64_t debug_size;
};
static_assert(sizeof(Footer) == 48);
constexpr char kFooterMagic[8] = {'I', 'R', 'E', 'E', 'D', 'B', 'G', 0};

Result<FileBytes> without_footer(FileBytes file) {
  if (file.size() < sizeof(Footer)) return file;
  const auto footer = *read_at<Footer>(file, file.size() - sizeof(Footer));
  if (std::memcmp(footer.magic, kFooterMagic, sizeof kFooterMagic) != 0) return file;
  const auto library = part(file, footer.library_offset, footer.library_size);
  if (footer.version != 0 || !library)
    return broken_elf("its debug footer, version {}, names {} bytes at {} of {}", footer.version,
                      footer.library_size, footer.library_offset, file.size());
  return *library;
}

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  void leave_open() { number_ = -1; }

 private:
  int number_;
};

Result<Descriptor> private_file(FileBytes bytes) {
  const auto failed = [&](const char* what) {
    return fail(Code::RESOURCE_EXHAUSTED, "cannot {} a file in memory for a library of {} bytes: {}", what,
                bytes.size(), std::generic_category().message(errno));
  };
  Descriptor file(memfd_create("halyard-executable", MFD_CLOEXEC));
  if (file.number() < 0) return failed("make");
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed("write");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return file;
}

class SystemLibrary final : public NativeCode {
 public:
  // Symbols are bound eagerly, so that a missing function is found now and not during a dispatch. They are
  // invisible to other libraries.
  static Result<std::unique_ptr<NativeCode>> open(std::string path, Descriptor file) {
    auto library = std::make_unique<SystemLibrary>(std::move(path), std::move(file));
    library->handle_ = dlopen(library->path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library->handle_) {
      const char* reason = dlerror();
      return fail(Code::FAILED_PRECONDITION, "the system's loader refuses the library: {}",
                  reason ? reason : "no reason given");
    }
    return library;
  }
  SystemLibrary(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  ~SystemLibrary() override {
    if (!handle_) return;
    dlclose(handle_);
    // The loader identifies libraries by path, which contains the number of the descriptor. If the library
    // stays loaded, the descriptor is leaked, so that no other library can get the same path.
    if (file_.number() < 0) return;
    if (void* same = dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(same);
      file_.leave_open();
    }
  }

  void* find(const char* name) const override { return dlsym(handle_, name); }

 private:
  void* handle_ = nullptr;
  const std::string path_;
  Descriptor file_;
};

Result<FileBytes> read(FileBytes file) {
  const ElfArchitecture* architecture = host_architecture();
  if (!architecture)
    return fail(Code::UNIMPLEMENTED, "native executables are not supported on this architecture");
  const FileBytes library = HALYARD_TRY(without_footer(file));
  HALYARD_TRY(check_elf_header(library, *architecture));
  HALYARD_TRY(check_processor_levels(needed_processor_levels(library, *architecture)));
  return library;
}

}  // namespace

Result<std::unique_ptr<NativeCode>> load_system_library(FileBytes file) {
  const FileBytes library = HALYARD_TRY(read(file));
  Descriptor copy = HALYARD_TRY(private_file(library));
  // Not /proc/self, because other code in this process may have used that path for another file with this
  // number.
  std::string path = fmt::format("/proc/{}/fd/{}", getpid(), copy.number());
  return SystemLibrary::open(std::move(path), std::move(copy));
}

Result<std::unique_ptr<NativeCode>> load_system_library_file(const std::string& path) {
  return SystemLibrary::open(path, Descriptor());
}

Result<> judge_system_library(FileBytes file) {
  HALYARD_TRY(read(file));
  return {};
}

}  // namespace halyard::local
