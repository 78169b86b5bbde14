// Translates the commands of the driver ABI to Vulkan commands.
#include "command_encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device.h"

namespace halyard::vulkan {

namespace {

constexpr uint64_t kUploadBlock = uint64_t{64} << 10;  // bytes that an encoder keeps
constexpr uint64_t kMaxInline = 4096;                  // bytes of an update within the command buffer
constexpr uint32_t kSetsInPool = 128;
constexpr uint32_t kDescriptorsInPool = 1024;  // of each type

constexpr VkPipelineStageFlags kTransferStages = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkPipelineStageFlags kComputeStages = VK_PIPELINE_STAGE_TRANSFER_BIT |
                                                VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                                VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
constexpr VkAccessFlags kTransferWrites = VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kTransferUses = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kComputeWrites = kTransferWrites | VK_ACCESS_SHADER_WRITE_BIT;
constexpr VkAccessFlags kComputeUses = kTransferUses | VK_ACCESS_SHADER_READ_BIT |
                                       VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT |
                                       VK_ACCESS_INDIRECT_COMMAND_READ_BIT;

}  // namespace

Result<Span> resolve(const halyard_range_t& range, BindingTable table) {
  const halyard_driver_memory* memory = range.memory;
  uint64_t offset = range.offset;
  if (!memory) {
    memory = table[range.slot].memory;
    offset += table[range.slot].offset;
  }
  return Span{HALYARD_KIT_TRY(memory->block()), offset, range.length};
}

CommandEncoder::CommandEncoder(Device& device, const Queue& queue)
    : device_(device),
      vk_(device.vk()),
      computes_(queue.traits().computes),
      family_(queue.traits().family),
      has_labels_(device.vk().CmdBeginDebugUtilsLabelEXT && device.vk().CmdEndDebugUtilsLabelEXT) {}

Result<std::unique_ptr<CommandEncoder>> CommandEncoder::create(Device& device, const Queue& queue) {
  std::unique_ptr<CommandEncoder> encoder(new CommandEncoder(device, queue));
  if (queue.traits().timestamp_bits != 0) encoder->timestamps_ = std::make_unique<Timestamps>(device);
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = encoder->family_};
  HALYARD_KIT_TRY(check(device.vk().CreateCommandPool(device.handle(), &pool, nullptr, &encoder->pool_),
                        "vkCreateCommandPool"));
  const VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                .commandPool = encoder->pool_,
                                                .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                .commandBufferCount = 1};
  HALYARD_KIT_TRY(check(device.vk().AllocateCommandBuffers(device.handle(), &commands, &encoder->commands_),
                        "vkAllocateCommandBuffers"));
  return encoder;
}

CommandEncoder::~CommandEncoder() {
  for (Block* block : uploads_) device_.heap().free(block);
  for (const VkDescriptorPool pool : pools_) vk_.DestroyDescriptorPool(device_.handle(), pool, nullptr);
  if (pool_) vk_.DestroyCommandPool(device_.handle(), pool_, nullptr);
}

Result<> CommandEncoder::begin(bool once) {
  HALYARD_KIT_TRY(check(vk_.ResetCommandPool(device_.handle(), pool_, 0), "vkResetCommandPool"));
  for (size_t i = 0; i < pools_.size() && i <= pool_in_use_; ++i)
    HALYARD_KIT_TRY(check(vk_.ResetDescriptorPool(device_.handle(), pools_[i], 0), "vkResetDescriptorPool"));
  pool_in_use_ = 0;
  set_count_ = 0;
  while (uploads_.size() > 1 || (!uploads_.empty() && uploads_.back()->size > 2 * kUploadBlock)) {
    device_.heap().free(uploads_.back());
    uploads_.pop_back();
  }
  uploaded_ = 0;
  if (timestamps_) timestamps_->clear();
  command_ = nullptr;
  const VkCommandBufferBeginInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
      .flags = once ? VkCommandBufferUsageFlags{VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT}
                    : VkCommandBufferUsageFlags{}};
  return check(vk_.BeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
}

