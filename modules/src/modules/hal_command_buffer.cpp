// hal.command_buffer.*: converts arguments; hal::CommandBuffer checks them. Specified by hal-module.md,
// "Command buffer".
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {
namespace {

constexpr uint64_t kWorkgroupCountBytes = 3 * sizeof(uint32_t);

// The dispatch flags that change the meaning of constants. The other flags are hints, or determine when
// indirect counts are read; reading the counts when the command executes is correct for all of them.
constexpr uint64_t kCustomArguments = 0x4 | 0x8 | 0x10;

Result<> record_dispatch(hal::CommandBuffer& commands, hal::CommandBuffer::Dispatch dispatch, uint64_t flags,
                         Span<uint32_t> constants, BindingList bindings) {
  if (flags & kCustomArguments)
    return fail(Code::UNIMPLEMENTED,
                "dispatch flags {:#x} ask for custom arguments; only constants and bindings are supported",
                flags & kCustomArguments);
  if (bindings.size() > hal::kMaxBindings)
    return fail(Code::OUT_OF_RANGE, "expected at most {} bindings, found {}", hal::kMaxBindings,
                bindings.size());
  hal::BufferRange ranges[hal::kMaxBindings];
  for (size_t i = 0; i < bindings.size(); ++i) {
    const auto [reserved, slot, buffer, offset, length] = bindings[i];
    ranges[i] = {buffer, slot, offset, length};
  }
  boost::container::small_vector<uint32_t, 32> values;
  collect(constants, values);
  dispatch.constants = values;
  dispatch.bindings = std::span(ranges, bindings.size());
  return commands.dispatch(dispatch);
}

// Records a command. If tensors or times are traced, the command also gets its place in the program.
template <typename Record>
Result<> recorded(const HalOptions& state, const vm::CallContext& call, hal::CommandBuffer& commands,
                  Record&& record) {
  if (!state.tensors && !commands.device().trace()) [[likely]]
    return record();
  const hal::CommandBuffer::RecordingPlace place(commands, call.invocation().place());
  return record();
}

}  // namespace

Result<Ref<hal::CommandBuffer>> command_buffer_create(HalOptions& state, hal::Device& device, uint32_t modes,
                                                      uint32_t categories, uint64_t affinity,
                                                      uint32_t binding_capacity) {
  return hal::CommandBuffer::create(Ref<hal::Device>::share(&device), modes, categories, affinity,
                                    binding_capacity, state.memory.get());
}

Result<> command_buffer_finalize(hal::CommandBuffer& commands) { return commands.finalize(); }

Result<> command_buffer_begin_debug_group(hal::CommandBuffer& commands, vm::Buffer& label) {
  return commands.begin_debug_group(text(label));
}

Result<> command_buffer_end_debug_group(hal::CommandBuffer& commands) { return commands.end_debug_group(); }

Result<> command_buffer_execution_barrier(hal::CommandBuffer& commands, uint32_t source_stages,
                                          uint32_t target_stages, uint64_t) {
  return commands.barrier(source_stages, target_stages);
}

Result<> command_buffer_advise_buffer(hal::CommandBuffer& commands, hal::Buffer* buffer, uint64_t, uint64_t,
                                      uint64_t, uint32_t slot) {
  return commands.advise({buffer, slot, 0, buffer ? buffer->length() : hal::kWholeLength});
}

Result<> command_buffer_fill_buffer(HalOptions& state, vm::CallContext& call, hal::CommandBuffer& commands,
                                    hal::Buffer* target, uint64_t offset, uint64_t length,
                                    uint32_t target_slot, uint64_t pattern, uint32_t pattern_length,
                                    uint64_t) {
  return recorded(state, call, commands, [&] {
    return commands.fill({target, target_slot, offset, length}, pattern, pattern_length);
  });
}

Result<> command_buffer_update_buffer(HalOptions& state, vm::CallContext& call, hal::CommandBuffer& commands,
                                      vm::Buffer& source, uint64_t source_offset, hal::Buffer* target,
                                      uint64_t target_offset, uint64_t length, uint32_t target_slot,
                                      uint64_t) {
  const std::span<uint8_t> bytes = HALYARD_TRY(host_range(source, source_offset, length));
  return recorded(state, call, commands,
                  [&] { return commands.update({target, target_slot, target_offset, length}, bytes); });
}

Result<> command_buffer_copy_buffer(HalOptions& state, vm::CallContext& call, hal::CommandBuffer& commands,
                                    uint32_t source_slot, uint32_t target_slot, hal::Buffer* source,
                                    uint64_t source_offset, hal::Buffer* target, uint64_t target_offset,
                                    uint64_t length, uint64_t) {
  return recorded(state, call, commands, [&] {
    return commands.copy({source, source_slot, source_offset, length},
                         {target, target_slot, target_offset, length});
  });
}

Result<> command_buffer_dispatch(HalOptions& state, vm::CallContext& call, hal::CommandBuffer& commands,
                                 hal::Executable& executable, uint64_t function, uint32_t x, uint32_t y,
                                 uint32_t z, uint64_t flags, Span<uint32_t> constants, BindingList bindings) {
  hal::CommandBuffer::Dispatch dispatch;
  dispatch.executable = &executable;
  dispatch.function = function;
  dispatch.workgroups[0] = x;
  dispatch.workgroups[1] = y;
  dispatch.workgroups[2] = z;
  return recorded(state, call, commands,
                  [&] { return record_dispatch(commands, dispatch, flags, constants, bindings); });
}

Result<> command_buffer_dispatch_indirect(HalOptions& state, vm::CallContext& call,
                                          hal::CommandBuffer& commands, hal::Executable& executable,
                                          uint64_t function, uint32_t workgroups_slot,
                                          hal::Buffer* workgroups, uint64_t workgroups_offset, uint64_t flags,
                                          Span<uint32_t> constants, BindingList bindings) {
  const hal::BufferRange counts = {workgroups, workgroups_slot, workgroups_offset, kWorkgroupCountBytes};
  hal::CommandBuffer::Dispatch dispatch;
  dispatch.executable = &executable;
  dispatch.function = function;
  dispatch.indirect = &counts;
  return recorded(state, call, commands,
                  [&] { return record_dispatch(commands, dispatch, flags, constants, bindings); });
}

}  // namespace halyard::modules::hal_functions
