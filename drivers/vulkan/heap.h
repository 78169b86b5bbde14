// Heap: the device's memory, in blocks. A block is a range of a VkBuffer that is bound once and for all;
// small blocks are cut from chunks, since implementations allow a few thousand allocations only, large ones
// have an allocation of their own. Blocks that are given back are kept by size for whoever wants one next.
//
// All buffers have every usage that programs can ask for, and memory that the host can see is mapped as long
// as it lives. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device_features.h"

namespace halyard::vulkan {

// One VkDeviceMemory with one VkBuffer over all of it.
struct Chunk {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t size = 0;
  uint8_t* mapped = nullptr;    // null: the host cannot see it
  VkDeviceAddress address = 0;  // 0: the device has no addresses
  uint64_t serial = 0;          // of this heap, never used again, as handles of Vulkan are
  uint64_t used = 0;            // bytes handed out so far, for chunks that blocks are cut from
  uint32_t live = 0;            // blocks that somebody uses
};

struct Block {
  Chunk* chunk = nullptr;
  uint64_t offset = 0;  // in its buffer
  uint64_t size = 0;    // bytes; of its size class
  unsigned kind = 0;    // memory type
  unsigned size_class = 0;
  Block* next = nullptr;  // while it is kept

  uint8_t* mapped() const { return chunk->mapped ? chunk->mapped + offset : nullptr; }
  VkDeviceAddress address() const { return chunk->address + offset; }
};

class Heap {
 public:
  static constexpr uint64_t kMostKept = uint64_t{256} << 20;  // bytes in blocks with their own allocation

  // What it hands out to start with; `memory` as the device reports it.
  Heap(const DeviceFunctions& vk, VkDevice device, const Features& features,
       const VkPhysicalDeviceMemoryProperties& memory);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();

  // Finds out which memory types buffers can have. Before anything else.
  Result<> start();

  uint64_t alignment() const { return alignment_; }  // of every block
  // At what multiples bindings may begin; imports begin at such, too.
  uint64_t binding_alignment() const { return binding_alignment_; }
  uint64_t maximum() const { return maximum_; }  // bytes in one block
  bool unified() const { return unified_; }      // all memory is near host and device
  bool all_coherent() const { return all_coherent_; }
  VkMemoryPropertyFlags flags(unsigned kind) const { return memory_.memoryTypes[kind].propertyFlags; }

  // The memory type for a request of the host's (HALYARD_MEMORY_*): its bits are demanded, or with OPTIMAL
  // wished for. INVALID_ARGUMENT: no memory type has them.
  Result<unsigned> kind_for(uint32_t memory_type) const;
  // What a memory type is in the host's bits, for a request that kind_for gave it to.
  uint32_t bits_of(unsigned kind, uint32_t requested) const;
  // For what the driver itself writes for the device: seen by the host, coherent.
  unsigned upload_kind() const { return upload_kind_; }

  // RESOURCE_EXHAUSTED. A size of 0 gives a block, too.
  Result<Block*> allocate(unsigned kind, uint64_t size);
  void free(Block* block);
  // Over bytes of the host's. They need not be aligned as the device wants imports: whole pages around them
  // become known to it, of which nothing else is used.
  Result<Block*> import(uint8_t* bytes, uint64_t size);
  void free_import(Block* block);
  void trim();

  // Where memory is not coherent.
  Result<> flush(const Block& block, uint64_t offset, uint64_t length);
  Result<> invalidate(const Block& block, uint64_t offset, uint64_t length);

 private:
  // Four sizes to each doubling: at most a quarter of a block is slack.
  static constexpr unsigned kClasses = 4 * 48 + 1;
  struct SizeClass {
    unsigned index;
    uint64_t bytes;
  };
  SizeClass size_class(uint64_t size) const;

  Result<std::unique_ptr<Chunk>> make_chunk(unsigned kind, uint64_t size);
  Result<> fill_chunk(Chunk& chunk, unsigned kind, const VkMemoryAllocateInfo& allocation, bool map);
  Result<std::unique_ptr<Chunk>> make_chunk_or_trim(unsigned kind, uint64_t size);
  void destroy_chunk(Chunk& chunk);
  Block* cut(Chunk& chunk, unsigned kind, SizeClass wanted);
  Block* new_block();
  void trim_locked();
  VkBufferCreateInfo buffer_info(uint64_t size) const;
  VkMappedMemoryRange mapped_range(const Block& block, uint64_t offset, uint64_t length) const;

  const DeviceFunctions& vk_;
  const VkDevice device_;
  const Features& features_;
  const VkPhysicalDeviceMemoryProperties memory_;
  uint64_t alignment_ = 0;
  uint64_t binding_alignment_ = 0;
  uint64_t maximum_ = 0;
  uint32_t usable_ = 0;  // bit n: buffers may have memory type n
  unsigned upload_kind_ = 0;
  bool unified_ = true;
  bool all_coherent_ = true;

  std::mutex mutex_;
  uint64_t serials_ = 0;
  uint64_t kept_bytes_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;  // all that were ever made
  Block* unused_ = nullptr;                     // those that stand for nothing
  std::vector<std::unique_ptr<Chunk>> chunks_;  // those that blocks are cut from
  std::array<Chunk*, VK_MAX_MEMORY_TYPES> current_ = {};
  std::array<std::array<Block*, kClasses>, VK_MAX_MEMORY_TYPES> kept_ = {};
};

}  // namespace halyard::vulkan
