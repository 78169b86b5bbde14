// PartialFills: the fills of a command list that need not write all of their bytes, because dispatches after
// them write the others before any command reads them. An example is a padded image: all of it is filled with
// zeros, then a kernel writes all but the border.
//
// Commands refer to memory by slots of a binding table, and memory may be known by several slots, so a table
// is checked each time: if the bytes that are filled have another name, every fill writes all of its bytes.
// After a failure, the bytes that the dispatches have not written are filled, too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "execution.h"
#include "range_set.h"

namespace halyard::local {

class PartialFills {
 public:
  struct Fill {
    const halyard_command_fill_t* command = nullptr;
    // What it has to write, from the first byte of its target. Ranges are whole patterns.
    std::vector<ByteRange> rest;
    uint64_t rest_bytes = 0;
    // What a dispatch writes after it.
    struct Overwrite {
      const halyard_command_t* by = nullptr;
      std::vector<ByteRange> ranges;
    };
    std::vector<Overwrite> overwrites;
  };

  // Null: there are none, or the stop word was set. `commands`: a finished list, which outlives the object.
  // Throws std::bad_alloc.
  static std::unique_ptr<const PartialFills> find(std::span<const uint8_t> commands, const uint32_t* stop);

  // Whether they hold for this table.
  bool hold_for(const BindingTable& table) const;
  // Null: the command is no fill, or writes all bytes.
  const Fill* of(const halyard_command_t& command) const;
  // After a failure of a command from `first` to `last`, and if no later command has begun: writes what fills
  // have left to dispatches from `first` on.
  void complete(const halyard_command_t* first, const halyard_command_t* last,
                const Execution& execution) const;

 private:
  // A name of bytes: a memory, or a slot if it is null.
  struct Place {
    halyard_driver_memory_t memory = nullptr;
    uint32_t slot = 0;
    bool is_filled = false;  // in part
  };
  static constexpr size_t kMaxPlaces = 1024;  // of a list
  static constexpr size_t kMaxFilledPlaces = 8;

  Place& place_of(const halyard_range_t& range);

  std::vector<Fill> fills_;    // by command
  std::vector<Place> places_;  // that the list uses, from those that are filled in part
};

}  // namespace halyard::local
