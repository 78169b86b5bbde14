// Recorded commands as text, one line for each command: the name and the fields, or a more readable form.
#include <fmt/format.h>

#include "hal/command/command_buffer.h"
#include "hal/command/command_list.h"
#include "halyard/channel/text.hpp"

namespace halyard::hal {

namespace {

// Appends a field.
struct FieldText {
  std::string& text;

  void operator()(command_field::Number, std::string_view, uint32_t value) const {
    text += fmt::format(" {}", value);
  }
  void operator()(command_field::Text, std::string_view, std::string_view value) const {
    text += fmt::format(" '{}'", value);
  }
  void operator()(command_field::Source, std::string_view, const CommandRange& range) const {
    text += " " + range_text(range);
  }
  void operator()(command_field::Target, std::string_view, const CommandRange& range) const {
    text += " " + range_text(range);
  }
  void operator()(command_field::ChannelNumber, std::string_view, uint32_t channel) const {
    text += fmt::format(" channel{}", channel);
  }
  void operator()(command_field::Elements, std::string_view, uint64_t count) const {
    text += fmt::format(" x {}", count);
  }
  void operator()(command_field::Data, std::string_view, std::span<const uint8_t>) const {}  // too many
};

struct Text {
  template <typename Command>
  std::string operator()(const Command& command) const {
    std::string text(word_of(command));
    for_each_field(command, FieldText{text});
    return text;
  }
  std::string operator()(const BarrierCommand& command) const {
    return fmt::format("barrier {:#x} -> {:#x}", command.source_stages, command.target_stages);
  }
  std::string operator()(const FillCommand& command) const {
    return fmt::format("fill {} with 0x{:0{}x}", range_text(command.target), command.pattern,
                       2 * command.pattern_size);
  }
  std::string operator()(const CopyCommand& command) const {
    return fmt::format("copy {} to {}", range_text(command.source), range_text(command.target));
  }
  std::string operator()(const DispatchCommand& command) const {
    const auto& [x, y, z] = command.workgroups;
    std::string text = fmt::format(
        "dispatch executable{}.{} '{}' workgroups {}", command.executable, command.function,
        command.function_name,
        command.counts ? "from " + range_text(*command.counts) : fmt::format("{}x{}x{}", x, y, z));
    if (!command.constants.empty())
      text +=
          fmt::format(" constants ({})", fmt::join(command.constants.begin(), command.constants.end(), ", "));
    for (size_t i = 0; i < command.bindings.size(); ++i)
      text += (i == 0 ? " bindings (" : ", ") + range_text(command.bindings[i]);
    return command.bindings.empty() ? text : text + ")";
  }
  std::string operator()(const CollectiveCommand& command) const {
    const std::string_view unknown = "?";
    const uint32_t kind = command.operation & 0xFF;
    const uint32_t reduction = command.operation >> 8 & 0xFF;
    const uint32_t element = command.operation >> 16 & 0xFF;
    std::string text =
        fmt::format("collective channel{} {} {}{} x {}", command.channel,
                    kind < channel::kKindNames.size() ? channel::kKindNames[kind] : unknown,
                    reduction == 0 ? ""
                    : reduction < channel::kReductionNames.size()
                        ? fmt::format("{} ", channel::kReductionNames[reduction])
                        : "? ",
                    element < channel::kElementTypes.size() ? channel::kElementTypes[element].name : unknown,
                    command.element_count);
    if (command.parameter != 0) text += fmt::format(" parameter {:#x}", command.parameter);
    if (command.send.length != 0) text += " send " + range_text(command.send);
    if (command.receive.length != 0) text += " receive " + range_text(command.receive);
    return text;
  }
};

}  // namespace

std::string range_text(const CommandRange& range) {
  const bool is_slot = range.buffer == kNoBuffer;
  return fmt::format("{}{}[{}, +{})", is_slot ? "slot" : "buffer", is_slot ? range.slot : range.buffer,
                     range.offset, range.length);
}

std::string command_text(const Command& command) { return std::visit(Text(), command); }

std::string CommandBuffer::text() const {
  std::string text;
  for (const Command& command : list().commands) text += command_text(command) + "\n";
  return text;
}

}  // namespace halyard::hal
