// Encodes commands, and selects a command buffer for an execution.
#include "command_list.h"

#include <algorithm>

#include "device.h"

namespace halyard::vulkan {

template <typename Visit>
Result<> CommandList::each(Visit visit) const {
  for (uint64_t at = 0; at < size_;) {
    const auto& command = *reinterpret_cast<const halyard_command_t*>(commands_ + at);
    HALYARD_KIT_TRY(visit(command));
    at += command.size;
  }
  return {};
}

Result<> check_dispatch(const Device& device, const halyard_command_dispatch_t& command) {
  const Pipeline& pipeline = command.executable->pipeline(command.function);
  if (!pipeline.refusal.empty()) return fail(HALYARD_INCOMPATIBLE, "{}", pipeline.refusal);
  const uint32_t(&most)[3] = device.features().limits.maxComputeWorkGroupCount;
  const uint32_t(&groups)[3] = command.workgroups;
  if (!(command.flags & HALYARD_DISPATCH_INDIRECT) &&
      (groups[0] > most[0] || groups[1] > most[1] || groups[2] > most[2]))
    return fail(HALYARD_OUT_OF_RANGE,
                "dispatch of '{}' with {}x{}x{} workgroups; this device has {}x{}x{} at most", pipeline.name,
                groups[0], groups[1], groups[2], most[0], most[1], most[2]);
  if (pipeline.by_address && command.constant_count != pipeline.addresses.constant_count)
    return fail(command.constant_count > pipeline.addresses.constant_count ? HALYARD_OUT_OF_RANGE
                                                                           : HALYARD_INVALID_ARGUMENT,
                "dispatch of '{}' with {} constants, expected {}", pipeline.name, command.constant_count,
                pipeline.addresses.constant_count);
  return {};
}

Result<std::unique_ptr<halyard_driver_command_list>> CommandList::create(
    Device& device, const halyard_command_list_args_t& args) {
  auto list = std::make_unique<halyard_driver_command_list>(device, args);
  HALYARD_KIT_TRY(list->check());
  HALYARD_KIT_TRY(device.no_messages());
  return list;
}

Result<> CommandList::check() {
  std::vector<std::string_view> groups;
  return each([&](const halyard_command_t& command) -> Result<> {
    switch (command.kind) {
      case HALYARD_COMMAND_BARRIER:
      case HALYARD_COMMAND_FILL:
      case HALYARD_COMMAND_UPDATE:
      case HALYARD_COMMAND_COPY:
        return {};
      case HALYARD_COMMAND_BEGIN_GROUP:
        groups.push_back(view(reinterpret_cast<const halyard_command_begin_group_t&>(command).label));
        label_.add_group(groups);
        return {};
      case HALYARD_COMMAND_END_GROUP:
        if (!groups.empty()) groups.pop_back();
        return {};
      case HALYARD_COMMAND_DISPATCH: {
        const auto& dispatch = reinterpret_cast<const halyard_command_dispatch_t&>(command);
        computes_ = true;
        label_.add_function(dispatch.executable->pipeline(dispatch.function).name);
        return check_dispatch(device_, dispatch);
      }
      default:
        return fail(HALYARD_UNIMPLEMENTED, "this device has no commands of kind {}", command.kind);
    }
  });
}

Result<> CommandList::encode(CommandEncoder& encoder, BindingTable table) const {
  HALYARD_KIT_TRY(encoder.begin(one_shot_));
  HALYARD_KIT_TRY(each([&](const halyard_command_t& command) -> Result<> {
    encoder.encodes(&command);
    switch (command.kind) {
      case HALYARD_COMMAND_BARRIER:
        encoder.barrier();
        return {};
      case HALYARD_COMMAND_FILL: {
        const auto& fill = reinterpret_cast<const halyard_command_fill_t&>(command);
        return encoder.fill(HALYARD_KIT_TRY(resolve(fill.target, table)), fill.pattern, fill.pattern_size);
      }
      case HALYARD_COMMAND_UPDATE: {
        const auto& update = reinterpret_cast<const halyard_command_update_t&>(command);
        return encoder.update(HALYARD_KIT_TRY(resolve(update.target, table)), update.source);
      }
      case HALYARD_COMMAND_COPY: {
        const auto& copy = reinterpret_cast<const halyard_command_copy_t&>(command);
        return encoder.copy(HALYARD_KIT_TRY(resolve(copy.source, table)),
                            HALYARD_KIT_TRY(resolve(copy.target, table)));
      }
      case HALYARD_COMMAND_DISPATCH:
        return encoder.dispatch(reinterpret_cast<const halyard_command_dispatch_t&>(command), table);
      case HALYARD_COMMAND_BEGIN_GROUP:
        encoder.begin_group(view(reinterpret_cast<const halyard_command_begin_group_t&>(command).label));
        return {};
      default:  // check() has accepted only these
        encoder.end_group();
        return {};
    }
  }));
  return encoder.end();
}

Result<> CommandList::places_of(BindingTable table, std::vector<Place>& places) const {
  places.assign(slots_, {});
  for (size_t i = 0; i < places.size() && i < table.size(); ++i) {
    if (!table[i].memory) continue;  // no command uses this slot
    const Block* block = HALYARD_KIT_TRY(table[i].memory->block());
    places[i] = {block->chunk->serial, block->offset + table[i].offset};
  }
  return {};
}

Result<EncodedCommands> CommandList::commands_for(Queue& queue, BindingTable table) {
  const auto make = [&] { return CommandEncoder::create(device_, queue); };
  const uint32_t family = queue.traits().family;
  EncodedCommands use;
  if (!one_shot_) {
    const std::lock_guard lock(mutex_);
    HALYARD_KIT_TRY(places_of(table, wanted_));
    CachedCommands* chosen = nullptr;
    for (CachedCommands& each : cached_) {
      if (each.in_use || each.family != family) continue;
      if (each.is_complete && each.places == wanted_) {
        chosen = &each;
        break;
      }
      if (!chosen || each.last_use < chosen->last_use) chosen = &each;
    }
    const bool fits = chosen && chosen->is_complete && chosen->places == wanted_;
    if (!fits && cached_.size() < kMaxCached) {
      std::unique_ptr<CommandEncoder> encoder = HALYARD_KIT_TRY(make());
      cached_.reserve(kMaxCached);
      cached_.push_back({.encoder = std::move(encoder), .family = family});
      chosen = &cached_.back();
    }
    if (chosen) {
      if (!fits) {
        chosen->is_complete = false;
        HALYARD_KIT_TRY(encode(*chosen->encoder, table));
        chosen->is_complete = true;
        chosen->places = wanted_;
      }
      chosen->in_use = true;
      chosen->last_use = ++clock_;
      use.commands = chosen->encoder->commands();
      use.timestamps = chosen->encoder->timestamps();
      use.list = this;
      use.index = static_cast<size_t>(chosen - cached_.data());
      return use;
    }
  }
  use.once = HALYARD_KIT_TRY(device_.encoders(queue).take(make));
  HALYARD_KIT_TRY(encode(*use.once, table));
  use.commands = use.once->commands();
  use.timestamps = use.once->timestamps();
  return use;
}

void CommandList::release(size_t index) {
  const std::lock_guard lock(mutex_);
  cached_[index].in_use = false;
}

}  // namespace halyard::vulkan