// Makes writes visible to the host once it sees the submission's signal.
Result<> CommandEncoder::end() {
  memory_barrier(computes_ ? kComputeStages : kTransferStages, VK_PIPELINE_STAGE_HOST_BIT,
                 computes_ ? kComputeWrites : kTransferWrites, VK_ACCESS_HOST_READ_BIT);
  return check(vk_.EndCommandBuffer(commands_), "vkEndCommandBuffer");
}

void CommandEncoder::memory_barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags writes,
                                    VkAccessFlags uses) {
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = writes, .dstAccessMask = uses};
  vk_.CmdPipelineBarrier(commands_, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void CommandEncoder::barrier() {
  if (computes_) return memory_barrier(kComputeStages, kComputeStages, kComputeWrites, kComputeUses);
  memory_barrier(kTransferStages, kTransferStages, kTransferWrites, kTransferUses);
}

Result<CommandEncoder::Upload> CommandEncoder::upload(uint64_t size, uint64_t alignment) {
  uint64_t begin = (uploaded_ + alignment - 1) / alignment * alignment;
  if (uploads_.empty() || uploads_.back()->size < begin || uploads_.back()->size - begin < size) {
    uploads_.reserve(uploads_.size() + 1);
    uploads_.push_back(HALYARD_KIT_TRY(device_.heap().allocate(
        device_.heap().upload_kind(), std::max(size, kUploadBlock), HALYARD_OWNER_WRITES_ALL)));
    begin = 0;
  }
  uploaded_ = begin + size;
  const Block* block = uploads_.back();
  return Upload{{block, begin, size}, block->mapped() + begin};
}

// vkCmdFillBuffer writes whole words. The bytes before the first and after the last whole word are copied
// from a word with the pattern: copies have no such restriction.
Result<> CommandEncoder::fill(const Span& target, uint32_t pattern, uint32_t pattern_size) {
  uint32_t word = pattern;
  if (pattern_size == 1) word = (pattern & 0xFF) * 0x01010101u;
  if (pattern_size == 2) word = (pattern & 0xFFFF) * 0x00010001u;
  const uint64_t begin = target.position();
  const uint64_t end = begin + target.length;
  const uint64_t first = std::min((begin + 3) / 4 * 4, end);
  const uint64_t last = std::max(end / 4 * 4, first);
  HALYARD_KIT_TRY(before("fill"));
  if (last > first) vk_.CmdFillBuffer(commands_, target.buffer(), first, last - first, word);
  if (first == begin && last == end) {
    after();
    return {};
  }
  const Upload source = HALYARD_KIT_TRY(upload(sizeof word, sizeof word));
  std::memcpy(source.bytes, &word, sizeof word);
  VkBufferCopy edges[2];
  uint32_t count = 0;
  const auto add = [&](uint64_t from, uint64_t to) {
    if (from < to)
      edges[count++] = {.srcOffset = source.span.position() + from % 4, .dstOffset = from, .size = to - from};
  };
  add(begin, first);
  add(last, end);
  vk_.CmdCopyBuffer(commands_, source.span.buffer(), target.buffer(), count, edges);
  after();
  return {};
}

Result<> CommandEncoder::update(const Span& target, const void* source) {
  HALYARD_KIT_TRY(before("update"));
  if (target.position() % 4 == 0 && target.length % 4 == 0 && target.length <= kMaxInline) {
    vk_.CmdUpdateBuffer(commands_, target.buffer(), target.position(), target.length, source);
    after();
    return {};
  }
  const Upload staged = HALYARD_KIT_TRY(upload(target.length, 16));
  std::memcpy(staged.bytes, source, target.length);
  move_bytes(staged.span, target);
  after();
  return {};
}

Result<> CommandEncoder::copy(const Span& source, const Span& target) {
  HALYARD_KIT_TRY(before("copy"));
  move_bytes(source, target);
  after();
  return {};
}

void CommandEncoder::move_bytes(const Span& source, const Span& target) {
  const VkBufferCopy region = {
      .srcOffset = source.position(), .dstOffset = target.position(), .size = target.length};
  vk_.CmdCopyBuffer(commands_, source.buffer(), target.buffer(), 1, &region);
}

Result<VkDescriptorSet> CommandEncoder::descriptor_set(const Pipeline& pipeline, size_t set) {
  while (true) {
    if (pool_in_use_ == pools_.size()) {
      const uint32_t most = std::max(kDescriptorsInPool, pipeline.descriptor_count);
      const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, most},
                                            {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, most}};
      const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                               .maxSets = kSetsInPool,
                                               .poolSizeCount = std::size(sizes),
                                               .pPoolSizes = sizes};
      VkDescriptorPool pool = VK_NULL_HANDLE;
      pools_.reserve(pools_.size() + 1);
      HALYARD_KIT_TRY(
          check(vk_.CreateDescriptorPool(device_.handle(), &info, nullptr, &pool), "vkCreateDescriptorPool"));
      pools_.push_back(pool);
    }
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = pools_[pool_in_use_],
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &pipeline.sets[set]};
    VkDescriptorSet allocated = VK_NULL_HANDLE;
    const VkResult result = vk_.AllocateDescriptorSets(device_.handle(), &info, &allocated);
    if (result == VK_SUCCESS) {
      ++set_count_;
      return allocated;
    }
    const bool is_full = result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
    if (!is_full || set_count_ == 0) return std::move(check(result, "vkAllocateDescriptorSets").failure());
    ++pool_in_use_;
    set_count_ = 0;
  }
}

