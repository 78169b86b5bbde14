// Where Bytes come from: files by mmap, standard input, copies.
#include "base/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace halyard {

const ObjectType Bytes::kType = object_type<Bytes>("bytes");

namespace {

std::unexpected<Status> file_error(const std::string& path, const char* action) {
  const int number = errno;
  const Code code = number == ENOENT || number == ENOTDIR ? Code::NOT_FOUND
                    : number == EACCES || number == EPERM ? Code::PERMISSION_DENIED
                                                          : Code::UNAVAILABLE;
  return fail(code, "cannot {} file '{}': {}; check the path", action, path, std::strerror(number));
}

Result<Ref<Bytes>> read_all(int file, const std::string& path) {
  std::vector<uint8_t> bytes;
  constexpr size_t kStep = 1 << 16;
  constexpr size_t kMostOfAStream = size_t{1} << 32;  // /dev/zero never ends
  while (true) {
    const size_t size = bytes.size();
    bytes.resize(size + kStep);
    const ssize_t count = ::read(file, bytes.data() + size, kStep);
    if (count < 0 && errno == EINTR) {
      bytes.resize(size);
      continue;
    }
    if (count < 0) return file_error(path, "read");
    bytes.resize(size + static_cast<size_t>(count));
    if (count == 0) return Bytes::copy(bytes);
    if (bytes.size() > kMostOfAStream)
      return fail(Code::RESOURCE_EXHAUSTED, "'{}' gives more than {} bytes; save it as a file first", path,
                  kMostOfAStream);
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
  if (size == 0) return make<Bytes>(std::span<const uint8_t>(), std::function<void()>());
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return file_error(path, "map");
  return borrow({static_cast<const uint8_t*>(address), size}, [address, size] { ::munmap(address, size); });
}

Ref<Bytes> Bytes::copy(std::span<const uint8_t> bytes) {
  constexpr size_t kAlignment = 64;
  const size_t capacity = (bytes.size() + kAlignment) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, capacity);
  if (!memory) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return borrow({static_cast<const uint8_t*>(memory), bytes.size()}, [memory] { std::free(memory); });
}

Ref<Bytes> Bytes::own(std::vector<uint8_t> bytes) { return copy(bytes); }

Ref<Bytes> Bytes::borrow(std::span<const uint8_t> bytes, std::function<void()> released) {
  try {
    return make<Bytes>(bytes, std::move(released));
  } catch (const std::bad_alloc&) {
    if (released) released();
    throw;
  }
}

}  // namespace halyard
