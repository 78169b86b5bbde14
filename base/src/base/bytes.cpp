// Sources of Bytes: mapped files, standard input, copies.
#include "base/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/system_error.h"

namespace halyard {

const ObjectType Bytes::kType = object_type<Bytes>("bytes");

namespace {

std::unexpected<Status> file_error(const std::string& path, const char* action) {
  const int number = errno;
  return fail(code_of_errno(number), "cannot {} file '{}': {}; check the path", action, path,
              std::strerror(number));
}

uint8_t* aligned_memory(size_t size) {
  constexpr size_t kAlignment = 64;
  void* memory = std::aligned_alloc(kAlignment, (size + kAlignment) / kAlignment * kAlignment);
  if (!memory) throw std::bad_alloc();
  return static_cast<uint8_t*>(memory);
}

// Reads in pieces, so that the data is moved only once.
Result<Ref<Bytes>> read_all(int file, const std::string& path) {
  constexpr size_t kPiece = size_t{1} << 20;
  constexpr size_t kMaxStreamBytes = size_t{1} << 30;  // /dev/zero never ends
  std::vector<std::vector<uint8_t>> pieces;
  size_t size = 0;
  while (true) {
    if (size == pieces.size() * kPiece) pieces.emplace_back(kPiece);
    const size_t used = size % kPiece;
    const ssize_t count = ::read(file, pieces.back().data() + used, kPiece - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, "read");
    if (count == 0) break;
    size += static_cast<size_t>(count);
    if (size > kMaxStreamBytes)
      return fail(
          Code::RESOURCE_EXHAUSTED,
          "'{}' has more than {} bytes and is not a regular file; save its contents to a regular file "
          "first",
          path, kMaxStreamBytes);
  }
  uint8_t* const memory = aligned_memory(size);
  Ref<Bytes> bytes = Bytes::borrow({memory, size}, [memory] { std::free(memory); });
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t begin = i * kPiece;
    std::memcpy(memory + begin, pieces[i].data(), std::min(kPiece, size - begin));
    pieces[i] = {};
  }
  return bytes;
}

// `released` runs in every case.
Ref<Bytes> own_memory(std::span<const uint8_t> bytes, std::function<void()> released, bool is_private,
                      const std::optional<FileVersion>& file = std::nullopt) {
  try {
    return make<Bytes>(bytes, std::move(released), is_private, file);
  } catch (const std::bad_alloc&) {
    if (released) released();
    throw;
  }
}

class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (file_ > STDIN_FILENO) ::close(file_);
  }
  int get() const { return file_; }

 private:
  int file_;
};

}  // namespace

Result<Ref<Bytes>> Bytes::map_file(const std::string& path) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input");
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return file_error(path, "open");
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return file_error(path, "inspect");
  if (S_ISDIR(info.st_mode)) return fail(Code::INVALID_ARGUMENT, "'{}' is a folder; expected a file", path);
  if (!S_ISREG(info.st_mode)) return read_all(file.get(), path);
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return borrow({}, {});
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (address == MAP_FAILED) return file_error(path, "map");
  // Makes the mapping writable, copy-on-write. If the system does not grant that much memory (ulimit -d,
  // strict overcommit), the mapping stays read-only, and a device that must write to it makes a copy. Shared
  // libraries always stay read-only: nothing writes to them, and debuggers mistake a writable mapping for a
  // loaded library.
  constexpr uint8_t kElf[] = {0x7F, 'E', 'L', 'F'};
  const bool is_library = size >= sizeof kElf && std::memcmp(address, kElf, sizeof kElf) == 0;
  const bool is_private = !is_library && ::mprotect(address, size, PROT_READ | PROT_WRITE) == 0;
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  const FileVersion version = {info.st_dev, info.st_ino, size, nanoseconds(info.st_mtim),
                               nanoseconds(info.st_ctim)};
  return own_memory(
      {static_cast<const uint8_t*>(address), size}, [address, size] { ::munmap(address, size); }, is_private,
      version);
}

Ref<Bytes> Bytes::copy(std::span<const uint8_t> bytes) {
  uint8_t* memory = aligned_memory(bytes.size());
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return own_memory({memory, bytes.size()}, [memory] { std::free(memory); }, true);
}

Result<Ref<Bytes>> Bytes::copy(std::span<const uint8_t> bytes,
                               const std::function<Result<>(size_t)>& copied) {
  constexpr size_t kPiece = size_t{16} << 20;
  uint8_t* memory = aligned_memory(bytes.size());
  Ref<Bytes> made = own_memory({memory, bytes.size()}, [memory] { std::free(memory); }, true);
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min(kPiece, bytes.size() - at);
    std::memcpy(memory + at, bytes.data() + at, size);
    at += size;
    HALYARD_TRY(copied(at));
  }
  return made;
}

Ref<Bytes> Bytes::own(std::vector<uint8_t> bytes) { return copy(bytes); }

Ref<Bytes> Bytes::borrow(std::span<const uint8_t> bytes, std::function<void()> released) {
  return own_memory(bytes, std::move(released), false);
}

}  // namespace halyard
