// Memory types, size classes, and chunks.
#include "heap.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

namespace halyard::vulkan {

namespace {

constexpr uint64_t kChunkSize = uint64_t{8} << 20;   // bytes
constexpr uint64_t kMaxInChunk = uint64_t{1} << 20;  // larger blocks have their own allocation
constexpr VkMemoryPropertyFlags kHostSees =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// The Vulkan bits for the host's bits.
struct TypeBit {
  uint32_t bit;
  VkMemoryPropertyFlags flag;
};
constexpr TypeBit kTypeBits[] = {
    {HALYARD_MEMORY_HOST_VISIBLE, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
    {HALYARD_MEMORY_HOST_COHERENT, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
    {HALYARD_MEMORY_HOST_CACHED, VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    {HALYARD_MEMORY_DEVICE_LOCAL & ~HALYARD_MEMORY_DEVICE_VISIBLE, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT},
};
constexpr uint32_t kHostLocalBit =
    HALYARD_MEMORY_HOST_LOCAL & ~(HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT);
constexpr uint32_t kEveryType = HALYARD_MEMORY_OPTIMAL | HALYARD_MEMORY_HOST_LOCAL |
                                HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL;

VkMemoryPropertyFlags flags_of(uint32_t bits) {
  VkMemoryPropertyFlags flags = 0;
  for (const TypeBit& entry : kTypeBits)
    if (bits & entry.bit) flags |= entry.flag;
  return flags;
}

}  // namespace

MemoryKinds::MemoryKinds(const VkPhysicalDeviceMemoryProperties& of_device) : memory(of_device) {
  std::iota(vulkan_index.begin(), vulkan_index.end(), 0u);
}

void MemoryKinds::separate() {
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  if (memory.memoryHeapCount == VK_MAX_MEMORY_HEAPS) return;
  const uint32_t host_heap = memory.memoryHeapCount++;
  memory.memoryHeaps[host_heap] = {.size = memory.memoryHeaps[0].size, .flags = 0};
  const uint32_t count = memory.memoryTypeCount;
  for (uint32_t i = 0; i < count && memory.memoryTypeCount < VK_MAX_MEMORY_TYPES; ++i) {
    VkMemoryType& both = memory.memoryTypes[i];
    if (!(both.propertyFlags & kLocal) || !(both.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT))
      continue;
    vulkan_index[memory.memoryTypeCount] = i;
    memory.memoryTypes[memory.memoryTypeCount++] = {.propertyFlags = kLocal, .heapIndex = both.heapIndex};
    both = {.propertyFlags = both.propertyFlags & ~kLocal, .heapIndex = host_heap};
  }
}

Heap::Heap(const DeviceFunctions& vk, VkDevice device, const Features& features, const MemoryKinds& kinds,
           Clear clear)
    : vk_(vk), device_(device), features_(features), kinds_(kinds), clear_(std::move(clear)) {
  const VkPhysicalDeviceMemoryProperties& memory = kinds_.memory;
  const VkPhysicalDeviceLimits& limits = features.limits;
  binding_alignment_ = std::bit_ceil(std::max<uint64_t>(
      {16, limits.minStorageBufferOffsetAlignment, limits.minUniformBufferOffsetAlignment}));
  alignment_ = std::bit_ceil(std::max<uint64_t>({64, binding_alignment_, limits.nonCoherentAtomSize}));
  uint64_t largest_heap = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    largest_heap = std::max<uint64_t>(largest_heap, memory.memoryHeaps[i].size);
    if (!(memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) unified_ = false;
  }
  const uint64_t most = std::min(largest_heap, features.maximum_buffer);
  maximum_ = most / alignment_ * alignment_;
}

Heap::~Heap() {
  trim();
  for (const auto& chunk : chunks_) destroy_chunk(*chunk);
}

VkBufferCreateInfo Heap::buffer_info(uint64_t size) const {
  VkBufferUsageFlags usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                             VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                             VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  if (features_.buffer_addresses()) usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  return {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size, .usage = usage};
}

Result<> Heap::start() {
  const VkBufferCreateInfo info = buffer_info(alignment_);
  VkBuffer probe = VK_NULL_HANDLE;
  HALYARD_KIT_TRY(check(vk_.CreateBuffer(device_, &info, nullptr, &probe), "vkCreateBuffer"));
  VkMemoryRequirements needs = {};
  vk_.GetBufferMemoryRequirements(device_, probe, &needs);
  vk_.DestroyBuffer(device_, probe, nullptr);
  alignment_ = std::max<uint64_t>(alignment_, std::bit_ceil(needs.alignment));
  constexpr VkMemoryPropertyFlags kSpecial =
      VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
      VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
  for (unsigned kind = 0; kind < kind_count(); ++kind)
    if (has_kind(needs.memoryTypeBits, kind) && !(flags(kind) & kSpecial)) usable_ |= 1u << kind;
  for (unsigned kind = 0; kind < kind_count(); ++kind) {
    const VkMemoryPropertyFlags has = flags(kind);
    if ((usable_ >> kind & 1) && (has & kHostSees) == VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
      all_coherent_ = false;
  }
  upload_kind_ =
      HALYARD_KIT_TRY(kind_for(HALYARD_MEMORY_HOST_LOCAL | uint32_t{HALYARD_MEMORY_DEVICE_VISIBLE}));
  return {};
}

Result<unsigned> Heap::kind_for(uint32_t memory_type) const {
  const bool optimal = memory_type & HALYARD_MEMORY_OPTIMAL;
  const VkMemoryPropertyFlags wanted = flags_of(memory_type);
  constexpr unsigned kNone = VK_MAX_MEMORY_TYPES;
  unsigned best = kNone;
  int best_score = 0;
  if (optimal || !(memory_type & ~kEveryType)) {
    for (unsigned kind = 0; kind < kind_count(); ++kind) {
      const VkMemoryPropertyFlags has = flags(kind);
      if (!(usable_ >> kind & 1) || (!optimal && (has & wanted) != wanted)) continue;
      const bool near_device = has & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
      if (!optimal && (memory_type & kHostLocalBit) && near_device && !unified_ &&
          !(wanted & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
        continue;  // this bit only means that the memory is the host's own
      // The order of criteria: granted preferences, then the location of the memory, then the cost of host
      // access.
      int score = 1 + 16 * std::popcount(has & wanted);
      const bool wants_host = wanted & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
      const bool wants_device = (wanted & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) || wanted == 0;
      if (wants_device == near_device) score += 8;
      if (wants_host && (has & VK_MEMORY_PROPERTY_HOST_CACHED_BIT)) score += 4;
      if (!wants_host && !unified_ && (has & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) score -= 2;
      if (unified_ && (has & kHostSees) == kHostSees) score += 2;
      if (score > best_score) {
        best = kind;
        best_score = score;
      }
    }
  }
  if (best == kNone)
    return fail(HALYARD_INVALID_ARGUMENT,
                "no memory of this device has the type bits 0x{:x}; ask for fewer, or with OPTIMAL (0x1)",
                memory_type);
  return best;
}

uint32_t Heap::bits_of(unsigned kind, uint32_t requested) const {
  const VkMemoryPropertyFlags has = flags(kind);
  uint32_t bits = HALYARD_MEMORY_DEVICE_VISIBLE;
  for (const TypeBit& entry : kTypeBits)
    if (has & entry.flag) bits |= entry.bit;
  const bool is_host_local =
      (has & kHostSees) == kHostSees && (unified_ || !(has & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  if (is_host_local && (requested & kHostLocalBit)) bits |= kHostLocalBit;
  return bits;
}

Heap::SizeClass Heap::size_class(uint64_t size) const {
  if (size <= alignment_) return {0, alignment_};
  const uint64_t below = std::bit_floor(size - 1);  // the largest power of two below `size`
  const uint64_t step = std::max(below / 4, alignment_);
  const uint64_t steps = (size - below + step - 1) / step;
  const auto doubling = static_cast<unsigned>(std::countr_zero(below) - std::countr_zero(alignment_));
  const uint64_t bytes = below + steps * step;
  return {doubling * 4 + static_cast<unsigned>(steps), std::min(bytes, maximum_)};
}

Result<> Heap::fill_chunk(Chunk& chunk, unsigned kind, uint64_t size, const void* import, bool map) {
  const VkMemoryAllocateFlagsInfo address = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .pNext = import,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .pNext = features_.buffer_addresses() ? &address : import,
                                           .allocationSize = size,
                                           .memoryTypeIndex = kinds_.vulkan_index[kind]};
  HALYARD_KIT_TRY(
      check(vk_.AllocateMemory(device_, &allocation, nullptr, &chunk.memory), "vkAllocateMemory"));
  HALYARD_KIT_TRY(check(vk_.BindBufferMemory(device_, chunk.buffer, chunk.memory, 0), "vkBindBufferMemory"));
  if (map && (flags(kind) & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) {
    void* mapped = nullptr;
    HALYARD_KIT_TRY(check(vk_.MapMemory(device_, chunk.memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory"));
    chunk.mapped = static_cast<uint8_t*>(mapped);
  }
  if (features_.buffer_addresses()) {
    const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                            .buffer = chunk.buffer};
    chunk.address = vk_.GetBufferDeviceAddress(device_, &info);
  }
  return {};
}

Result<std::unique_ptr<Chunk>> Heap::make_chunk(unsigned kind, uint64_t size) {
  auto chunk = std::make_unique<Chunk>();
  const VkBufferCreateInfo info = buffer_info(size);
  HALYARD_KIT_TRY(check(vk_.CreateBuffer(device_, &info, nullptr, &chunk->buffer), "vkCreateBuffer"));
  VkMemoryRequirements needs = {};
  vk_.GetBufferMemoryRequirements(device_, chunk->buffer, &needs);
  chunk->size = size;
  if (Result<> filled = fill_chunk(*chunk, kind, needs.size, nullptr, true); !filled) {
    destroy_chunk(*chunk);
    return std::move(filled.failure());
  }
  chunk->serial = ++serials_;
  return chunk;
}

Result<std::unique_ptr<Chunk>> Heap::make_chunk_or_trim(unsigned kind, uint64_t size) {
  Result<std::unique_ptr<Chunk>> made = make_chunk(kind, size);
  if (made || made.failure().code != HALYARD_RESOURCE_EXHAUSTED) return made;
  trim_locked();
  made = make_chunk(kind, size);
  if (!made && made.failure().code == HALYARD_RESOURCE_EXHAUSTED)
    return fail(HALYARD_RESOURCE_EXHAUSTED, "no device memory for {} bytes: {}", size,
                made.failure().message);
  return made;
}

void Heap::destroy_chunk(Chunk& chunk) {
  if (chunk.mapped && chunk.memory) vk_.UnmapMemory(device_, chunk.memory);
  if (chunk.buffer) vk_.DestroyBuffer(device_, chunk.buffer, nullptr);
  if (chunk.memory) vk_.FreeMemory(device_, chunk.memory, nullptr);
  chunk = {};
}

Block* Heap::new_block() {
  if (!unused_) {
    blocks_.push_back(std::make_unique<Block>());
    unused_ = blocks_.back().get();
  }
  Block* block = unused_;
  unused_ = block->next;
  *block = {};
  return block;
}

Block* Heap::cut(Chunk& chunk, unsigned kind, SizeClass wanted) {
  Block* block = new_block();
  *block = {
      .chunk = &chunk, .offset = chunk.used, .size = wanted.bytes, .kind = kind, .size_class = wanted.index};
  chunk.used += wanted.bytes;
  ++chunk.live;
  return block;
}

Result<Block*> Heap::allocate(unsigned kind, uint64_t size, uint64_t owner) {
  bool is_new = true;
  Block* const block = HALYARD_KIT_TRY(take(kind, size, &is_new));
  const bool may_stay = owner == HALYARD_OWNER_WRITES_ALL || (!is_new && owner != 0 && owner == block->owner);
  block->owner = owner;
  if (may_stay) return block;
  if (Result<> cleared = clear(*block); !cleared) {
    free(block);
    return std::move(cleared.failure());
  }
  return block;
}

Result<> Heap::clear(Block& block) {
  if (!block.mapped()) return clear_(block);
  std::memset(block.mapped(), 0, block.size);
  if (flags(block.kind) & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) return {};
  return flush(block, 0, block.size);
}

Result<Block*> Heap::take(unsigned kind, uint64_t size, bool* is_new) {
  if (size > maximum_)
    return fail(HALYARD_RESOURCE_EXHAUSTED, "no device memory for {} bytes: {} at most in one allocation",
                size, maximum_);
  const std::lock_guard lock(mutex_);
  const SizeClass wanted = size_class(size);
  if (Block* kept = kept_[kind][wanted.index]; kept && kept->size >= size) {
    kept_[kind][wanted.index] = kept->next;
    kept->next = nullptr;
    if (wanted.bytes > kMaxInChunk) kept_bytes_ -= kept->size;
    ++kept->chunk->live;
    *is_new = false;
    return kept;
  }
  if (wanted.bytes > kMaxInChunk) {
    std::unique_ptr<Chunk> chunk = HALYARD_KIT_TRY(make_chunk_or_trim(kind, wanted.bytes));
    chunks_.push_back(std::move(chunk));
    return cut(*chunks_.back(), kind, wanted);
  }
  Chunk* chunk = current_[kind];
  if (!chunk || chunk->size - chunk->used < wanted.bytes) {
    std::unique_ptr<Chunk> made = HALYARD_KIT_TRY(make_chunk_or_trim(kind, std::min(kChunkSize, maximum_)));
    chunks_.push_back(std::move(made));
    chunk = current_[kind] = chunks_.back().get();
  }
  return cut(*chunk, kind, wanted);
}

void Heap::free(Block* block) {
  const std::lock_guard lock(mutex_);
  --block->chunk->live;
  const bool alone = block->size > kMaxInChunk;
  if (alone && block->size > kMaxKept - kept_bytes_) {
    std::erase_if(chunks_, [&](const std::unique_ptr<Chunk>& chunk) {
      if (chunk.get() != block->chunk) return false;
      destroy_chunk(*chunk);
      return true;
    });
    block->next = unused_;
    unused_ = block;
    return;
  }
  if (alone) kept_bytes_ += block->size;
  block->next = kept_[block->kind][block->size_class];
  kept_[block->kind][block->size_class] = block;
}

void Heap::trim() {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

// Frees chunks without blocks in use, and their blocks.
void Heap::trim_locked() {
  for (auto& lists : kept_) {
    for (Block*& list : lists) {
      Block* staying = nullptr;
      while (Block* block = list) {
        list = block->next;
        Block*& target = block->chunk->live == 0 ? unused_ : staying;
        block->next = target;
        target = block;
      }
      list = staying;
    }
  }
  for (Chunk*& chunk : current_)
    if (chunk && chunk->live == 0) chunk = nullptr;
  std::erase_if(chunks_, [&](const std::unique_ptr<Chunk>& chunk) {
    if (chunk->live != 0) return false;
    destroy_chunk(*chunk);
    return true;
  });
  kept_bytes_ = 0;  // blocks with their own allocation are gone
}

Result<Block*> Heap::import(uint8_t* bytes, uint64_t size) {
  constexpr VkExternalMemoryHandleTypeFlagBits kHost = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const uint64_t page = features_.host_pointer_alignment;
  const auto at = reinterpret_cast<uintptr_t>(bytes);
  uint8_t* const begin = bytes - at % page;
  const uint64_t whole = round_up(at % page + std::max<uint64_t>(size, 1), page);

  VkMemoryHostPointerPropertiesEXT properties = {.sType =
                                                     VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  HALYARD_KIT_TRY(check(vk_.GetMemoryHostPointerPropertiesEXT(device_, kHost, begin, &properties),
                        "vkGetMemoryHostPointerPropertiesEXT"));
  auto chunk = std::make_unique<Chunk>();
  const VkExternalMemoryBufferCreateInfo external = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kHost};
  VkBufferCreateInfo info = buffer_info(whole);
  info.pNext = &external;
  HALYARD_KIT_TRY(check(vk_.CreateBuffer(device_, &info, nullptr, &chunk->buffer), "vkCreateBuffer"));
  VkMemoryRequirements needs = {};
  vk_.GetBufferMemoryRequirements(device_, chunk->buffer, &needs);
  uint32_t kinds = 0;
  for (unsigned kind = 0; kind < kind_count(); ++kind)  // the host's memory is never flushed
    if (has_kind(properties.memoryTypeBits & needs.memoryTypeBits, kind) &&
        (flags(kind) & kHostSees) == kHostSees)
      kinds |= 1u << kind;
  Result<> filled =
      fail(HALYARD_UNIMPLEMENTED, "the device cannot use host memory at {}: no memory type fits",
           static_cast<void*>(bytes));
  unsigned kind = 0;
  if (kinds != 0 && needs.size <= whole) {
    kind = static_cast<unsigned>(std::countr_zero(kinds));
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = kHost,
        .pHostPointer = begin};
    filled = fill_chunk(*chunk, kind, whole, &import, false);
  }
  if (!filled) {
    destroy_chunk(*chunk);
    return std::move(filled.failure());
  }
  chunk->size = whole;
  return block_over(std::move(chunk), kind, at % page, size);
}

Result<Block*> Heap::import_fd(int32_t fd, unsigned kind, uint64_t size, uint64_t whole) {
  constexpr VkExternalMemoryHandleTypeFlagBits kDescriptor = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  if (!features_.memory_descriptors)
    return fail(HALYARD_UNIMPLEMENTED,
                "this device imports no memory from file descriptors ({}, OPAQUE_FD); import host memory",
                VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  auto chunk = std::make_unique<Chunk>();
  const VkExternalMemoryBufferCreateInfo external = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kDescriptor};
  VkBufferCreateInfo info = buffer_info(std::max<uint64_t>(size, 1));
  info.pNext = &external;
  HALYARD_KIT_TRY(check(vk_.CreateBuffer(device_, &info, nullptr, &chunk->buffer), "vkCreateBuffer"));
  VkMemoryRequirements needs = {};
  vk_.GetBufferMemoryRequirements(device_, chunk->buffer, &needs);
  Result<> filled = fail(HALYARD_INVALID_ARGUMENT,
                         "a buffer of {} bytes needs {} bytes of memory; the imported memory has {}", size,
                         needs.size, whole);
  if (needs.size <= whole && has_kind(needs.memoryTypeBits, kind)) {
    // Vulkan takes ownership of this descriptor, even if a later step fails.
    const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = kDescriptor, .fd = own};
    filled = fill_chunk(*chunk, kind, whole, &import, true);
    if (own >= 0 && !chunk->memory) ::close(own);
    if (!filled && !chunk->memory && filled.failure().code == HALYARD_UNIMPLEMENTED)
      filled =
          fail(HALYARD_INVALID_ARGUMENT,
               "file descriptor {} is no memory of {} bytes that this device can import ({}); expected one "
               "that was exported by the same device and driver",
               fd, whole, filled.failure().message);
  }
  if (!filled) {
    destroy_chunk(*chunk);
    return std::move(filled.failure());
  }
  ::close(fd);
  chunk->size = whole;
  return block_over(std::move(chunk), kind, 0, size);
}

Block* Heap::block_over(std::unique_ptr<Chunk> chunk, unsigned kind, uint64_t offset, uint64_t size) {
  const std::lock_guard lock(mutex_);
  chunk->serial = ++serials_;
  Block* block = new_block();
  *block = {.chunk = chunk.release(), .offset = offset, .size = size, .kind = kind};
  return block;
}

void Heap::free_import(Block* block) {
  const std::lock_guard lock(mutex_);
  const std::unique_ptr<Chunk> chunk(block->chunk);
  destroy_chunk(*chunk);
  block->next = unused_;
  unused_ = block;
}

VkMappedMemoryRange Heap::mapped_range(const Block& block, uint64_t offset, uint64_t length) const {
  const uint64_t atom = features_.limits.nonCoherentAtomSize;
  const uint64_t begin = (block.offset + offset) / atom * atom;
  const uint64_t end = std::min(round_up(block.offset + offset + length, atom), block.chunk->size);
  return {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
          .memory = block.chunk->memory,
          .offset = begin,
          .size = end - begin};
}

Result<> Heap::flush(const Block& block, uint64_t offset, uint64_t length) {
  if (flags(block.kind) & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT || !block.chunk->mapped || length == 0)
    return {};
  const VkMappedMemoryRange range = mapped_range(block, offset, length);
  return check(vk_.FlushMappedMemoryRanges(device_, 1, &range), "vkFlushMappedMemoryRanges");
}

Result<> Heap::invalidate(const Block& block, uint64_t offset, uint64_t length) {
  if (flags(block.kind) & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT || !block.chunk->mapped || length == 0)
    return {};
  const VkMappedMemoryRange range = mapped_range(block, offset, length);
  return check(vk_.InvalidateMappedMemoryRanges(device_, 1, &range), "vkInvalidateMappedMemoryRanges");
}

}  // namespace halyard::vulkan
