// Converts the structs of the driver ABI to values.
#include "hal/command/command_list.h"

#include <cstring>
#include <map>

#include "hal/command/command_buffer.h"

namespace halyard::hal {

namespace {

template <typename T>
T read(const uint64_t* words) {
  T command;
  std::memcpy(&command, words, sizeof(T));
  return command;
}

// Numbers in the order of first use.
template <typename T>
uint32_t number(std::vector<T*>& numbered, std::map<T*, uint32_t>& known, T* item) {
  const auto [found, is_new] = known.try_emplace(item, static_cast<uint32_t>(numbered.size()));
  if (is_new) numbered.push_back(item);
  return found->second;
}

}  // namespace

struct CommandBuffer::Lister {
  const CommandBuffer& self;
  CommandList list = {};
  std::map<halyard_driver_memory_t, Allocation*> allocations = {};
  std::map<halyard_driver_executable_t, Executable*> executables = {};
  std::map<Allocation*, uint32_t> buffer_numbers = {};
  std::map<Executable*, uint32_t> executable_numbers = {};

  CommandList all() {
    for (const Ref<Object>& resource : self.resources_) {
      if (auto* executable = cast<Executable>(resource.get())) {
        executables.emplace(executable->handle(), executable);
      } else if (auto* allocation = cast<Allocation>(resource.get())) {
        allocations.emplace(allocation->memory, allocation);
      }
    }
    list.commands.reserve(self.command_count_);
    for (size_t word = 0; word < self.words_.size();) {
      const auto header = read<halyard_command_t>(&self.words_[word]);
      list.commands.push_back(command(header.kind, &self.words_[word]));
      word += header.size / sizeof(uint64_t);
    }
    return std::move(list);
  }

  CommandRange range(const halyard_range_t& from) {
    CommandRange to = {kNoBuffer, from.slot, from.offset, from.length};
    Allocation* allocation = nullptr;
    if (from.memory) {
      allocation = allocations.at(from.memory);
    } else if (from.slot >= self.binding_capacity_) {
      allocation = &self.foreign(from.slot);
    }
    if (!allocation) return to;
    to.slot = 0;
    to.buffer = number(list.buffers, buffer_numbers, allocation);
    return to;
  }

  Command dispatch(const halyard_command_dispatch_t& from) {
    Executable* executable = executables.at(from.executable);
    DispatchCommand to;
    to.executable = number(list.executables, executable_numbers, executable);
    to.function = from.function;
    to.function_name = executable->functions()[from.function].name;
    std::memcpy(to.workgroups, from.workgroups, sizeof to.workgroups);
    to.is_indirect = from.flags & HALYARD_DISPATCH_INDIRECT;
    if (to.is_indirect) to.counts = range(from.indirect);
    to.constants = {from.constants, from.constant_count};
    for (uint32_t i = 0; i < from.binding_count; ++i) to.bindings.push_back(range(from.bindings[i]));
    return to;
  }

  Command command(uint32_t kind, const uint64_t* words) {
    switch (kind) {
      case HALYARD_COMMAND_BARRIER: {
        const auto from = read<halyard_command_barrier_t>(words);
        return BarrierCommand{from.source_stages, from.target_stages};
      }
      case HALYARD_COMMAND_FILL: {
        const auto from = read<halyard_command_fill_t>(words);
        return FillCommand{range(from.target), from.pattern, from.pattern_size};
      }
      case HALYARD_COMMAND_UPDATE: {
        const auto from = read<halyard_command_update_t>(words);
        return UpdateCommand{range(from.target),
                             {static_cast<const uint8_t*>(from.source), from.target.length}};
      }
      case HALYARD_COMMAND_COPY: {
        const auto from = read<halyard_command_copy_t>(words);
        const CommandRange source = range(from.source);
        return CopyCommand{source, range(from.target)};
      }
      case HALYARD_COMMAND_DISPATCH:
        return dispatch(read<halyard_command_dispatch_t>(words));
      case HALYARD_COMMAND_BEGIN_GROUP: {
        const auto from = read<halyard_command_begin_group_t>(words);
        return BeginGroupCommand{{from.label.data, from.label.size}};
      }
      default:
        return EndGroupCommand{};
    }
  }
};

CommandList CommandBuffer::list() const { return Lister{*this}.all(); }

std::vector<CommandUse> uses_of(const Command& command) {
  struct Uses {
    std::vector<CommandUse> operator()(const BarrierCommand&) const { return {}; }
    std::vector<CommandUse> operator()(const BeginGroupCommand&) const { return {}; }
    std::vector<CommandUse> operator()(const EndGroupCommand&) const { return {}; }
    std::vector<CommandUse> operator()(const FillCommand& fill) const { return {{fill.target, true}}; }
    std::vector<CommandUse> operator()(const UpdateCommand& update) const { return {{update.target, true}}; }
    std::vector<CommandUse> operator()(const CopyCommand& copy) const {
      return {{copy.source, false}, {copy.target, true}};
    }
    std::vector<CommandUse> operator()(const DispatchCommand& dispatch) const {
      std::vector<CommandUse> uses;
      if (dispatch.is_indirect) uses.push_back({dispatch.counts, false});
      for (const CommandRange& binding : dispatch.bindings) uses.push_back({binding, true});
      return uses;
    }
  };
  return std::visit(Uses(), command);
}

}  // namespace halyard::hal
