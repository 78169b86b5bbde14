// CommandList: the recorded commands as values without driver handles, for printing, capture and replay.
// Buffers and executables are numbered in order of occurrence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hal/device/buffer.h"
#include "hal/device/executable.h"

namespace halyard::hal {

inline constexpr uint32_t kNoBuffer = UINT32_MAX;

// A range of a buffer, from the start of its allocation; or, if `buffer` is kNoBuffer, of an entry of the
// binding table, from the entry's start.
struct CommandRange {
  uint32_t buffer = kNoBuffer;
  uint32_t slot = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct BarrierCommand {
  uint32_t source_stages = 0;
  uint32_t target_stages = 0;
};
struct BeginGroupCommand {
  std::string_view label;
};
struct EndGroupCommand {};
struct FillCommand {
  CommandRange target;
  uint32_t pattern = 0;
  uint32_t pattern_size = 0;
};
struct UpdateCommand {
  CommandRange target;
  std::span<const uint8_t> bytes;
};
struct CopyCommand {
  CommandRange source;
  CommandRange target;
};
struct DispatchCommand {
  uint32_t executable = 0;
  uint32_t function = 0;
  std::string_view function_name;
  uint32_t workgroups[3] = {};
  bool is_indirect = false;
  CommandRange counts;  // of an indirect one: the range of the workgroup counts
  std::span<const uint32_t> constants;
  std::vector<CommandRange> bindings;
};
using Command = std::variant<BarrierCommand, BeginGroupCommand, EndGroupCommand, FillCommand, UpdateCommand,
                             CopyCommand, DispatchCommand>;

// Borrows from the command buffer that it came from.
struct CommandList {
  std::vector<Command> commands;
  std::vector<Allocation*> buffers;
  std::vector<Executable*> executables;
};

// The ranges of a command in order, and whether the command may write to them; a dispatch may write to all
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
