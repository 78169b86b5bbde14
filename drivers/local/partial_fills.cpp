// Finds the dispatches that overwrite a fill; checks the names of memory.
#include "partial_fills.h"

#include <algorithm>
#include <array>
#include <utility>

#include "bytes.h"
#include "executable.h"
#include "kernel_call.h"

namespace halyard::local {

namespace {

constexpr uint64_t kWorthLeaving = 64 << 10;  // bytes
constexpr uint64_t kBytesOfRange = 256;       // each range costs about as much as writing so many bytes
constexpr size_t kMaxFills = 256;             // of a list
constexpr size_t kMaxLooked = 64;             // commands that are looked at after a fill

const halyard_command_t* at(std::span<const uint8_t> commands, size_t position) {
  return reinterpret_cast<const halyard_command_t*>(commands.data() + position);
}

template <typename Visit>
void for_each_range(const halyard_command_t& command, Visit visit) {
  switch (command.kind) {
    case HALYARD_COMMAND_FILL:
      return visit(reinterpret_cast<const halyard_command_fill_t&>(command).target);
    case HALYARD_COMMAND_UPDATE:
      return visit(reinterpret_cast<const halyard_command_update_t&>(command).target);
    case HALYARD_COMMAND_COPY: {
      const auto& copy = reinterpret_cast<const halyard_command_copy_t&>(command);
      visit(copy.source);
      return visit(copy.target);
    }
    case HALYARD_COMMAND_DISPATCH: {
      const auto& dispatch = reinterpret_cast<const halyard_command_dispatch_t&>(command);
      for (uint32_t i = 0; i < dispatch.binding_count; ++i) visit(dispatch.bindings[i]);
      if (dispatch.flags & HALYARD_DISPATCH_INDIRECT) visit(dispatch.indirect);
      return;
    }
    default:
      return;
  }
}

bool has_same_place(const halyard_range_t& a, const halyard_range_t& b) {
  return a.memory == b.memory && (a.memory || a.slot == b.slot);
}

ByteRange bytes_of(const halyard_range_t& range) { return {range.offset, range.offset + range.length}; }

// The bytes of the place of `target` that a command may read, and those that it certainly writes unless it
// fails.
struct Touched {
  std::vector<ByteRange> read;
  std::vector<ByteRange> overwritten;
};

Touched touched_by(const halyard_command_dispatch_t& dispatch, const halyard_range_t& target) {
  Touched touched;
  const auto may_read = [&](const halyard_range_t& range) {
    if (has_same_place(range, target)) touched.read.push_back(bytes_of(range));
  };
  const bool is_indirect = dispatch.flags & HALYARD_DISPATCH_INDIRECT;
  const std::span bindings(dispatch.bindings, dispatch.binding_count);
  const bool is_near = std::ranges::any_of(bindings, [&](const halyard_range_t& range) {
    return has_same_place(range, target) && bytes_of(range).overlaps(bytes_of(target));
  });
  if (!is_indirect && (!is_near || total(workgroups_of(dispatch)) == 0)) return touched;
  const DispatchAccesses* const accesses = is_indirect ? nullptr : dispatch.executable->accesses(dispatch);
  if (!accesses) {
    for (const halyard_range_t& range : bindings) may_read(range);
    if (is_indirect) may_read(dispatch.indirect);
    return touched;
  }
  const auto moved = [&](const DispatchAccesses::Access& access, std::vector<ByteRange>& to) {
    const halyard_range_t& binding = bindings[access.binding];
    if (has_same_place(binding, target))
      to.push_back({binding.offset + access.range.begin, binding.offset + access.range.end});
  };
  for (const DispatchAccesses::Access& access : accesses->reads) moved(access, touched.read);
  for (const DispatchAccesses::Access& access : accesses->overwrites) moved(access, touched.overwritten);
  return touched;
}

Touched touched_by(const halyard_command_t& command, const halyard_range_t& target) {
  Touched touched;
  if (command.kind == HALYARD_COMMAND_DISPATCH)
    return touched_by(reinterpret_cast<const halyard_command_dispatch_t&>(command), target);
  if (command.kind == HALYARD_COMMAND_COPY) {
    const halyard_range_t& source = reinterpret_cast<const halyard_command_copy_t&>(command).source;
    if (has_same_place(source, target)) touched.read.push_back(bytes_of(source));
  }
  return touched;
}

// `after`: the commands behind the fill. Without a command: the fill has to write all bytes, or the stop word
// was set.
PartialFills::Fill look_at(const halyard_command_fill_t& command, std::span<const uint8_t> after,
                           const uint32_t* stop) {
  const uint64_t offset = command.target.offset;
  const auto from_target = [&](std::vector<ByteRange> ranges) {
    for (ByteRange& range : ranges) range = {range.begin - offset, range.end - offset};
    return ranges;
  };
  const RangeSet target(bytes_of(command.target));
  PartialFills::Fill fill = {.command = &command};
  RangeSet used;  // bytes that a command has read or overwritten
  RangeSet overwritten;
  size_t looked = 0;
  for (size_t position = 0; position < after.size() && looked < kMaxLooked; ++looked) {
    if (target.without(used).size() < kWorthLeaving) break;
    if (stop_code(stop) != Code::OK)
      return {};  // each dispatch that was not seen before takes some milliseconds
    const halyard_command_t& next = *at(after, position);
    position += next.size;
    const Touched touched = touched_by(next, command.target);
    used.add(touched.read);
    RangeSet written;
    written.add(touched.overwritten);
    const RangeSet left = target.common(written).without(used).whole(command.pattern_size, offset);
    if (left.size() == 0) continue;
    used.add(left.ranges());
    overwritten.add(left.ranges());
    fill.overwrites.push_back({&next, from_target(left.ranges())});
  }
  const RangeSet rest = target.without(overwritten);
  if (overwritten.size() < kWorthLeaving + kBytesOfRange * rest.ranges().size()) return {};
  fill.rest = from_target(rest.ranges());
  fill.rest_bytes = rest.size();
  return fill;
}

}  // namespace

PartialFills::Place& PartialFills::place_of(const halyard_range_t& range) {
  const Place place = {.memory = range.memory, .slot = range.memory ? 0 : range.slot};
  const auto known = std::ranges::find_if(
      places_, [&](const Place& other) { return other.memory == place.memory && other.slot == place.slot; });
  return known != places_.end() ? *known : places_.emplace_back(place);
}

std::unique_ptr<const PartialFills> PartialFills::find(std::span<const uint8_t> commands,
                                                       const uint32_t* stop) {
  auto found = std::make_unique<PartialFills>();
  size_t filled_places = 0;
  for (size_t position = 0; position < commands.size();) {
    const halyard_command_t& command = *at(commands, position);
    position += command.size;
    for_each_range(command, [&](const halyard_range_t& range) { found->place_of(range); });
    if (found->places_.size() > kMaxPlaces) return nullptr;
  }
  for (size_t position = 0; position < commands.size() && found->fills_.size() < kMaxFills;) {
    const halyard_command_t& command = *at(commands, position);
    position += command.size;
    if (command.kind != HALYARD_COMMAND_FILL) continue;
    const auto& fill = reinterpret_cast<const halyard_command_fill_t&>(command);
    if (fill.target.length < kWorthLeaving) continue;
    Place& place = found->place_of(fill.target);
    if (!place.is_filled && filled_places == kMaxFilledPlaces) continue;
    Fill partial = look_at(fill, commands.subspan(position), stop);
    if (!partial.command) continue;
    filled_places += place.is_filled ? 0 : 1;
    place.is_filled = true;
    found->fills_.push_back(std::move(partial));
  }
  if (found->fills_.empty()) return nullptr;
  std::ranges::partition(found->places_, &Place::is_filled);
  return found;
}

bool PartialFills::hold_for(const BindingTable& table) const {
  std::array<ByteRange, kMaxFilledPlaces> filled;
  size_t filled_count = 0;
  for (const Place& place : places_) {
    const Memory& memory = place.memory ? *place.memory : *table[place.slot].memory;
    const Result<uint8_t*> bytes = memory.bytes();
    // Constants may move when they are written.
    if (!bytes || (place.is_filled && memory.is_constant())) return false;
    const uint64_t begin =
        reinterpret_cast<uintptr_t>(*bytes) + (place.memory ? 0 : table[place.slot].offset);
    const ByteRange range = {begin, begin + (place.memory ? memory.size() : table[place.slot].length)};
    const auto others = std::span(filled).first(filled_count);
    if (std::ranges::any_of(others, [&](const ByteRange& other) { return other.overlaps(range); }))
      return false;
    if (place.is_filled) filled[filled_count++] = range;
  }
  return true;
}

const PartialFills::Fill* PartialFills::of(const halyard_command_t& command) const {
  if (command.kind != HALYARD_COMMAND_FILL) return nullptr;
  const auto found =
      std::ranges::lower_bound(fills_, &command, {}, [](const Fill& fill) { return &fill.command->header; });
  return found != fills_.end() && &found->command->header == &command ? &*found : nullptr;
}

void PartialFills::complete(const halyard_command_t* first, const halyard_command_t* last,
                            const Execution& execution) const {
  for (const Fill& fill : fills_) {
    if (&fill.command->header > last) return;
    for (const Fill::Overwrite& overwrite : fill.overwrites)
      if (overwrite.by >= first)
        (void)fill_parts(*fill.command, overwrite.ranges,
                         execution);  // of memory that cannot be written, nothing
  }
}

}  // namespace halyard::local
