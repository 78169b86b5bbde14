// hal.device.queue.*: converts arguments; hal/queue/queue.h does the work. Specified by hal-module.md, "Queue
// rules" and "Device".
#include "hal/queue/queue.h"
#include "modules/caller_makes.h"
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {
namespace {

hal::QueuePoint at(const HalOptions& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                   OptionalFence signal) {
  return {device, affinity, wait.get(), signal.get(), state.memory.get(), nullptr, state.owner};
}

// A queue point for work that can be stopped.
hal::QueuePoint at(HalOptions& state, const vm::CallContext& call, hal::Device& device, uint64_t affinity,
                   OptionalFence wait, OptionalFence signal) {
  if (WorkScope* const scope = call.work_scope()) state.work->remember(*scope);
  return {device, affinity, wait.get(), signal.get(), state.memory.get(), call.work_scope(), state.owner};
}

Result<> execute(HalOptions& state, const hal::QueuePoint& point, hal::CommandBuffer& commands,
                 std::span<const hal::Binding> table) {
  if (state.capture) [[unlikely]]
    return state.capture->execute(point, commands, table);
  if (state.tensors) [[unlikely]]
    return state.tensors->execute(point, commands, table);
  return hal::queue_execute(point, commands, table);
}

// Whether queue operations are steps of the trace too.
bool traces_operations(const HalOptions& state) { return state.tensors && state.tensors->traces_all_steps(); }

}  // namespace

Result<Ref<hal::Buffer>> queue_alloca(HalOptions& state, vm::CallContext& call, hal::Device& device,
                                      uint64_t affinity, OptionalFence wait, OptionalFence signal,
                                      uint64_t pool, uint32_t memory_types, uint32_t usage, uint64_t size,
                                      uint64_t flags) {
  const CallerMakes caller(device, call);
  return hal::queue_alloca(at(state, device, affinity, wait, signal), pool, memory_types, usage, size, flags);
}

Result<> queue_dealloca(HalOptions& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                        OptionalFence signal, hal::Buffer& buffer, uint64_t flags) {
  return hal::queue_dealloca(at(state, device, affinity, wait, signal), buffer, flags);
}

Result<> queue_fill(HalOptions& state, vm::CallContext& call, hal::Device& device, uint64_t affinity,
                    OptionalFence wait, OptionalFence signal, hal::Buffer& target, uint64_t offset,
                    uint64_t length, uint64_t pattern, uint32_t pattern_length, uint64_t) {
  if (traces_operations(state)) [[unlikely]]
    return state.tensors->operate(
        at(state, device, affinity, wait, signal),
        {"fill", target, offset, length, call.invocation().place(),
         [=, kept = Ref<hal::Buffer>::share(&target)](const hal::QueuePoint& point) {
           return hal::queue_fill(point, *kept, offset, length, pattern, pattern_length);
         }});
  return hal::queue_fill(at(state, device, affinity, wait, signal), target, offset, length, pattern,
                         pattern_length);
}

Result<> queue_update(HalOptions& state, vm::CallContext& call, hal::Device& device, uint64_t affinity,
                      OptionalFence wait, OptionalFence signal, vm::Buffer& source, uint64_t source_offset,
                      hal::Buffer& target, uint64_t target_offset, uint64_t length, uint64_t) {
  const std::span<uint8_t> bytes = HALYARD_TRY(host_range(source, source_offset, length));
  if (traces_operations(state)) [[unlikely]]
    return state.tensors->operate(
        at(state, device, affinity, wait, signal),
        {"update", target, target_offset, length, call.invocation().place(),
         [=, kept = Ref<hal::Buffer>::share(&target),
          copied = std::vector<uint8_t>(bytes.begin(), bytes.end())](const hal::QueuePoint& point) {
           return hal::queue_update(point, copied, *kept, target_offset);
         }});
  return hal::queue_update(at(state, device, affinity, wait, signal), bytes, target, target_offset);
}

Result<> queue_copy(HalOptions& state, vm::CallContext& call, hal::Device& device, uint64_t affinity,
                    OptionalFence wait, OptionalFence signal, hal::Buffer& source, uint64_t source_offset,
                    hal::Buffer& target, uint64_t target_offset, uint64_t length, uint64_t) {
  if (traces_operations(state)) [[unlikely]]
    return state.tensors->operate(at(state, device, affinity, wait, signal),
                                  {"copy", target, target_offset, length, call.invocation().place(),
                                   [=, from = Ref<hal::Buffer>::share(&source),
                                    kept = Ref<hal::Buffer>::share(&target)](const hal::QueuePoint& point) {
                                     return hal::queue_copy(point, *from, source_offset, *kept, target_offset,
                                                            length);
                                   }});
  return hal::queue_copy(at(state, device, affinity, wait, signal), source, source_offset, target,
                         target_offset, length);
}

Result<> queue_read(HalOptions& state, vm::CallContext& call, hal::Device& device, uint64_t affinity,
                    OptionalFence wait, OptionalFence signal, hal::File& source, uint64_t source_offset,
                    hal::Buffer& target, uint64_t target_offset, uint64_t length, uint64_t) {
  if (traces_operations(state)) [[unlikely]]
    return state.tensors->operate(at(state, device, affinity, wait, signal),
                                  {"read", target, target_offset, length, call.invocation().place(),
                                   [=, from = Ref<hal::File>::share(&source),
                                    kept = Ref<hal::Buffer>::share(&target)](const hal::QueuePoint& point) {
                                     return hal::queue_read(point, *from, source_offset, *kept, target_offset,
                                                            length);
                                   }});
  return hal::queue_read(at(state, device, affinity, wait, signal), source, source_offset, target,
                         target_offset, length);
}

Result<> queue_write(HalOptions& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                     OptionalFence signal, hal::Buffer& source, uint64_t source_offset, hal::File& target,
                     uint64_t target_offset, uint64_t length, uint64_t) {
  return hal::queue_write(at(state, device, affinity, wait, signal), source, source_offset, target,
                          target_offset, length);
}

Result<> queue_barrier(HalOptions& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                       OptionalFence signal, uint64_t) {
  return hal::queue_barrier(at(state, device, affinity, wait, signal));
}

Result<> queue_execute(HalOptions& state, vm::CallContext& call, hal::Device& device, uint64_t affinity,
                       OptionalFence wait, OptionalFence signal, hal::CommandBuffer& commands, uint64_t) {
  return execute(state, at(state, call, device, affinity, wait, signal), commands, {});
}

Result<> queue_execute_indirect(HalOptions& state, vm::CallContext& call, hal::Device& device,
                                uint64_t affinity, OptionalFence wait, OptionalFence signal,
                                hal::CommandBuffer& commands, uint64_t, BindingTable table) {
  boost::container::small_vector<hal::Binding, 16> bindings;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto [buffer, offset, length] = table[i];
    bindings.push_back({buffer, offset, length});
  }
  return execute(state, at(state, call, device, affinity, wait, signal), commands, bindings);
}

Result<> queue_flush(hal::Device& device, uint64_t affinity) { return hal::queue_flush(device, affinity); }

Result<> queue_execute_list(HalOptions& state, vm::CallContext& call, hal::Device& device, uint64_t affinity,
                            OptionalFence wait, OptionalFence signal,
                            Span<hal::CommandBuffer&> command_buffers) {
  if (command_buffers.empty()) return queue_barrier(state, device, affinity, wait, signal, 0);
  if (command_buffers.size() > 1)
    return fail(Code::INVALID_ARGUMENT, "expected one command buffer or none, found {}",
                command_buffers.size());
  return queue_execute(state, call, device, affinity, wait, signal, std::get<0>(command_buffers[0]), 0);
}

}  // namespace halyard::modules::hal_functions
