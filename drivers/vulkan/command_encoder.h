// CommandEncoder: a Vulkan command buffer and the resources that only its commands use: bytes to upload,
// address tables, descriptor sets. All are reset together and reused. The functions of an encoder translate
// commands of the driver ABI to Vulkan.
#pragma once

#include <memory>
#include <vector>

#include "executable.h"
#include "heap.h"
#include "queue.h"
#include "trace.h"

namespace halyard::vulkan {

class CommandList;

// A byte range of a buffer, as the device addresses it.
struct Span {
  const Block* block = nullptr;
  uint64_t offset = 0;  // bytes, within the block
  uint64_t length = 0;

  VkBuffer buffer() const { return block->chunk->buffer; }
  uint64_t position() const { return block->offset + offset; }  // within the buffer
};

using BindingTable = std::span<const halyard_binding_t>;

// FAILED_PRECONDITION: memory of an alloca that has not run.
Result<Span> resolve(const halyard_range_t& range, BindingTable table);

struct CommandEncoder {
  static Result<std::unique_ptr<CommandEncoder>> create(Device& device, const Queue& queue);
  CommandEncoder(const CommandEncoder&) = delete;
  CommandEncoder& operator=(const CommandEncoder&) = delete;
  ~CommandEncoder();

  VkCommandBuffer commands() const { return commands_; }
  Timestamps* timestamps() const { return timestamps_.get(); }  // null: no trace

  Result<> begin(bool once);
  Result<> end();
  // For traces: the host's command (may be null) that the next calls encode.
  void encodes(const void* command) { command_ = command; }

  void barrier();
  Result<> fill(const Span& target, uint32_t pattern, uint32_t pattern_size);
  Result<> update(const Span& target, const void* source);
  Result<> copy(const Span& source, const Span& target);
  Result<> dispatch(const halyard_command_dispatch_t& command, BindingTable table);
  void begin_group(std::string_view label);
  void end_group();

 private:
  struct Upload {
    Span span;
    uint8_t* bytes;
  };

  CommandEncoder(Device& device, const Queue& queue);
  void memory_barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags writes,
                      VkAccessFlags uses);
  Result<> before(std::string_view name) {
    if (!timestamps_) [[likely]]
      return {};
    return timestamps_->before(commands_, name, command_);
  }
  void after() {
    if (timestamps_) [[unlikely]]
      timestamps_->after(commands_);
  }
  void move_bytes(const Span& source, const Span& target);
  Result<Upload> upload(uint64_t size, uint64_t alignment);
  Result<VkDescriptorSet> descriptor_set(const Pipeline& pipeline, size_t set);
  Result<> bind_descriptors(const Pipeline& pipeline, std::span<const halyard_range_t> bindings,
                            BindingTable table);
  Result<> bind_addresses(const Pipeline& pipeline, const halyard_command_dispatch_t& command,
                          BindingTable table);

  Device& device_;
  const DeviceFunctions& vk_;
  const bool computes_;
  const uint32_t family_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  bool has_labels_ = false;
  std::unique_ptr<Timestamps> timestamps_;
  const void* command_ = nullptr;

  std::vector<Block*> uploads_;  // reset() keeps the first one
  uint64_t uploaded_ = 0;        // bytes used in the last one
  std::vector<VkDescriptorPool> pools_;
  size_t pool_in_use_ = 0;
  size_t set_count_ = 0;                         // of the current pool
  std::vector<VkDescriptorBufferInfo> buffers_;  // used while a dispatch is encoded
  std::vector<VkWriteDescriptorSet> writes_;
};

// The commands of a submission in flight: of its own encoder, or of one that a command list keeps.
struct EncodedCommands {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  Timestamps* timestamps = nullptr;
  std::unique_ptr<CommandEncoder> once;  // null: the commands are those of a list
  CommandList* list = nullptr;
  size_t index = 0;  // among the command buffers of `list`
};

}  // namespace halyard::vulkan
