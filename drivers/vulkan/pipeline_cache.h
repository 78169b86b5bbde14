// PipelineCache: what the device's compiler made of kernels, kept in a file from one process to the next. The
// file is named after device and driver version, has a checksum, and is replaced as a whole, so that
// processes that share it see all of an old or all of a new one. One that is damaged or foreign is as none.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "device_features.h"

namespace halyard::vulkan {

class PipelineCache {
 public:
  // `folder`: empty for none; not given: halyard/ in the user's cache folder ($XDG_CACHE_HOME, ~/.cache).
  PipelineCache(const Services& services, const DeviceFunctions& vk, VkDevice device,
                const std::optional<std::string>& folder, const VkPhysicalDeviceProperties& properties);
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;
  ~PipelineCache();

  // Without a file, or where it cannot be used, the cache begins empty.
  Result<> start();
  VkPipelineCache handle() const { return cache_; }
  const std::filesystem::path& file() const { return file_; }  // empty: none
  // Pipelines were made. What is new is written when the device closes.
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
