// Allocates the bytes of buffers.
#include "vm/object/buffer.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace halyard::vm {

const ObjectType Buffer::kType = {"vm.buffer", &Buffer::destroy};

namespace {

constexpr uint32_t kMinAlignment = 16;
constexpr uint64_t kModestAlignment = 65536;
static_assert(alignof(std::max_align_t) >= kMinAlignment);

}  // namespace

Buffer::Layout Buffer::layout() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // no virtual bases: both compilers define the offsets
  return {.data = offsetof(Buffer, data_),
          .length = offsetof(Buffer, length_),
          .mutable_length = offsetof(Buffer, mutable_length_),
          .written = offsetof(Buffer, written_)};
#pragma GCC diagnostic pop
}

static_assert(sizeof(Buffer) <= SpareBlocks::kHeader);

Ref<Buffer> Buffer::in_block(SpareBlocks::Block& block, uint64_t length, SpareBlocks& spare) {
  const std::span<uint8_t> data(block.data(), length);
  auto* const buffer = new (block.memory.release()) Buffer(data, true, nullptr);
  buffer->spare_ = &spare;
  static_assert(SpareBlocks::kMaxKept <= UINT32_MAX);
  buffer->block_bytes_ = static_cast<uint32_t>(block.bytes);
  buffer->written_before_ = static_cast<uint32_t>(block.written);
  buffer->charge_ = std::move(block.charge);
  buffer->charge_.count(kType, 1);
  return Ref<Buffer>::adopt(buffer);
}

// Ends the buffer and returns its block.
SpareBlocks::Block Buffer::leave_block() {
  SpareBlocks::Block block{.bytes = block_bytes_,
                           .written = std::max<uint64_t>(written_before_, std::min(written_, length_))};
  charge_.count(kType, -1);
  block.charge = std::move(charge_);
  this->~Buffer();
  block.memory.reset(reinterpret_cast<uint8_t*>(this));
  return block;
}

Result<Ref<Buffer>> Buffer::allocate(uint64_t length, uint32_t alignment, uint64_t limit, Budget* budget,
                                     SpareBlocks* spare, BufferContents contents) {
  if (alignment != 0 && !std::has_single_bit(alignment)) {
    return fail(Code::INVALID_ARGUMENT, "expected an alignment of 0 or a power of two, found {} bytes",
                alignment);
  }
  alignment = std::max(alignment, kMinAlignment);
  if (length > limit) {
    return fail(Code::RESOURCE_EXHAUSTED, "a buffer of {} bytes exceeds the limit of {}", length, limit);
  }
  // A large alignment takes as much address space as a buffer of that size.
  if (alignment > std::max(limit, kModestAlignment)) {
    return fail(Code::RESOURCE_EXHAUSTED,
                "an alignment of {} bytes exceeds the limit of {} bytes for a buffer", alignment, limit);
  }
  if (spare && SpareBlocks::has(length, alignment)) {
    SpareBlocks::Block block;
    HALYARD_TRY(spare->take(length, budget, contents == BufferContents::zero, block));
    return in_block(block, length, *spare);
  }
  // calloc returns untouched zero pages for large sizes. For a larger alignment, allocate more and move the
  // start up.
  const uint64_t slack = alignment - kMinAlignment;
  const uint64_t wanted = std::max<uint64_t>(saturating_add(length, slack), 1);
  Charge charge;
  const uint64_t charged = saturating_add(block_bytes(wanted), block_bytes(sizeof(Buffer)));
  Result<> started = charge.start(budget, charged, "a buffer");
  if (!started && spare && spare->trim()) started = charge.start(budget, charged, "a buffer");
  HALYARD_TRY(std::move(started));
  uint8_t* memory = nullptr;
  if (wanted < SIZE_MAX) memory = static_cast<uint8_t*>(std::calloc(1, wanted));
  if (!memory) return fail(Code::RESOURCE_EXHAUSTED, "no memory for a buffer of {} bytes", length);
  const uintptr_t misfit = reinterpret_cast<uintptr_t>(memory) & (alignment - 1);
  uint8_t* data = misfit ? memory + (alignment - misfit) : memory;
  auto buffer = make<Buffer>(std::span<uint8_t>(data, length), true, [memory] { std::free(memory); });
  buffer->charge_ = std::move(charge);
  buffer->charge_.count(kType, 1);
  return buffer;
}

void Buffer::destroy(Object* object) {
  auto* const buffer = static_cast<Buffer*>(object);
  if (SpareBlocks* const spare = buffer->spare_) return spare->give(buffer->leave_block());
  const std::function<void()> released = std::move(buffer->released_);
  if (NodePool* const nodes = buffer->nodes_) {
    buffer->~Buffer();
    nodes->give(buffer, sizeof(Buffer));
  } else {
    delete buffer;
  }
  if (released) released();
}

Result<Ref<Buffer>> Buffer::wrap(std::span<uint8_t> bytes, bool is_mutable, NodePool& nodes, Budget* budget,
                                 std::function<void()> released) {
  Charge charge;
  HALYARD_TRY(charge.start(budget, NodePool::footprint(sizeof(Buffer)), "a buffer's storage"));
  auto* const buffer = new (nodes.take(sizeof(Buffer))) Buffer(bytes, is_mutable, std::move(released));
  buffer->nodes_ = &nodes;
  buffer->charge_ = std::move(charge);
  buffer->charge_.count(kType, 1);
  return Ref<Buffer>::adopt(buffer);
}

Ref<Buffer> Buffer::wrap(std::span<uint8_t> bytes, bool is_mutable, std::function<void()> released) {
  return make<Buffer>(bytes, is_mutable, std::move(released));
}

Ref<Buffer> Buffer::wrap_const(std::span<const uint8_t> bytes, std::function<void()> released,
                               bool is_private) {
  auto buffer = make<Buffer>(std::span<uint8_t>(const_cast<uint8_t*>(bytes.data()), bytes.size()), false,
                             std::move(released));
  buffer->constant_ = true;
  buffer->private_ = is_private;
  return buffer;
}

}  // namespace halyard::vm
