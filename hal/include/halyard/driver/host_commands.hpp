// Of the kit (halyard/driver.hpp): fills, updates and copies of memory that the processor can access.
#ifndef HALYARD_DRIVER_HOST_COMMANDS_HPP_
#define HALYARD_DRIVER_HOST_COMMANDS_HPP_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "halyard/driver/device.hpp"

namespace halyard::kit {

// The bytes of a range, to read, or to write as well.
inline Result<std::span<uint8_t>> bytes_of(const halyard_range_t& range, const Table& table) {
  const Place place = place_of(range, table);
  return std::span<uint8_t>(HALYARD_KIT_TRY(place.memory->bytes()) + place.offset, range.length);
}
inline Result<std::span<uint8_t>> bytes_to_write(const halyard_range_t& range, const Table& table) {
  const Place place = place_of(range, table);
  return std::span<uint8_t>(HALYARD_KIT_TRY(place.memory->bytes_to_write()) + place.offset, range.length);
}

// Writes the source's bytes to the range, again and again: a pattern, or as many bytes as the range has. The
// bytes may overlap.
inline Result<> write_range(const halyard_range_t& target, const Table& table, const void* source,
                            uint64_t size) {
  const std::span<uint8_t> to = HALYARD_KIT_TRY(bytes_to_write(target, table));
  if (to.empty()) return {};
  std::memmove(to.data(), source, std::min<uint64_t>(size, to.size()));
  for (uint64_t done = size; done < to.size();) {  // doubles each time
    const uint64_t more = std::min<uint64_t>(done, to.size() - done);
    std::memcpy(to.data() + done, to.data(), more);
    done += more;
  }
  return {};
}

// Runs a fill, an update or a copy. Does nothing for a barrier or a debug group, because commands run one
// after the other.
inline Result<> run_transfer(const halyard_command_t& command, const Table& table) {
  switch (command.kind) {
    case HALYARD_COMMAND_FILL: {
      const auto& fill = reinterpret_cast<const halyard_command_fill_t&>(command);
      return write_range(fill.target, table, &fill.pattern, fill.pattern_size);
    }
    case HALYARD_COMMAND_UPDATE: {
      const auto& update = reinterpret_cast<const halyard_command_update_t&>(command);
      return write_range(update.target, table, update.source, update.target.length);
    }
    case HALYARD_COMMAND_COPY: {
      const auto& copy = reinterpret_cast<const halyard_command_copy_t&>(command);
      // First the target: it may be a constant, whose writer gets other bytes, and the source the same
      // memory.
      HALYARD_KIT_TRY(bytes_to_write(copy.target, table));
      const std::span<uint8_t> source = HALYARD_KIT_TRY(bytes_of(copy.source, table));
      return write_range(copy.target, table, source.data(), source.size());
    }
    default:
      return {};
  }
}

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_HOST_COMMANDS_HPP_
