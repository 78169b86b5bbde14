// PipelineCache: compiled pipelines, kept in a file between processes. The file is named after device and
// driver version, has a checksum and is replaced atomically, so processes that share it read either the old
// or the new file. A file that is damaged, belongs to another device, or could have been written by other
// users is ignored.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "device_features.h"

namespace halyard::vulkan {

class PipelineCache {
 public:
  // The file is in `folder`; by default in halyard/ of the user's cache folder ($XDG_CACHE_HOME, ~/.cache). If
  // `folder` is empty, there is no file.
  PipelineCache(const Services& services, const DeviceFunctions& vk, VkDevice device,
                const std::optional<std::string>& folder, const VkPhysicalDeviceProperties& properties);
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;
  ~PipelineCache();

  // Creates the cache, empty if there is no usable file.
  Result<> start();
  VkPipelineCache handle() const { return cache_; }
  const std::filesystem::path& file() const { return file_; }  // empty: none
  // Records that pipelines were created. New data is written when the device is closed.
  void grew() { grew_.store(true, std::memory_order_relaxed); }

 private:
  std::string read() const;
  void write();

  const Services& services_;
  const DeviceFunctions& vk_;
  const VkDevice device_;
  const VkPhysicalDeviceProperties properties_;
  std::filesystem::path file_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  size_t size_at_start_ = 0;
  std::atomic<bool> grew_ = false;
};

}  // namespace halyard::vulkan
