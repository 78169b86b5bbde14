// Reading and replacing the file.
#include "pipeline_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace halyard::vulkan {

namespace {

// Precedes the data, which begins with Vulkan's own header.
struct FileHeader {
  char magic[8] = {'H', 'L', 'Y', 'V', 'K', 'P', 'C', '1'};
  uint64_t size = 0;      // bytes of the data
  uint64_t checksum = 0;  // FNV-1a of the data
};
static_assert(sizeof(FileHeader) == 24);
constexpr uint64_t kLargestFile = uint64_t{512} << 20;

uint64_t checksum(std::string_view data) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : data) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

std::filesystem::path user_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && cache[0] == '/')
    return std::filesystem::path(cache) / "halyard";
  if (const char* home = std::getenv("HOME"); home && home[0] == '/')
    return std::filesystem::path(home) / ".cache" / "halyard";
  return {};
}

// A file descriptor that is closed in the destructor.
struct File {
  int fd = -1;
  explicit File(int opened) : fd(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

bool read_all(int fd, void* bytes, size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int fd, const void* bytes, size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t put = ::write(fd, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    size -= static_cast<size_t>(put);
  }
  return true;
}

// Whether the data has the header of this device's caches. Not every implementation checks it.
bool is_ours(std::string_view data, const VkPhysicalDeviceProperties& properties) {
  VkPipelineCacheHeaderVersionOne header = {};
  if (data.size() < sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.headerSize >= sizeof header && header.headerSize <= data.size() &&
         header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendorID == properties.vendorID && header.deviceID == properties.deviceID &&
         std::memcmp(header.pipelineCacheUUID, properties.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

}  // namespace

PipelineCache::PipelineCache(const Services& services, const DeviceFunctions& vk, VkDevice device,
                             const std::optional<std::string>& folder,
                             const VkPhysicalDeviceProperties& properties)
    : services_(services), vk_(vk), device_(device), properties_(properties) {
  const std::filesystem::path chosen = folder ? std::filesystem::path(*folder) : user_folder();
  if (chosen.empty()) return;
  std::string uuid;
  for (const uint8_t byte : properties.pipelineCacheUUID) uuid += fmt::format("{:02x}", byte);
  file_ = chosen / fmt::format("vulkan-{:x}-{:x}-{:x}-{}.cache", properties.vendorID, properties.deviceID,
                               properties.driverVersion, uuid);
}

std::string PipelineCache::read() const {
  const File file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  FileHeader header;
  constexpr FileHeader kExpected;
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto size = static_cast<uint64_t>(status.st_size);
  if (!read_all(file.fd, &header, sizeof header) ||
      std::memcmp(header.magic, kExpected.magic, sizeof header.magic) != 0 || header.size > kLargestFile ||
      header.size != size - sizeof header)
    return {};
  std::string data(header.size, '\0');
  if (!read_all(file.fd, data.data(), data.size()) || checksum(data) != header.checksum) return {};
  return is_ours(data, properties_) ? data : std::string();
}

Result<> PipelineCache::start() {
  const std::string data = file_.empty() ? std::string() : read();
  VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                    .initialDataSize = data.size(),
                                    .pInitialData = data.data()};
  if (!data.empty() && vk_.CreatePipelineCache(device_, &info, nullptr, &cache_) == VK_SUCCESS) {
    size_at_start_ = data.size();
    return {};
  }
  info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  return check(vk_.CreatePipelineCache(device_, &info, nullptr, &cache_), "vkCreatePipelineCache");
}

PipelineCache::~PipelineCache() {
  if (!cache_) return;
  if (!file_.empty() && grew_.load(std::memory_order_relaxed)) {
    try {
      write();
    } catch (const std::exception& exception) {
      const std::string_view what = exception.what();
      services_.log(services_.host, HALYARD_LOG_WARNING, what.data(), what.size());
    }
  }
  vk_.DestroyPipelineCache(device_, cache_, nullptr);
}

// Writes a temporary file and renames it.
void PipelineCache::write() {
  size_t size = 0;
  if (vk_.GetPipelineCacheData(device_, cache_, &size, nullptr) != VK_SUCCESS || size == size_at_start_)
    return;
  std::string data(size, '\0');
  if (vk_.GetPipelineCacheData(device_, cache_, &size, data.data()) != VK_SUCCESS) return;
  data.resize(size);
  if (!is_ours(data, properties_)) return;

  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  std::string temporary = file_.string() + ".XXXXXX";
  bool written = false;
  {
    const File file(::mkostemp(temporary.data(), O_CLOEXEC));
    FileHeader header;
    header.size = data.size();
    header.checksum = checksum(data);
    written = file.fd >= 0 && write_all(file.fd, &header, sizeof header) &&
              write_all(file.fd, data.data(), data.size());
    if (file.fd >= 0 && (!written || ::rename(temporary.c_str(), file_.c_str()) != 0)) {
      ::unlink(temporary.c_str());
      written = false;
    }
  }
  if (written) return;
  const std::string line =
      fmt::format("the pipeline cache cannot be written to '{}': {}; give another folder with option 'cache'",
                  file_.string(), std::strerror(errno));
  services_.log(services_.host, HALYARD_LOG_WARNING, line.data(), line.size());
}

}  // namespace halyard::vulkan
