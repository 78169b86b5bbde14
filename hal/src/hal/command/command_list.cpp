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

// Assigns numbers in the order of first use.
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
  std::map<Channel*, uint32_t> channel_numbers = {};

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
    } else if (from.slot >= self.first_foreign_slot()) {
      allocation = &self.foreign(from.slot);
    }
    if (!allocation) return to;
    to.slot = 0;
    to.buffer = number(list.buffers, buffer_numbers, allocation);
    return to;
  }

  // ---- The fields of the driver's structs

  uint32_t field(command_field::Number, uint32_t from) { return from; }
  std::string_view field(command_field::Text, halyard_text_t from) { return {from.data, from.size}; }
  CommandRange field(command_field::Source, const halyard_range_t& from) { return range(from); }
  CommandRange field(command_field::Target, const halyard_range_t& from) { return range(from); }
  uint32_t field(command_field::ExecutableNumber, halyard_driver_executable_t from) {
    return number(list.executables, executable_numbers, executables.at(from));
  }
  uint32_t field(command_field::ChannelNumber, void* from) {
    return number(list.channels, channel_numbers, static_cast<Channel*>(from));
  }
  uint64_t field(command_field::Elements, uint64_t from) { return from; }
  std::array<uint32_t, 3> field(command_field::Workgroups, const uint32_t (&from)[3]) {
    return {from[0], from[1], from[2]};
  }

  // Fields whose form differs from the driver's struct.
  std::span<const uint8_t> own_field(command_field::Data, const halyard_command_update_t& from) {
    return {static_cast<const uint8_t*>(from.source), from.target.length};
  }
  std::string_view own_field(command_field::Name, const halyard_command_dispatch_t& from) {
    return executables.at(from.executable)->functions()[from.function].name;
  }
  std::optional<CommandRange> own_field(command_field::Counts, const halyard_command_dispatch_t& from) {
    if (!(from.flags & HALYARD_DISPATCH_INDIRECT)) return {};
    return range(from.indirect);
  }
  std::span<const uint32_t> own_field(command_field::Constants, const halyard_command_dispatch_t& from) {
    return {from.constants, from.constant_count};
  }
  std::vector<CommandRange> own_field(command_field::Bindings, const halyard_command_dispatch_t& from) {
    std::vector<CommandRange> bindings;
    for (uint32_t i = 0; i < from.binding_count; ++i) bindings.push_back(range(from.bindings[i]));
    return bindings;
  }

  Command command(uint32_t kind, const uint64_t* words) {
    using halyard_command_end_group_t = halyard_command_t;
    switch (kind) {
#define FIELD(Kind, name) to.name = field(command_field::Kind(), from.name);
#define OWN_FIELD(Kind, name) to.name = own_field(command_field::Kind(), from);
#define HALYARD_COMMAND(Name, name, KIND, word, record, fields)                 \
  case HALYARD_COMMAND_##KIND: {                                                \
    [[maybe_unused]] const auto from = read<halyard_command_##name##_t>(words); \
    Name##Command to;                                                           \
    fields return to;                                                           \
  }
#include "hal/command/commands.inc"
      default:  // only these are recorded
        return {};
    }
  }
};

CommandList CommandBuffer::list() const { return Lister{*this}.all(); }

namespace {

struct Uses {
  std::vector<CommandUse>& uses;

  void operator()(command_field::Source, std::string_view, const CommandRange& range) const {
    if (range.length != 0) uses.push_back({range, false});
  }
  void operator()(command_field::Target, std::string_view, const CommandRange& range) const {
    if (range.length != 0) uses.push_back({range, true});
  }
  void operator()(command_field::Counts, std::string_view, const std::optional<CommandRange>& range) const {
    if (range) uses.push_back({*range, false});
  }
  void operator()(command_field::Bindings, std::string_view, const std::vector<CommandRange>& ranges) const {
    for (const CommandRange& range : ranges) uses.push_back({range, true});
  }
  // Fields of other kinds have no ranges. The overloads above take the exact type of their kind; otherwise
  // overload resolution would choose this one.
  template <typename Kind, typename Value>
  void operator()(Kind, std::string_view, const Value&) const {}
};

}  // namespace

std::vector<CommandUse> uses_of(const Command& command) {
  std::vector<CommandUse> uses;
  std::visit([&](const auto& known) { for_each_field(known, Uses{uses}); }, command);
  return uses;
}

}  // namespace halyard::hal
