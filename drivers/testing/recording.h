// Ranges, commands and operations in the form that a driver receives, for the tests of drivers and for
// hal-cts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "halyard/driver.h"

namespace halyard::driver_tests {

inline halyard_range_t range(halyard_driver_memory_t memory, uint64_t offset, uint64_t length) {
  return {.memory = memory, .offset = offset, .length = length};
}
inline halyard_range_t slot(uint32_t number, uint64_t offset, uint64_t length) {
  return {.slot = number, .offset = offset, .length = length};
}

// A flat list of commands. The caller owns the memory to which commands point, labels included.
class Recording {
 public:
  // `extra`: bytes after the command that are counted in its size, like the additional fields of a newer
  // host.
  template <typename Command>
  Recording& add(uint32_t kind, Command command, uint32_t extra = 0) {
    static_assert(sizeof command % 8 == 0);
    command.header = {static_cast<uint32_t>(sizeof command) + extra, kind};
    append(&command, sizeof command, extra);
    return *this;
  }
  Recording& barrier(uint32_t extra = 0) {
    return add(HALYARD_COMMAND_BARRIER, halyard_command_barrier_t{{}, 0x1C, 0x0D}, extra);
  }
  Recording& fill(halyard_range_t target, uint32_t pattern, uint32_t pattern_size, uint32_t extra = 0) {
    return add(HALYARD_COMMAND_FILL, halyard_command_fill_t{{}, target, pattern, pattern_size}, extra);
  }
  Recording& update(const void* source, halyard_range_t target, uint32_t extra = 0) {
    return add(HALYARD_COMMAND_UPDATE, halyard_command_update_t{{}, source, target}, extra);
  }
  Recording& copy(halyard_range_t source, halyard_range_t target, uint32_t extra = 0) {
    return add(HALYARD_COMMAND_COPY, halyard_command_copy_t{{}, source, target}, extra);
  }
  Recording& dispatch(const halyard_command_dispatch_t& command, uint32_t extra = 0) {
    return add(HALYARD_COMMAND_DISPATCH, command, extra);
  }
  Recording& begin_group(std::string_view label) {
    const halyard_text_t text = {label.data(), label.size()};
    return add(HALYARD_COMMAND_BEGIN_GROUP, halyard_command_begin_group_t{{}, text});
  }
  Recording& end_group() {
    struct End {
      halyard_command_t header;
    };
    return add(HALYARD_COMMAND_END_GROUP, End{});
  }

  halyard_command_list_args_t args(uint32_t binding_count, bool one_shot = false) const {
    return {.struct_size = sizeof(halyard_command_list_args_t),
            .one_shot = one_shot,
            .affinity = 1,
            .commands = reinterpret_cast<const halyard_command_t*>(words_.data()),
            .commands_size = words_.size() * sizeof words_[0],
            .command_count = count_,
            .binding_count = binding_count};
  }

 private:
  void append(const void* command, size_t size, uint32_t extra) {
    const size_t at = words_.size();
    words_.resize(at + (size + extra) / sizeof words_[0], 0xEEEEEEEEEEEEEEEE);
    std::memcpy(&words_[at], command, size);
    ++count_;
  }

  std::vector<uint64_t> words_;
  uint32_t count_ = 0;
};

inline halyard_operation_t operation(uint32_t kind) {
  halyard_operation_t made = {};
  made.struct_size = sizeof made;
  made.kind = kind;
  return made;
}
inline halyard_operation_t barrier_operation() { return operation(HALYARD_OPERATION_BARRIER); }
inline halyard_operation_t fill_operation(halyard_range_t target, uint32_t pattern, uint32_t pattern_size) {
  halyard_operation_t made = operation(HALYARD_OPERATION_FILL);
  made.fill = {target, pattern, pattern_size};
  return made;
}
inline halyard_operation_t update_operation(const void* source, halyard_range_t target) {
  halyard_operation_t made = operation(HALYARD_OPERATION_UPDATE);
  made.update = {source, target};
  return made;
}
inline halyard_operation_t copy_operation(halyard_range_t source, halyard_range_t target) {
  halyard_operation_t made = operation(HALYARD_OPERATION_COPY);
  made.copy = {source, target};
  return made;
}
inline halyard_operation_t dealloca_operation(halyard_driver_memory_t memory) {
  halyard_operation_t made = operation(HALYARD_OPERATION_DEALLOCA);
  made.dealloca = {memory};
  return made;
}
inline halyard_operation_t file_operation(uint32_t kind, int fd, uint64_t file_offset,
                                          halyard_range_t range) {
  halyard_operation_t made = operation(kind);
  made.read = {fd, 0, file_offset, range};
  return made;
}
inline halyard_operation_t dispatch_operation(const halyard_command_dispatch_t* dispatch) {
  halyard_operation_t made = operation(HALYARD_OPERATION_DISPATCH);
  made.dispatch = {dispatch};
  return made;
}
// Borrows the table.
inline halyard_operation_t execute_operation(halyard_driver_command_list_t list,
                                             const std::vector<halyard_binding_t>& table = {}) {
  halyard_operation_t made = operation(HALYARD_OPERATION_EXECUTE);
  made.execute = {list, table.data(), table.size()};
  return made;
}

}  // namespace halyard::driver_tests
