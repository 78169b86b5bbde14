// An entry is a header and the image. It is written under another name and then renamed, so who reads it
// sees all of it or nothing; a digest over everything says whether it is what was written.
#include "front/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/ranges.h>
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

constexpr char kMagic[8] = {'H', 'A', 'L', 'J', 'I', 'T', '0', '2'};
constexpr std::string_view kSuffix = ".object";
constexpr std::string_view kUnfinished = ".unfinished";
constexpr time_t kForgotten = 3600;  // seconds after which an unfinished entry belongs to nobody
constexpr uint64_t kMostImage = uint64_t{16} << 20;

struct Header {
  char magic[sizeof kMagic];
  uint64_t size;  // of the image
  Digest digest;  // of the key, then the image
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

Digest digest_of(const Digest& key, std::string_view image) {
  Digester digester;
  digester.add(std::span<const uint8_t>(key));
  digester.add(image);
  return digester.finish();
}

std::string name_of(const Digest& key) { return fmt::format("{:02x}{}", fmt::join(key, ""), kSuffix); }

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

std::optional<std::string> Cache::find(const Digest& key) const {
  if (!refusal_.empty()) return std::nullopt;
  const std::string name = name_of(key);
  const File file(::openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || !is_ours_alone(info))
    return std::nullopt;
  Header header = {};
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size >= sizeof header && size - sizeof header <= kMostImage &&
      read_all(file.get(), reinterpret_cast<char*>(&header), sizeof header) &&
      std::equal(std::begin(kMagic), std::end(kMagic), header.magic) && header.size == size - sizeof header) {
    std::string image(header.size, '\0');
    if (read_all(file.get(), image.data(), image.size()) && digest_of(key, image) == header.digest) {
      ::futimens(file.get(), nullptr);  // used now
      return image;
    }
  }
  ::unlinkat(folder_, name.c_str(), 0);
  return std::nullopt;
}

void Cache::store(const Digest& key, std::string_view image) const {
  if (!refusal_.empty() || image.size() > std::min(kMostImage, most_bytes_)) return;
  static std::atomic<uint64_t> count = 0;
  Header header = {};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.size = image.size();
  header.digest = digest_of(key, image);
  make_room(sizeof header + image.size());
  const std::string unfinished =
      std::to_string(::getpid()) + "-" + std::to_string(count++) + std::string(kUnfinished);
  {
    const File file(
        ::openat(folder_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.get() < 0) return;
    if (write_all(file.get(), &header, sizeof header) && write_all(file.get(), image.data(), image.size()) &&
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
