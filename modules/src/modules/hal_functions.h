// The functions of the `hal` module as plain C++ functions, one for each signature: the parameters are those
// of hal-module.md, in the same order. Signatures that only older programs use are at the end and forward to
// newer ones. The table modules/hal_functions.inc maps signatures to versions.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/command/command_buffer.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"
#include "hal/device/executable.h"
#include "hal/queue/fence.h"
#include "hal/queue/file.h"
#include "hal/queue/queue.h"
#include "hal/view/buffer_view.h"
#include "modules/module_options.h"
#include "vm/native/bind.h"
#include "vm/object/buffer.h"

namespace halyard::modules {

// hal.event: a type name that programs may use. There are no objects of this type, because no function
// creates events.
class Event final : public ObjectOf<Event> {
 public:
  static const ObjectType kType;
  Event() = delete;
  ~Event() = default;
};

namespace hal_functions {

using vm::Span;
using OptionalFence = vm::Lenient<hal::Fence>;

// ---- hal_allocator.cpp
Result<std::tuple<Ref<hal::Device>, uint64_t>> allocator_select(HalOptions&, uint32_t memory_types,
                                                                uint32_t usage, uint64_t flags,
                                                                Span<Object*, uint64_t> candidates);
Result<Ref<hal::Buffer>> allocator_allocate(HalOptions&, vm::CallContext&, hal::Allocator&, uint64_t affinity,
                                            uint32_t memory_types, uint32_t usage, uint64_t size);
Result<Ref<hal::Buffer>> allocator_import(HalOptions&, hal::Allocator&, uint32_t try_only, uint64_t affinity,
                                          uint32_t memory_types, uint32_t usage, vm::Buffer& source,
                                          uint64_t offset, uint64_t length);

// ---- hal_buffer.cpp
Result<> buffer_assert(hal::Buffer&, vm::Buffer& message, Object* allocator, uint64_t minimum_length,
                       uint32_t memory_types, uint32_t usage);
Result<> buffer_preserve(hal::Buffer&);
Result<int32_t> buffer_discard(hal::Buffer&);
Result<int32_t> buffer_is_terminal(hal::Buffer&);
Result<Ref<hal::Buffer>> buffer_subspan(HalOptions&, hal::Buffer&, uint64_t offset, uint64_t length);
Result<uint64_t> buffer_length(hal::Buffer&);
Result<uint32_t> buffer_load(hal::Buffer&, uint64_t offset, uint32_t length);
Result<> buffer_store(uint32_t value, hal::Buffer&, uint64_t offset, uint32_t length);

// ---- hal_buffer_view.cpp
Result<Ref<hal::BufferView>> buffer_view_create(HalOptions&, hal::Buffer&, uint64_t offset, uint64_t length,
                                                uint32_t element_type, uint32_t encoding,
                                                Span<int64_t> shape);
// Like the function above, but charges `memory` (may be null).
Result<Ref<hal::BufferView>> create_view(hal::Buffer&, uint64_t offset, uint64_t length,
                                         uint32_t element_type, uint32_t encoding, Span<int64_t> shape,
                                         Budget* memory);
Result<> buffer_view_assert(hal::BufferView&, vm::Buffer& message, uint32_t element_type, uint32_t encoding,
                            Span<int64_t> shape);
Result<Ref<hal::Buffer>> buffer_view_buffer(hal::BufferView&);
Result<uint32_t> buffer_view_element_type(hal::BufferView&);
Result<uint32_t> buffer_view_encoding_type(hal::BufferView&);
Result<uint32_t> buffer_view_rank(hal::BufferView&);
Result<int64_t> buffer_view_dim(hal::BufferView&, uint32_t index);
Result<> buffer_view_trace(HalOptions&, Object* key, Span<Object*> views);

// ---- hal_channel.cpp
Result<Ref<hal::Channel>> channel_create(HalOptions&, hal::Device&, uint64_t affinity, uint64_t flags,
                                         vm::Buffer* id, vm::Buffer* group, int32_t rank, int32_t count);
Result<Ref<hal::Channel>> channel_split(hal::Channel&, int32_t color, int32_t key, uint64_t flags);
Result<std::tuple<int32_t, int32_t>> channel_rank_and_count(vm::CallContext&, hal::Channel&);

// ---- hal_command_buffer.cpp
Result<Ref<hal::CommandBuffer>> command_buffer_create(HalOptions&, hal::Device&, uint32_t modes,
                                                      uint32_t categories, uint64_t affinity,
                                                      uint32_t binding_capacity);
Result<> command_buffer_finalize(hal::CommandBuffer&);
Result<> command_buffer_begin_debug_group(hal::CommandBuffer&, vm::Buffer& label);
Result<> command_buffer_end_debug_group(hal::CommandBuffer&);
Result<> command_buffer_execution_barrier(hal::CommandBuffer&, uint32_t source_stages, uint32_t target_stages,
                                          uint64_t flags);
Result<> command_buffer_advise_buffer(hal::CommandBuffer&, hal::Buffer*, uint64_t flags, uint64_t arg0,
                                      uint64_t arg1, uint32_t slot);
Result<> command_buffer_fill_buffer(HalOptions&, vm::CallContext&, hal::CommandBuffer&, hal::Buffer* target,
                                    uint64_t offset, uint64_t length, uint32_t target_slot, uint64_t pattern,
                                    uint32_t pattern_length, uint64_t flags);
Result<> command_buffer_update_buffer(HalOptions&, vm::CallContext&, hal::CommandBuffer&, vm::Buffer& source,
                                      uint64_t source_offset, hal::Buffer* target, uint64_t target_offset,
                                      uint64_t length, uint32_t target_slot, uint64_t flags);
Result<> command_buffer_copy_buffer(HalOptions&, vm::CallContext&, hal::CommandBuffer&, uint32_t source_slot,
                                    uint32_t target_slot, hal::Buffer* source, uint64_t source_offset,
                                    hal::Buffer* target, uint64_t target_offset, uint64_t length,
                                    uint64_t flags);
Result<> command_buffer_collective(hal::CommandBuffer&, hal::Channel&, uint32_t op, uint32_t param,
                                   uint32_t send_slot, uint32_t receive_slot, hal::Buffer* send,
                                   hal::Buffer* receive, uint64_t send_offset, uint64_t send_length,
                                   uint64_t receive_offset, uint64_t receive_length, uint64_t element_count);
// reserved, slot, buffer, offset, length
using BindingList = Span<uint32_t, uint32_t, hal::Buffer*, uint64_t, uint64_t>;
Result<> command_buffer_dispatch(HalOptions&, vm::CallContext&, hal::CommandBuffer&, hal::Executable&,
                                 uint64_t function, uint32_t x, uint32_t y, uint32_t z, uint64_t flags,
                                 Span<uint32_t> constants, BindingList bindings);
Result<> command_buffer_dispatch_indirect(HalOptions&, vm::CallContext&, hal::CommandBuffer&,
                                          hal::Executable&, uint64_t function, uint32_t workgroups_slot,
                                          hal::Buffer* workgroups, uint64_t workgroups_offset, uint64_t flags,
                                          Span<uint32_t> constants, BindingList bindings);

// ---- hal_device.cpp
Result<Ref<hal::Allocator>> device_allocator(hal::Device&);
Result<std::tuple<int32_t, int64_t>> device_query_i64(hal::Device&, vm::Buffer& category, vm::Buffer& key);
Result<int32_t> devices_count(HalOptions&);
Result<Ref<hal::Device>> devices_get(HalOptions&, uint32_t index);

// ---- hal_queue.cpp
Result<Ref<hal::Buffer>> queue_alloca(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity,
                                      OptionalFence wait, OptionalFence signal, uint64_t pool,
                                      uint32_t memory_types, uint32_t usage, uint64_t size, uint64_t flags);
Result<> queue_dealloca(HalOptions&, hal::Device&, uint64_t affinity, OptionalFence wait,
                        OptionalFence signal, hal::Buffer&, uint64_t flags);
Result<> queue_fill(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity, OptionalFence wait,
                    OptionalFence signal, hal::Buffer& target, uint64_t offset, uint64_t length,
                    uint64_t pattern, uint32_t pattern_length, uint64_t flags);
Result<> queue_update(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity, OptionalFence wait,
                      OptionalFence signal, vm::Buffer& source, uint64_t source_offset, hal::Buffer& target,
                      uint64_t target_offset, uint64_t length, uint64_t flags);
Result<> queue_copy(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity, OptionalFence wait,
                    OptionalFence signal, hal::Buffer& source, uint64_t source_offset, hal::Buffer& target,
                    uint64_t target_offset, uint64_t length, uint64_t flags);
Result<> queue_read(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity, OptionalFence wait,
                    OptionalFence signal, hal::File& source, uint64_t source_offset, hal::Buffer& target,
                    uint64_t target_offset, uint64_t length, uint64_t flags);
Result<> queue_write(HalOptions&, hal::Device&, uint64_t affinity, OptionalFence wait, OptionalFence signal,
                     hal::Buffer& source, uint64_t source_offset, hal::File& target, uint64_t target_offset,
                     uint64_t length, uint64_t flags);
Result<> queue_barrier(HalOptions&, hal::Device&, uint64_t affinity, OptionalFence wait, OptionalFence signal,
                       uint64_t flags);
Result<> queue_execute(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity, OptionalFence wait,
                       OptionalFence signal, hal::CommandBuffer&, uint64_t flags);
using BindingTable = Span<hal::Buffer*, uint64_t, uint64_t>;  // buffer, offset, length
Result<> queue_execute_indirect(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity,
                                OptionalFence wait, OptionalFence signal, hal::CommandBuffer&, uint64_t flags,
                                BindingTable table);
Result<> queue_flush(hal::Device&, uint64_t affinity);
// hal 0.5: an empty list acts as a barrier.
Result<> queue_execute_list(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity,
                            OptionalFence wait, OptionalFence signal,
                            Span<hal::CommandBuffer&> command_buffers);

// ---- hal_executable.cpp
Result<Ref<hal::File>> file_from_memory(HalOptions&, hal::Device&, uint64_t affinity, uint32_t access,
                                        vm::Buffer& source, uint64_t offset, uint64_t length, uint32_t flags);
Result<Ref<hal::Executable>> executable_create(HalOptions&, vm::CallContext&, hal::Device&, uint64_t affinity,
                                               vm::Buffer& format, vm::Buffer& data,
                                               vm::Lenient<vm::Buffer> constants);
Result<uint64_t> executable_lookup_function(hal::Executable&, vm::Buffer& name);

// ---- hal_fence.cpp
Result<Ref<hal::Fence>> fence_create(HalOptions&, hal::Device&, uint64_t flags);
Result<Ref<hal::Fence>> fence_join(HalOptions&, uint64_t flags, Span<hal::Fence*> fences);
Result<int32_t> fence_query(hal::Fence&);
Result<> fence_signal(hal::Fence&);
Result<> fence_fail(hal::Fence&, uint32_t code);
Result<int32_t> fence_await(vm::CallContext&, HalOptions&, uint32_t timeout_milliseconds, uint64_t flags,
                            Span<hal::Fence*> fences);

// ---- Shared helpers.

// Names are passed as bytes of a vm.buffer.
inline std::string_view text(const vm::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.length()};
}
// A range of host bytes for queue work or a recording. OUT_OF_RANGE.
inline Result<std::span<uint8_t>> host_range(const vm::Buffer& buffer, uint64_t offset, uint64_t length) {
  if (offset > buffer.length() || length > buffer.length() - offset)
    return fail(Code::OUT_OF_RANGE,
                "expected a range within the {} bytes of the vm.buffer, found {} bytes at offset {}",
                buffer.length(), length, offset);
  return buffer.span().subspan(offset, length);
}

// Loads an executable for the device. `constants` may be null.
Result<Ref<hal::Executable>> load_executable(const TargetFeatures& targets, vm::CallContext& call,
                                             hal::Device& device, uint64_t affinity, vm::Buffer& format,
                                             vm::Buffer& data, const vm::Buffer* constants, Budget* memory);
// Passes the views to the sink; without a sink nothing is checked.
Result<> trace_views(const TraceSink& sink, Object* key, Span<Object*> operands);

// Collects the entries of a variadic argument with one item each.
template <typename T, size_t N>
void collect(const Span<T>& entries, boost::container::small_vector<T, N>& into) {
  for (size_t i = 0; i < entries.size(); ++i) into.push_back(std::get<0>(entries[i]));
}

// ---- Signatures of hal 0.5 (dispatch: also 0.6) that have a newer form.

inline Result<Ref<hal::Channel>> channel_create_5(HalOptions& state, hal::Device& device, uint64_t affinity,
                                                  uint32_t flags, vm::Buffer* id, vm::Buffer* group,
                                                  int32_t rank, int32_t count) {
  return channel_create(state, device, affinity, flags, id, group, rank, count);
}
inline Result<Ref<hal::Channel>> channel_split_5(hal::Channel& channel, int32_t color, int32_t key,
                                                 uint32_t flags) {
  return channel_split(channel, color, key, flags);
}
inline Result<> command_buffer_execution_barrier_5(hal::CommandBuffer& commands, uint32_t source_stages,
                                                   uint32_t target_stages, uint32_t flags) {
  return command_buffer_execution_barrier(commands, source_stages, target_stages, flags);
}
inline Result<> command_buffer_fill_buffer_5(HalOptions& state, vm::CallContext& call,
                                             hal::CommandBuffer& commands, hal::Buffer* target,
                                             uint64_t offset, uint64_t length, uint32_t target_slot,
                                             uint32_t pattern, uint32_t pattern_length) {
  return command_buffer_fill_buffer(state, call, commands, target, offset, length, target_slot, pattern,
                                    pattern_length, 0);
}
inline Result<> command_buffer_update_buffer_5(HalOptions& state, vm::CallContext& call,
                                               hal::CommandBuffer& commands, vm::Buffer& source,
                                               uint64_t source_offset, hal::Buffer* target,
                                               uint64_t target_offset, uint64_t length,
                                               uint32_t target_slot) {
  return command_buffer_update_buffer(state, call, commands, source, source_offset, target, target_offset,
                                      length, target_slot, 0);
}
inline Result<> command_buffer_copy_buffer_5(HalOptions& state, vm::CallContext& call,
                                             hal::CommandBuffer& commands, uint32_t source_slot,
                                             uint32_t target_slot, hal::Buffer* source,
                                             uint64_t source_offset, hal::Buffer* target,
                                             uint64_t target_offset, uint64_t length) {
  return command_buffer_copy_buffer(state, call, commands, source_slot, target_slot, source, source_offset,
                                    target, target_offset, length, 0);
}
inline Result<> command_buffer_dispatch_5(HalOptions& state, vm::CallContext& call,
                                          hal::CommandBuffer& commands, hal::Executable& executable,
                                          uint32_t entry_point, uint32_t x, uint32_t y, uint32_t z,
                                          uint64_t flags, Span<uint32_t> constants, BindingList bindings) {
  return command_buffer_dispatch(state, call, commands, executable, entry_point, x, y, z, flags, constants,
                                 bindings);
}
inline Result<> command_buffer_dispatch_indirect_5(HalOptions& state, vm::CallContext& call,
                                                   hal::CommandBuffer& commands, hal::Executable& executable,
                                                   uint32_t entry_point, uint32_t workgroups_slot,
                                                   hal::Buffer* workgroups, uint64_t workgroups_offset,
                                                   uint64_t flags, Span<uint32_t> constants,
                                                   BindingList bindings) {
  return command_buffer_dispatch_indirect(state, call, commands, executable, entry_point, workgroups_slot,
                                          workgroups, workgroups_offset, flags, constants, bindings);
}
inline Result<Ref<hal::Buffer>> queue_alloca_5(HalOptions& state, vm::CallContext& call, hal::Device& device,
                                               uint64_t affinity, OptionalFence wait, OptionalFence signal,
                                               uint32_t pool, uint32_t memory_types, uint32_t usage,
                                               uint64_t size) {
  return queue_alloca(state, call, device, affinity, wait, signal, pool, memory_types, usage, size, 0);
}
inline Result<> queue_dealloca_5(HalOptions& state, hal::Device& device, uint64_t affinity,
                                 OptionalFence wait, OptionalFence signal, hal::Buffer& buffer) {
  return queue_dealloca(state, device, affinity, wait, signal, buffer, 0);
}
inline Result<> queue_read_5(HalOptions& state, vm::CallContext& call, hal::Device& device, uint64_t affinity,
                             OptionalFence wait, OptionalFence signal, hal::File& source,
                             uint64_t source_offset, hal::Buffer& target, uint64_t target_offset,
                             uint64_t length, uint32_t flags) {
  return queue_read(state, call, device, affinity, wait, signal, source, source_offset, target, target_offset,
                    length, flags);
}
inline Result<> queue_write_5(HalOptions& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                              OptionalFence signal, hal::Buffer& source, uint64_t source_offset,
                              hal::File& target, uint64_t target_offset, uint64_t length, uint32_t flags) {
  return queue_write(state, device, affinity, wait, signal, source, source_offset, target, target_offset,
                     length, flags);
}
inline Result<> queue_execute_indirect_5(HalOptions& state, vm::CallContext& call, hal::Device& device,
                                         uint64_t affinity, OptionalFence wait, OptionalFence signal,
                                         hal::CommandBuffer& commands, BindingTable table) {
  return queue_execute_indirect(state, call, device, affinity, wait, signal, commands, 0, table);
}
inline Result<Ref<hal::Executable>> executable_create_5(HalOptions& state, vm::CallContext& call,
                                                        hal::Device& device, vm::Buffer& format,
                                                        vm::Buffer& data, vm::Lenient<vm::Buffer> constants) {
  return executable_create(state, call, device, hal::kAnyQueue, format, data, constants);
}
inline Result<Ref<hal::Fence>> fence_create_5(HalOptions& state, hal::Device& device, uint32_t flags) {
  return fence_create(state, device, flags);
}
inline Result<Ref<hal::Fence>> fence_join_5(HalOptions& state, Span<hal::Fence*> fences) {
  return fence_join(state, 0, fences);
}
inline Result<int32_t> fence_await_5(vm::CallContext& call, HalOptions& state, uint32_t timeout_milliseconds,
                                     Span<hal::Fence*> fences) {
  return fence_await(call, state, timeout_milliseconds, 0, fences);
}

}  // namespace hal_functions
}  // namespace halyard::modules
