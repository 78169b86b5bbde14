// An entry is a header and the object. It is written under another name and then renamed, so who reads it
// sees all of it or nothing; a digest over everything says whether it is what was written.
#include "jit/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace halyard::jit {

namespace {

constexpr char kMagic[8] = {'H', 'A', 'L', 'J', 'I', 'T', '0', '1'};
constexpr std::string_view kSuffix = ".object";
constexpr std::string_view kUnfinished = ".unfinished";
constexpr time_t kForgotten = 3600;  // seconds after which an unfinished entry belongs to nobody
constexpr uint64_t kMostObject = uint64_t{16} << 20;

struct Header {
  char magic[sizeof kMagic];
  uint64_t size;  // of the object
  Digest digest;  // of the key, then the object
};

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Digest digest_of(const Digest& key, std::span<const char> object) {
  llvm::SHA256 sha;
  sha.update(llvm::ArrayRef<uint8_t>(key));
  sha.update(llvm::StringRef(object.data(), object.size()));
  return sha.final();
}

std::string name_of(const Digest& key) {
  return llvm::toHex(llvm::ArrayRef<uint8_t>(key), /*LowerCase=*/true) + std::string(kSuffix);
}

bool is_ours_alone(const struct stat& info) {
  return info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool read_all(int file, char* to, size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(file, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

bool write_all(int file, const void* from, size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t count = ::write(file, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

Cache::Cache(const std::string& folder, uint64_t most_bytes) : most_bytes_(most_bytes) {
  std::error_code error;
  const std::filesystem::path path(folder);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  ::mkdir(folder.c_str(), S_IRWXU);
  folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info = {};
  if (folder_ < 0 || ::fstat(folder_, &info) != 0) {
    refusal_ = "cache folder '" + folder + "' cannot be opened: " + std::strerror(errno);
  } else if (!is_ours_alone(info)) {
    refusal_ =
        "cache folder '" + folder + "' is not used: others own it or may write to it; expected mode 700";
  }
}

Cache::~Cache() {
  if (folder_ >= 0) ::close(folder_);
}

std::unique_ptr<llvm::MemoryBuffer> Cache::find(const Digest& key) const {
  if (!refusal_.empty()) return nullptr;
  const std::string name = name_of(key);
  const File file(::openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || !is_ours_alone(info))
    return nullptr;
  Header header = {};
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size >= sizeof header && size - sizeof header <= kMostObject &&
      read_all(file.get(), reinterpret_cast<char*>(&header), sizeof header) &&
      std::equal(std::begin(kMagic), std::end(kMagic), header.magic) && header.size == size - sizeof header) {
    auto object = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(header.size);
    if (object && read_all(file.get(), object->getBufferStart(), header.size) &&
        digest_of(key, {object->getBufferStart(), header.size}) == header.digest) {
      ::futimens(file.get(), nullptr);  // used now
      return object;
    }
  }
  ::unlinkat(folder_, name.c_str(), 0);
  return nullptr;
}

void Cache::store(const Digest& key, std::span<const char> object) const {
  if (!refusal_.empty() || object.size() > std::min(kMostObject, most_bytes_)) return;
  static std::atomic<uint64_t> count = 0;
  Header header = {};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.size = object.size();
  header.digest = digest_of(key, object);
  make_room(sizeof header + object.size());
  const std::string unfinished =
      std::to_string(::getpid()) + "-" + std::to_string(count++) + std::string(kUnfinished);
  {
    const File file(
        ::openat(folder_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.get() < 0) return;
    if (write_all(file.get(), &header, sizeof header) &&
        write_all(file.get(), object.data(), object.size()) &&
        ::renameat(folder_, unfinished.c_str(), folder_, name_of(key).c_str()) == 0)
      return;
  }
  ::unlinkat(folder_, unfinished.c_str(), 0);
}

// Removes what was not used for longest, until so much more fits.
void Cache::make_room(uint64_t bytes) const {
  struct Entry {
    std::string name;
    timespec used;
    uint64_t size;
  };
  const int copy = ::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!list) {
    if (copy >= 0) ::close(copy);
    return;
  }
  std::vector<Entry> entries;
  uint64_t total = bytes;
  const time_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(list)) {
    const std::string_view name = entry->d_name;
    struct stat info = {};
    if (!(name.ends_with(kSuffix) || name.ends_with(kUnfinished)) ||
        ::fstatat(folder_, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (name.ends_with(kUnfinished)) {
      if (info.st_mtim.tv_sec + kForgotten < now) ::unlinkat(folder_, entry->d_name, 0);
      continue;
    }
    total += static_cast<uint64_t>(info.st_size);
    entries.push_back({std::string(name), info.st_mtim, static_cast<uint64_t>(info.st_size)});
  }
  ::closedir(list);
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const Entry& entry : entries) {
    if (total <= most_bytes_) return;
    if (::unlinkat(folder_, entry.name.c_str(), 0) == 0) total -= entry.size;
  }
}

}  // namespace halyard::jit
