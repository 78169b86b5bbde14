// One function for each command, and the table that finds it by kind.
#include "commands.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "batch.h"
#include "dispatch.h"
#include "trace.h"

namespace halyard::local {

namespace {

template <typename T>
const T& as(const halyard_command_t* command) {
  return *reinterpret_cast<const T*>(command);
}

Result<> execute_fill(const halyard_command_t* command, const Execution& execution) {
  const TraceSpan span(*execution.services, "fill");
  const auto& fill_command = as<halyard_command_fill_t>(command);
  return fill(fill_command.target, fill_command.pattern, fill_command.pattern_size, execution);
}
Result<> execute_update(const halyard_command_t* command, const Execution& execution) {
  const TraceSpan span(*execution.services, "update");
  const auto& update_command = as<halyard_command_update_t>(command);
  return update(update_command.source, update_command.target, execution);
}
Result<> execute_copy(const halyard_command_t* command, const Execution& execution) {
  const TraceSpan span(*execution.services, "copy");
  const auto& copy_command = as<halyard_command_copy_t>(command);
  return copy(copy_command.source, copy_command.target, execution);
}
Result<> execute_dispatch(const halyard_command_t* command, const Execution& execution) {
  return dispatch(as<halyard_command_dispatch_t>(command), execution);
}
// Batches end at barriers, and groups are for people.
Result<> execute_nothing(const halyard_command_t*, const Execution&) { return {}; }

// By kind.
using Execute = Result<> (*)(const halyard_command_t* command, const Execution& execution);
constexpr Execute kExecute[] = {
    nullptr,           // there is no kind 0
    execute_nothing,   // HALYARD_COMMAND_BARRIER
    execute_fill,      // HALYARD_COMMAND_FILL
    execute_update,    // HALYARD_COMMAND_UPDATE
    execute_copy,      // HALYARD_COMMAND_COPY
    execute_dispatch,  // HALYARD_COMMAND_DISPATCH
    nullptr,           // HALYARD_COMMAND_COLLECTIVE
    execute_nothing,   // HALYARD_COMMAND_BEGIN_GROUP
    execute_nothing,   // HALYARD_COMMAND_END_GROUP
};

const halyard_command_t* command_at(const uint8_t* bytes) {
  return reinterpret_cast<const halyard_command_t*>(bytes);
}

enum class Direction { read, write };

Result<> transfer_file(const halyard_operation_transfer_file_t& transfer, Direction direction) {
  const char* const verb = direction == Direction::read ? "read" : "write";
  constexpr uint64_t kLargestOffset = std::numeric_limits<off_t>::max();
  if (transfer.file_offset > kLargestOffset || transfer.range.length > kLargestOffset - transfer.file_offset)
    return fail(Code::OUT_OF_RANGE, "cannot {} {} bytes at offset {} of a file: files end at {}", verb,
                transfer.range.length, transfer.file_offset, kLargestOffset);
  std::span<uint8_t> left = HALYARD_TRY(resolve(transfer.range, {}));
  auto offset = static_cast<off_t>(transfer.file_offset);
  while (!left.empty()) {
    const ssize_t count = direction == Direction::read
                              ? pread(transfer.fd, left.data(), left.size(), offset)
                              : pwrite(transfer.fd, left.data(), left.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return fail(Code::UNAVAILABLE, "cannot {} {} bytes at offset {} of file descriptor {}: {}", verb,
                  left.size(), offset, transfer.fd, std::generic_category().message(errno));
    if (count == 0)
      return fail(Code::OUT_OF_RANGE,
                  "cannot {} {} bytes at offset {} of file descriptor {}: the file ends at {}", verb,
                  transfer.range.length, transfer.file_offset, transfer.fd, offset);
    left = left.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return {};
}

}  // namespace

Result<std::span<uint8_t>> resolve(const halyard_range_t& range, const Execution& execution) {
  if (range.memory) return bytes_at(*range.memory, range.offset, range.length);
  const halyard_binding_t& entry = execution.table[range.slot];
  return bytes_at(*entry.memory, entry.offset + range.offset, range.length);
}

Result<std::span<uint8_t>> resolve_to_write(const halyard_range_t& range, const Execution& execution) {
  Memory& memory = memory_of(range, execution);
  if (!memory.is_writable())
    return fail(Code::PERMISSION_DENIED,
                "a command writes {} bytes to constant data of the program, in slot {} of the binding table; "
                "this device was told to refuse that (option validate=1)",
                range.length, range.slot);
  uint8_t* const bytes = HALYARD_TRY(memory.bytes_to_write());
  return std::span<uint8_t>(bytes + offset_of(range, execution), range.length);
}

Result<> execute(const halyard_command_t& command, const Execution& execution) {
  if (stop_code(execution.stop) != Code::OK) [[unlikely]]
    return go_on_unless_stopped(execution.stop);
  return kExecute[command.kind](&command, execution);
}

Result<> CommandList::check(const halyard_command_list_args_t& args) {
  HALYARD_TRY(check_extensions(args.extensions));
  const auto* bytes = reinterpret_cast<const uint8_t*>(args.commands);
  for (uint64_t position = 0; position < args.commands_size;) {
    const halyard_command_t& command = *command_at(bytes + position);
    if (command.kind >= std::size(kExecute) || !kExecute[command.kind])
      return fail(Code::UNIMPLEMENTED, "this device has no commands of kind {}", command.kind);
    position += command.size;
  }
  return {};
}

template <typename Visit>
bool CommandList::visit_batches(Visit&& visit) const {
  const halyard_command_t* batch[kMostInBatch];
  size_t batched = 0;
  for (size_t position = 0; position < commands_.size();) {
    const halyard_command_t* command = command_at(commands_.data() + position);
    position += command->size;
    if (kExecute[command->kind] != execute_nothing) batch[batched++] = command;
    const bool ends_batch = command->kind == HALYARD_COMMAND_BARRIER || position == commands_.size();
    if ((ends_batch || batched == kMostInBatch) && batched != 0 &&
        !visit(std::span<const halyard_command_t* const>(batch, std::exchange(batched, 0))))
      return false;
  }
  return true;
}

// By what its kernels took the last time: one that is recorded anew for each call has no past of its own.
bool CommandList::is_worth_sharing(unsigned threads) const {
  if (threads == 1 || (cost_.is_known() && cost_.value() < kWorthSharing)) return false;
  uint64_t saving = 0;
  return !visit_batches([&](std::span<const halyard_command_t* const> commands) {
    Load load;
    for (const halyard_command_t* command : commands) load.add(*command);
    saving += load.saving(threads);
    return saving < kWorthSharing;
  });
}

Result<> CommandList::execute(const Execution& execution) const {
  if (!execution.workers) {
    for (size_t position = 0; position < commands_.size();) {
      const halyard_command_t* command = command_at(commands_.data() + position);
      HALYARD_TRY(local::execute(*command, execution));
      position += command->size;
    }
    return {};
  }
  const Stopwatch watch(true);
  Execution own = execution;
  own.is_shared = is_worth_sharing(execution.workers->limit());
  const Workers::Company company(*execution.workers, own.is_shared);
  Result<> outcome;
  visit_batches([&](std::span<const halyard_command_t* const> commands) {
    outcome = run_batch(commands, own);
    return outcome.has_value();
  });
  if (outcome) watch.tell(cost_);
  return outcome;
}

Result<> fill(const halyard_range_t& target, uint32_t pattern, uint32_t pattern_size,
              const Execution& execution) {
  const std::span<uint8_t> bytes = HALYARD_TRY(resolve_to_write(target, execution));
  // Eight bytes that hold the pattern once or more.
  uint64_t block = pattern;
  if (pattern_size == 1) block = (block & 0xFF) * 0x01010101;
  if (pattern_size == 2) block = (block & 0xFFFF) * 0x00010001;
  block |= block << 32;
  size_t position = 0;
  for (; bytes.size() - position >= sizeof block; position += sizeof block)
    std::memcpy(&bytes[position], &block, sizeof block);
  if (position < bytes.size()) std::memcpy(&bytes[position], &block, bytes.size() - position);
  return {};
}

Result<> update(const void* source, const halyard_range_t& target, const Execution& execution) {
  const std::span<uint8_t> bytes = HALYARD_TRY(resolve_to_write(target, execution));
  if (!bytes.empty()) std::memcpy(bytes.data(), source, bytes.size());
  return {};
}

Result<> copy(const halyard_range_t& source, const halyard_range_t& target, const Execution& execution) {
  // The target first: a copy of constants that is made for it is what the source may name, too.
  const std::span<uint8_t> to = HALYARD_TRY(resolve_to_write(target, execution));
  const std::span<const uint8_t> from = HALYARD_TRY(resolve(source, execution));
  std::memmove(to.data(), from.data(), from.size());  // slots may overlap
  return {};
}

Result<> read_file(const halyard_operation_transfer_file_t& transfer) {
  return transfer_file(transfer, Direction::read);
}

Result<> write_file(const halyard_operation_transfer_file_t& transfer) {
  return transfer_file(transfer, Direction::write);
}

}  // namespace halyard::local