Result<> CommandEncoder::bind_descriptors(const Pipeline& pipeline, std::span<const halyard_range_t> bindings,
                                          BindingTable table) {
  const VkPhysicalDeviceLimits& limits = device_.features().limits;
  buffers_.resize(bindings.size());
  writes_.resize(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    const BindingPlace& place = pipeline.bindings[i];
    Span span = HALYARD_KIT_TRY(resolve(bindings[i], table));
    if (span.length == 0) span = {&device_.nothing(), 0, 4};
    const bool uniform = place.type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    const uint64_t alignment =
        uniform ? limits.minUniformBufferOffsetAlignment : limits.minStorageBufferOffsetAlignment;
    const uint64_t most = uniform ? limits.maxUniformBufferRange : limits.maxStorageBufferRange;
    if (span.position() % alignment != 0)
      return fail(
          HALYARD_INVALID_ARGUMENT,
          "binding {} of '{}' begins at byte {} of its memory, expected a multiple of {} on this device; "
          "align it, or compile for buffer device addresses",
          i, pipeline.name, span.offset, alignment);
    if (span.length > most)
      return fail(
          HALYARD_OUT_OF_RANGE,
          "binding {} of '{}' has {} bytes, a descriptor of this device covers {} at most; bind less, or "
          "compile for buffer device addresses",
          i, pipeline.name, span.length, most);
    // Kernels for devices without 8-bit storage access the last bytes as part of a word. Blocks end at a
    // multiple of a word.
    buffers_[i] = {.buffer = span.buffer(), .offset = span.position(), .range = (span.length + 3) / 4 * 4};
    writes_[i] = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                  .dstBinding = place.binding,
                  .dstArrayElement = place.element,
                  .descriptorCount = 1,
                  .descriptorType = place.type,
                  .pBufferInfo = &buffers_[i]};
  }
  if (pipeline.pushes_descriptors) {
    vk_.CmdPushDescriptorSetKHR(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout,
                                pipeline.bindings[0].set, static_cast<uint32_t>(writes_.size()),
                                writes_.data());
    return {};
  }
  size_t next = 0;  // bindings are sorted by set
  for (size_t set = 0; set < pipeline.sets.size(); ++set) {
    const VkDescriptorSet allocated = HALYARD_KIT_TRY(descriptor_set(pipeline, set));
    const size_t first = next;
    for (; next < bindings.size() && pipeline.bindings[next].set == set; ++next)
      writes_[next].dstSet = allocated;
    if (next > first)
      vk_.UpdateDescriptorSets(device_.handle(), static_cast<uint32_t>(next - first), &writes_[first], 0,
                               nullptr);
    vk_.CmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout,
                              static_cast<uint32_t>(set), 1, &allocated, 0, nullptr);
  }
  return {};
}

