// An entry is a header and the image. It is written under another name and then renamed, so that readers see
// all of it or nothing. A digest over the whole entry detects damage.
#include "front/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace halyard::jit {

namespace {

constexpr char kMagic[8] = {'H', 'A', 'L', 'J', 'I', 'T', '0', '2'};
constexpr std::string_view kSuffix = ".object";
constexpr std::string_view kUnfinished = PrivateFolder::kUnfinished;
constexpr time_t kForgotten = 3600;  // seconds after which an unfinished entry is considered abandoned
constexpr uint64_t kMaxImage = uint64_t{16} << 20;

struct Header {
  char magic[sizeof kMagic];
  uint64_t size;  // of the image, in bytes
  Digest digest;  // over the key, then the image
};

Digest digest_of(const Digest& key, std::string_view image) {
  Digester digester;
  digester.add(std::span<const uint8_t>(key));
  digester.add(image);
  return digester.finish();
}

std::string name_of(const Digest& key) { return fmt::format("{:02x}{}", fmt::join(key, ""), kSuffix); }

// Returns the image of an entry that is undamaged and has this key.
std::optional<std::string> image_in(std::string_view entry, const Digest& key) {
  Header header = {};
  if (entry.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof header);
  const std::string_view image = entry.substr(sizeof header);
  if (!std::equal(std::begin(kMagic), std::end(kMagic), header.magic) || header.size != image.size() ||
      digest_of(key, image) != header.digest)
    return std::nullopt;
  return std::string(image);
}

}  // namespace

Cache::Cache(const std::string& folder, uint64_t most_bytes) : folder_(folder), most_bytes_(most_bytes) {
  if (!folder_.refusal().empty()) refusal_ = "cache " + folder_.refusal();
}

std::optional<std::string> Cache::find(const Digest& key) const {
  const std::string name = name_of(key);
  const std::optional<std::string> entry = folder_.read(name, sizeof(Header) + kMaxImage);
  std::optional<std::string> image = entry ? image_in(*entry, key) : std::nullopt;
  if (image) {
    folder_.touch(name);
  } else if (entry) {
    folder_.remove(name);
  }
  return image;
}

void Cache::store(const Digest& key, std::string_view image) const {
  if (!refusal_.empty() || image.size() > std::min(kMaxImage, most_bytes_)) return;
  Header header = {};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.size = image.size();
  header.digest = digest_of(key, image);
  make_room(sizeof header + image.size());
  folder_.write(name_of(key), {{reinterpret_cast<const char*>(&header), sizeof header}, image});
}

// Removes the least recently used entries until `bytes` more fit.
void Cache::make_room(uint64_t bytes) const {
  struct Entry {
    std::string name;
    timespec used;
    uint64_t size;
  };
  const int copy = ::openat(folder_.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
        ::fstatat(folder_.descriptor(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (name.ends_with(kUnfinished)) {
      if (info.st_mtim.tv_sec + kForgotten < now) ::unlinkat(folder_.descriptor(), entry->d_name, 0);
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
    if (::unlinkat(folder_.descriptor(), entry.name.c_str(), 0) == 0) total -= entry.size;
  }
}

}  // namespace halyard::jit
