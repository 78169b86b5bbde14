// Reads and replaces the file.
#include "pipeline_cache.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "halyard/private_folder.hpp"

namespace halyard::vulkan {

namespace {

// Precedes the data, which begins with Vulkan's own header.
struct FileHeader {
  char magic[8] = {'H', 'L', 'Y', 'V', 'K', 'P', 'C', '1'};
  uint64_t size = 0;      // bytes of the data
  uint64_t checksum = 0;  // FNV-1a of the data
};
static_assert(sizeof(FileHeader) == 24);
constexpr uint64_t kMaxData = uint64_t{512} << 20;

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

// Whether the data has the header of this device's caches. Checked here, because not every implementation
// does.
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
  const PrivateFolder folder(file_.parent_path(), PrivateFolder::Missing::stays);
  const std::optional<std::string> found = folder.read(file_.filename(), sizeof(FileHeader) + kMaxData);
  FileHeader header;
  constexpr FileHeader kExpected;
  if (!found || found->size() < sizeof header) return {};
  std::memcpy(&header, found->data(), sizeof header);
  std::string data = found->substr(sizeof header);
  if (std::memcmp(header.magic, kExpected.magic, sizeof header.magic) != 0 || header.size != data.size() ||
      checksum(data) != header.checksum || !is_ours(data, properties_))
    return {};
  return data;
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

void PipelineCache::write() {
  size_t size = 0;
  if (vk_.GetPipelineCacheData(device_, cache_, &size, nullptr) != VK_SUCCESS || size == size_at_start_)
    return;
  std::string data(size, '\0');
  if (vk_.GetPipelineCacheData(device_, cache_, &size, data.data()) != VK_SUCCESS) return;
  data.resize(size);
  if (!is_ours(data, properties_)) return;

  FileHeader header;
  header.size = data.size();
  header.checksum = checksum(data);
  const PrivateFolder folder(file_.parent_path());
  if (folder.write(file_.filename(), {{reinterpret_cast<const char*>(&header), sizeof header}, data})) return;
  const std::string reason =
      folder.refusal().empty() ? std::generic_category().message(errno) : folder.refusal();
  const std::string line =
      fmt::format("the pipeline cache cannot be written to '{}': {}; give another folder with option 'cache'",
                  file_.string(), reason);
  services_.log(services_.host, HALYARD_LOG_WARNING, line.data(), line.size());
}

}  // namespace halyard::vulkan