// The root of the address form, and the address table to which it points.
Result<> CommandEncoder::bind_addresses(const Pipeline& pipeline, const halyard_command_dispatch_t& command,
                                        BindingTable table) {
  const AddressLayout& layout = pipeline.addresses;
  const Upload addresses =
      HALYARD_KIT_TRY(upload(std::max<uint64_t>(1, command.binding_count) * sizeof(uint64_t), 16));
  for (uint32_t i = 0; i < command.binding_count; ++i) {
    const Span span = HALYARD_KIT_TRY(resolve(command.bindings[i], table));
    const uint64_t address = span.block->address() + span.offset;
    const AddressBinding wanted = i < layout.bindings.size() ? layout.bindings[i] : AddressBinding{};
    if (address % wanted.alignment != 0)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "binding {} of '{}' begins at byte {} of its memory, expected a multiple of {} bytes", i,
                  pipeline.name, span.offset, wanted.alignment);
    if (span.length < wanted.length)
      return fail(HALYARD_INVALID_ARGUMENT, "binding {} of '{}' has {} bytes, expected {} or more", i,
                  pipeline.name, span.length, wanted.length);
    std::memcpy(addresses.bytes + i * sizeof address, &address, sizeof address);
  }
  struct Root {
    uint64_t bindings = 0;
    uint64_t constants = 0;
    uint32_t first_binding = 0;
    uint32_t first_constant = 0;
    uint32_t flags = 0;
    uint32_t reserved = 0;
  };
  static_assert(sizeof(Root) == AddressLayout::kRootSize);
  Root root;
  root.bindings = addresses.span.block->address() + addresses.span.offset;
  vk_.CmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, layout.root_offset,
                       sizeof root, &root);
  if (command.constant_count != 0)
    vk_.CmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, layout.constant_offset,
                         command.constant_count * 4, command.constants);
  return {};
}

Result<> CommandEncoder::dispatch(const halyard_command_dispatch_t& command, BindingTable table) {
  const Pipeline& pipeline = command.executable->pipeline(command.function);
  const bool indirect = command.flags & HALYARD_DISPATCH_INDIRECT;
  const uint32_t(&groups)[3] = command.workgroups;
  if (!indirect && (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)) return {};
  vk_.CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
  if (pipeline.by_address) {
    HALYARD_KIT_TRY(bind_addresses(pipeline, command, table));
  } else {
    HALYARD_KIT_TRY(bind_descriptors(pipeline, {command.bindings, command.binding_count}, table));
    if (pipeline.push_size != 0) {
      uint32_t constants[kMaxPushBytes / 4] = {};  // constants that the program does not set are zero
      std::copy_n(command.constants, command.constant_count, constants);
      vk_.CmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, pipeline.push_size,
                           constants);
    }
  }
  if (!indirect) {
    HALYARD_KIT_TRY(before(pipeline.name));
    vk_.CmdDispatch(commands_, groups[0], groups[1], groups[2]);
    after();
    return {};
  }
  const Span counts = HALYARD_KIT_TRY(resolve(command.indirect, table));
  if (counts.position() % 4 != 0)
    return fail(HALYARD_INVALID_ARGUMENT,
                "the workgroup counts of '{}' are at byte {} of their memory, expected a multiple of 4",
                pipeline.name, counts.offset);
  HALYARD_KIT_TRY(before(pipeline.name));
  vk_.CmdDispatchIndirect(commands_, counts.buffer(), counts.position());
  after();
  return {};
}

void CommandEncoder::begin_group(std::string_view label) {
  if (!has_labels_) return;
  const std::string terminated(label);
  const VkDebugUtilsLabelEXT info = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
                                     .pLabelName = terminated.c_str()};
  vk_.CmdBeginDebugUtilsLabelEXT(commands_, &info);
}

void CommandEncoder::end_group() {
  if (has_labels_) vk_.CmdEndDebugUtilsLabelEXT(commands_);
}

}  // namespace halyard::vulkan
