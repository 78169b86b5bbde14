// Heap: the device's memory in blocks. A block is a range of a VkBuffer with memory bound to it. Small blocks
// are sub-allocated from chunks, because implementations allow only a few thousand allocations; large blocks
// have their own allocation. Freed blocks are kept for reuse, by size.
//
// All buffers have every usage that programs can request, and host-visible memory stays mapped. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "device_features.h"

namespace halyard::vulkan {

// A VkDeviceMemory with one VkBuffer over all of it.
struct Chunk {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t size = 0;
  uint8_t* mapped = nullptr;    // null: not host-visible
  VkDeviceAddress address = 0;  // 0: the device has no addresses
  uint64_t serial = 0;          // unique in this heap, unlike Vulkan handles
  uint64_t used = 0;            // bytes allocated so far, if it is a chunk
  uint32_t live = 0;            // blocks in use
};

struct Block {
  Chunk* chunk = nullptr;
  uint64_t offset = 0;  // in its buffer
  uint64_t size = 0;    // in bytes, rounded up to its size class
  unsigned kind = 0;    // memory type
  unsigned size_class = 0;
  uint64_t owner = 0;     // the current or last owner, as in halyard_memory_request_t
  Block* next = nullptr;  // while the block is kept for reuse

  uint8_t* mapped() const { return chunk->mapped ? chunk->mapped + offset : nullptr; }
  VkDeviceAddress address() const { return chunk->address + offset; }
};

// The kinds of memory that a heap offers: those of the device.
struct MemoryKinds {
  VkPhysicalDeviceMemoryProperties memory;
  std::array<uint32_t, VK_MAX_MEMORY_TYPES> vulkan_index;  // by kind

  MemoryKinds(const VkPhysicalDeviceMemoryProperties& of_device);  // NOLINT(google-explicit-constructor)
  // Makes two kinds of each one that is local to the device and visible to the host, as if the device were a
  // GPU whose memory the host cannot see.
  void separate();
};

class Heap {
 public:
  static constexpr uint64_t kMaxKept = uint64_t{256} << 20;  // bytes in kept blocks with their own allocation

  // Writes zeros to a block that the host cannot see, and returns when they are there.
  using Clear = std::function<Result<>(const Block&)>;

  // Sets the initial limits.
  Heap(const DeviceFunctions& vk, VkDevice device, const Features& features, const MemoryKinds& kinds,
       Clear clear);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();

  // Finds the memory types that buffers can use. Must be called first.
  Result<> start();

  uint64_t alignment() const { return alignment_; }  // of every block
  // The alignment of bindings, including imports.
  uint64_t binding_alignment() const { return binding_alignment_; }
  uint64_t maximum() const { return maximum_; }  // bytes in one block
  bool unified() const { return unified_; }      // all memory is local to host and device
  bool all_coherent() const { return all_coherent_; }
  VkMemoryPropertyFlags flags(unsigned kind) const { return kinds_.memory.memoryTypes[kind].propertyFlags; }

  // The memory type for a request of the host (HALYARD_MEMORY_*). The bits are required or, with OPTIMAL,
  // preferred. INVALID_ARGUMENT: no memory type has them.
  Result<unsigned> kind_for(uint32_t memory_type) const;
  // The host's bits for a memory type that kind_for returned for this request.
  uint32_t bits_of(unsigned kind, uint32_t requested) const;
  // For data that the driver writes: host-visible and coherent.
  unsigned upload_kind() const { return upload_kind_; }

  // RESOURCE_EXHAUSTED. Size 0 also returns a block. The memory contains zeros, or the bytes that the same
  // owner has left in it (halyard_memory_request_t).
  Result<Block*> allocate(unsigned kind, uint64_t size, uint64_t owner);
  void free(Block* block);
  // A block over the host's bytes, which need not have the alignment that the device requires for imports:
  // the surrounding whole pages are imported, and only the bytes are used.
  Result<Block*> import(uint8_t* bytes, uint64_t size);
  // Imports memory of `whole` bytes that another process, or another user in this process, has exported as an
  // opaque descriptor. Takes ownership of the descriptor on success. The block is the first `size` bytes.
  // `kind` is the exporter's. UNIMPLEMENTED. INVALID_ARGUMENT: no such memory.
  Result<Block*> import_fd(int32_t fd, unsigned kind, uint64_t size, uint64_t whole);
  void free_import(Block* block);
  void trim();

  // Needed for memory that is not coherent.
  Result<> flush(const Block& block, uint64_t offset, uint64_t length);
  Result<> invalidate(const Block& block, uint64_t offset, uint64_t length);

 private:
  // Four sizes for each power of two, so that at most a quarter of a block is unused.
  static constexpr unsigned kClasses = 4 * 48 + 1;
  struct SizeClass {
    unsigned index;
    uint64_t bytes;
  };
  SizeClass size_class(uint64_t size) const;

  Result<std::unique_ptr<Chunk>> make_chunk(unsigned kind, uint64_t size);
  // Allocates `size` bytes of memory and binds them to the chunk's buffer. `import` (may be null): the import
  // structure of existing memory. `map`: also maps the memory if it is host-visible.
  Result<> fill_chunk(Chunk& chunk, unsigned kind, uint64_t size, const void* import, bool map);
  Result<std::unique_ptr<Chunk>> make_chunk_or_trim(unsigned kind, uint64_t size);
  void destroy_chunk(Chunk& chunk);
  Block* block_over(std::unique_ptr<Chunk> chunk, unsigned kind, uint64_t offset, uint64_t size);
  Result<Block*> take(unsigned kind, uint64_t size, bool* is_new);
  Block* cut(Chunk& chunk, unsigned kind, SizeClass wanted);
  Block* new_block();
  void trim_locked();
  VkBufferCreateInfo buffer_info(uint64_t size) const;
  unsigned kind_count() const { return kinds_.memory.memoryTypeCount; }
  // Whether `types`, bits of Vulkan's memory types, has that of the kind.
  bool has_kind(uint32_t types, unsigned kind) const { return types >> kinds_.vulkan_index[kind] & 1; }
  Result<> clear(Block& block);
  VkMappedMemoryRange mapped_range(const Block& block, uint64_t offset, uint64_t length) const;

  const DeviceFunctions& vk_;
  const VkDevice device_;
  const Features& features_;
  const MemoryKinds kinds_;
  const Clear clear_;
  uint64_t alignment_ = 0;
  uint64_t binding_alignment_ = 0;
  uint64_t maximum_ = 0;
  uint32_t usable_ = 0;  // bit n: buffers may use memory type n
  unsigned upload_kind_ = 0;
  bool unified_ = true;
  bool all_coherent_ = true;

  std::mutex mutex_;
  uint64_t serials_ = 0;
  uint64_t kept_bytes_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;  // all blocks ever created
  Block* unused_ = nullptr;                     // blocks without memory
  std::vector<std::unique_ptr<Chunk>> chunks_;  // chunks that blocks are allocated from
  std::array<Chunk*, VK_MAX_MEMORY_TYPES> current_ = {};
  std::array<std::array<Block*, kClasses>, VK_MAX_MEMORY_TYPES> kept_ = {};
};

}  // namespace halyard::vulkan
