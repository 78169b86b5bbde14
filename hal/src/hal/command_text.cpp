// The recorded list as text: one line for each command, buffers and executables numbered in the order in
// which they occur.
#include <fmt/format.h>

#include <cstring>
#include <map>

#include "hal/command_buffer.h"

namespace halyard::hal {

namespace {

class Names {
 public:
  explicit Names(std::span<const Ref<Object>> resources) {
    for (const Ref<Object>& resource : resources) {
      if (const auto* executable = cast<Executable>(resource.get()))
        executables_.try_emplace(executable->handle(), executables_.size(), executable);
    }
  }

  std::string range(const halyard_range_t& range) {
    const std::string place =
        range.memory ? fmt::format("buffer{}", number(range.memory)) : fmt::format("slot{}", range.slot);
    return fmt::format("{}[{}, +{})", place, range.offset, range.length);
  }

  std::string function(const halyard_command_dispatch_t& command) const {
    const auto& [index, executable] = executables_.at(command.executable);
    return fmt::format("executable{}.{} '{}'", index, command.function,
                       executable->functions()[command.function].name);
  }

 private:
  size_t number(halyard_driver_memory_t memory) {
    return memories_.try_emplace(memory, memories_.size()).first->second;
  }

  struct Entry {
    size_t index;
    const Executable* executable;
    Entry(size_t index, const Executable* executable) : index(index), executable(executable) {}
  };
  std::map<halyard_driver_executable_t, Entry> executables_;
  std::map<halyard_driver_memory_t, size_t> memories_;
};

template <typename T>
T read(const uint64_t* words) {
  T command;
  std::memcpy(&command, words, sizeof(T));
  return command;
}

std::string dispatch_text(const halyard_command_dispatch_t& command, Names& names) {
  std::string text = "dispatch " + names.function(command);
  const uint32_t* counts = command.workgroups;
  text += command.flags & HALYARD_DISPATCH_INDIRECT
              ? " workgroups from " + names.range(command.indirect)
              : fmt::format(" workgroups {}x{}x{}", counts[0], counts[1], counts[2]);
  if (command.constant_count > 0)
    text += fmt::format(" constants ({})",
                        fmt::join(command.constants, command.constants + command.constant_count, ", "));
  for (uint32_t i = 0; i < command.binding_count; ++i)
    text += (i == 0 ? " bindings (" : ", ") + names.range(command.bindings[i]);
  if (command.binding_count > 0) text += ")";
  return text;
}

std::string command_text(uint32_t kind, const uint64_t* words, Names& names) {
  switch (kind) {
    case HALYARD_COMMAND_BARRIER: {
      const auto command = read<halyard_command_barrier_t>(words);
      return fmt::format("barrier {:#x} -> {:#x}", command.source_stages, command.target_stages);
    }
    case HALYARD_COMMAND_FILL: {
      const auto command = read<halyard_command_fill_t>(words);
      return fmt::format("fill {} with 0x{:0{}x}", names.range(command.target), command.pattern,
                         2 * command.pattern_size);
    }
    case HALYARD_COMMAND_UPDATE:
      return "update " + names.range(read<halyard_command_update_t>(words).target);
    case HALYARD_COMMAND_COPY: {
      const auto command = read<halyard_command_copy_t>(words);
      const std::string source = names.range(command.source);
      return fmt::format("copy {} to {}", source, names.range(command.target));
    }
    case HALYARD_COMMAND_DISPATCH:
      return dispatch_text(read<halyard_command_dispatch_t>(words), names);
    case HALYARD_COMMAND_BEGIN_GROUP: {
      const auto command = read<halyard_command_begin_group_t>(words);
      return fmt::format("begin '{}'", std::string_view(command.label.data, command.label.size));
    }
    default:
      return "end";
  }
}

}  // namespace

std::string CommandBuffer::text() const {
  Names names(resources_);
  std::string text;
  for (size_t word = 0; word < words_.size();) {
    const auto header = read<halyard_command_t>(&words_[word]);
    text += command_text(header.kind, &words_[word], names) + "\n";
    word += header.size / sizeof(uint64_t);
  }
  return text;
}

}  // namespace halyard::hal
