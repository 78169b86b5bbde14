// Each command of a message is recorded, which checks it.
#include "server/recording.h"

#include <fmt/format.h>

namespace halyard::device_server {

namespace {

using hal::BufferRange;

// Records one command after the other; keeps the numbers of the memories.
struct Recorder {
  Objects& objects;
  hal::CommandBuffer& commands;
  MemoryNumbers& memories;
  Status& failure;

  Result<BufferRange> range(const wire::Range* from) {
    BufferRange made = HALYARD_TRY(range_of(objects, from, failure));
    if (from->memory() != 0) memories.add(from->memory());
    return made;
  }
  // Recording has failed, not the protocol.
  Result<> keep(Result<> recorded) {
    if (!recorded && failure.ok()) failure = std::move(recorded.error());
    return {};
  }

  Result<> record(const wire::Barrier& it) {
    return keep(commands.barrier(it.source_stages(), it.target_stages()));
  }
  Result<> record(const wire::BeginGroup& it) {
    return keep(commands.begin_debug_group(remote::view(it.label())));
  }
  Result<> record(const wire::EndGroup&) { return keep(commands.end_debug_group()); }
  Result<> record(const wire::Fill& it) {
    const BufferRange target = HALYARD_TRY(range(it.target()));
    if (!failure.ok()) return {};
    return keep(commands.fill(target, it.pattern(), it.pattern_size()));
  }
  Result<> record(const wire::Update& it) {
    const BufferRange target = HALYARD_TRY(range(it.target()));
    const flatbuffers::Vector<uint8_t>* const bytes = it.bytes();
    if (!bytes || bytes->size() != it.target()->length())
      return fail(Code::INVALID_ARGUMENT, "an update of {} bytes comes with {} bytes", it.target()->length(),
                  bytes ? bytes->size() : 0);
    if (!failure.ok()) return {};
    return keep(commands.update(target, {bytes->data(), bytes->size()}));
  }
  Result<> record(const wire::Copy& it) {
    const BufferRange source = HALYARD_TRY(range(it.source()));
    const BufferRange target = HALYARD_TRY(range(it.target()));
    if (!failure.ok()) return {};
    return keep(commands.copy(source, target));
  }
  Result<> record(const wire::Dispatch& it) {
    const ExecutableObject* const executable = HALYARD_TRY(objects.executables.find(it.executable()));
    if (!executable->failure.ok())
      failure = executable->failure;
    else if (it.bindings() && it.bindings()->size() > hal::kMaxBindings)
      failure = Status(Code::OUT_OF_RANGE, fmt::format("expected at most {} bindings, found {}",
                                                       hal::kMaxBindings, it.bindings()->size()));
    if (!failure.ok()) return {};
    hal::CommandBuffer::Dispatch dispatch;
    dispatch.executable = executable->executable.get();
    dispatch.function = it.function();
    if (const wire::Workgroups* const counts = it.workgroups()) {
      dispatch.workgroups[0] = counts->x();
      dispatch.workgroups[1] = counts->y();
      dispatch.workgroups[2] = counts->z();
    }
    if (it.constants()) dispatch.constants = {it.constants()->data(), it.constants()->size()};
    std::vector<BufferRange> bindings;
    if (it.bindings())
      for (const wire::Range* const binding : *it.bindings()) bindings.push_back(HALYARD_TRY(range(binding)));
    dispatch.bindings = bindings;
    BufferRange indirect;
    if (it.counts()) {
      indirect = HALYARD_TRY(range(it.counts()));
      dispatch.indirect = &indirect;
    }
    if (!failure.ok()) return {};
    return keep(commands.dispatch(dispatch));
  }
};

}  // namespace

Result<BufferRange> range_of(Objects& objects, const wire::Range* range, Status& failure) {
  if (!range) return fail(Code::INVALID_ARGUMENT, "a command has no range");
  if (range->length() == hal::kWholeLength && failure.ok())
    failure = Status(Code::OUT_OF_RANGE, "a range has the length 2^64-1; lengths are explicit");
  if (range->memory() == 0) return BufferRange{nullptr, range->slot(), range->offset(), range->length()};
  MemoryObject* const memory = HALYARD_TRY(objects.memories.find(range->memory()));
  settle(*memory);
  if (!memory->failure.ok() && failure.ok()) failure = memory->failure;
  return BufferRange{memory->buffer.get(), 0, range->offset(), range->length()};
}

Result<ListObject> record(Objects& objects, const Ref<hal::Device>& device, Budget& memory,
                          const wire::ListCreate& asked) {
  ListObject list;
  if (asked.binding_count() > hal::kMaxSlots)
    return fail(Code::INVALID_ARGUMENT, "a binding table has {} entries; expected at most {}",
                asked.binding_count(), hal::kMaxSlots);
  Result<Ref<hal::CommandBuffer>> made = hal::CommandBuffer::create(
      device, asked.one_shot() ? uint32_t{hal::kOneShot} : 0u, hal::kTransfer | hal::kDispatchCategory,
      asked.affinity(), asked.binding_count(), &memory);
  if (!made) {
    list.failure = std::move(made.error());
    return list;
  }
  list.commands = *std::move(made);
  const auto memories = std::make_shared<MemoryNumbers>();
  Recorder recorder{objects, *list.commands, *memories, list.failure};
  if (asked.commands())
    for (const wire::RecordedCommand* const command : *asked.commands()) {
      // Commands of a message may be the same table many times, so the rest costs more than its bytes.
      if (!list.failure.ok()) break;
      switch (command->command_type()) {
#define DEVICE_SERVER_COMMAND(Name)                                                            \
  case wire::Command::Name:                                                                    \
    if (!command->command()) return fail(Code::INVALID_ARGUMENT, "a command has no contents"); \
    HALYARD_TRY(recorder.record(*command->command_as_##Name()));                               \
    break;
        DEVICE_SERVER_COMMAND(Barrier)
        DEVICE_SERVER_COMMAND(BeginGroup)
        DEVICE_SERVER_COMMAND(EndGroup)
        DEVICE_SERVER_COMMAND(Fill)
        DEVICE_SERVER_COMMAND(Update)
        DEVICE_SERVER_COMMAND(Copy)
        DEVICE_SERVER_COMMAND(Dispatch)
#undef DEVICE_SERVER_COMMAND
        default:
          return fail(Code::UNIMPLEMENTED, "command of kind {} is unknown",
                      static_cast<unsigned>(command->command_type()));
      }
    }
  if (list.failure.ok()) list.failure = to_status(list.commands->finalize());
  if (list.failure.ok()) list.failure = to_status(memories->finish(memory));
  if (list.failure.ok()) list.memories = memories;
  if (!list.failure.ok()) list.commands = nullptr;
  return list;
}

}  // namespace halyard::device_server
