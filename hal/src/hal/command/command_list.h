// CommandList: the recorded commands as values without driver handles, for printing, capture and replay.
// Buffers and executables are numbered in the order of first use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hal/device/buffer.h"
#include "hal/device/executable.h"

namespace halyard::hal {

class Channel;  // hal/channel/channel.h

inline constexpr uint32_t kNoBuffer = UINT32_MAX;

// A range of a buffer, relative to the start of its allocation; or, if `buffer` is kNoBuffer, of an entry of
// the binding table, relative to the entry's start.
struct CommandRange {
  uint32_t buffer = kNoBuffer;
  uint32_t slot = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The kinds of command fields.
namespace command_field {
struct Number {
  using Type = uint32_t;
};
struct Text {
  using Type = std::string_view;
};
struct Source {  // a range that the command reads
  using Type = CommandRange;
};
struct Target {  // a range that the command writes
  using Type = CommandRange;
};
struct Data {  // bytes in the command
  using Type = std::span<const uint8_t>;
};
struct ExecutableNumber {  // in the list
  using Type = uint32_t;
};
struct Name {  // name of a function
  using Type = std::string_view;
};
struct Workgroups {
  using Type = std::array<uint32_t, 3>;
};
struct Counts {  // workgroup counts; if indirect, their range
  using Type = std::optional<CommandRange>;
};
struct Constants {
  using Type = std::span<const uint32_t>;
};
struct Bindings {
  using Type = std::vector<CommandRange>;
};
struct ChannelNumber {  // in the list
  using Type = uint32_t;
};
struct Elements {
  using Type = uint64_t;
};
}  // namespace command_field

// BarrierCommand and so on.
#define FIELD(Kind, name) command_field::Kind::Type name = {};
#define HALYARD_COMMAND(Name, name, KIND, word, record, fields) \
  struct Name##Command {                                        \
    fields                                                      \
  };
#include "hal/command/commands.inc"

namespace internal {
template <typename, typename... Commands>
using VariantOf = std::variant<Commands...>;
}
// clang-format off
using Command = internal::VariantOf<void
#define HALYARD_COMMAND(Name, name, KIND, word, record, fields) , Name##Command
#include "hal/command/commands.inc"
>;
// clang-format on

// The name of the command in text output.
#define HALYARD_COMMAND(Name, name, KIND, word, record, fields) \
  constexpr std::string_view word_of(const Name##Command&) { return word; }
#include "hal/command/commands.inc"

// Calls visit(kind, name, value) for each field.
#define FIELD(Kind, name) visit(command_field::Kind(), std::string_view(#name), command.name);
#define HALYARD_COMMAND(Name, name, KIND, word, record, fields)                                        \
  template <typename Visit>                                                                            \
  void for_each_field([[maybe_unused]] const Name##Command& command, [[maybe_unused]] Visit&& visit) { \
    fields                                                                                             \
  }
#include "hal/command/commands.inc"

// Borrows from the command buffer.
struct CommandList {
  std::vector<Command> commands;
  std::vector<Allocation*> buffers;
  std::vector<Executable*> executables;
  std::vector<Channel*> channels;
};

// The ranges of a command, in order, and whether the command may write to them. A dispatch may write to all
// its bindings.
struct CommandUse {
  CommandRange range;
  bool may_write = false;
};
std::vector<CommandUse> uses_of(const Command& command);

// "buffer1[0, +16)", "slot2[8, +4)".
std::string range_text(const CommandRange& range);
// The command as one readable line.
std::string command_text(const Command& command);

}  // namespace halyard::hal
