// Commands in the form that a driver receives. The test owns the memory to which they point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "halyard/driver.h"

namespace halyard::driver_tests {

class Recording {
 public:
  template <typename Command>
  Recording& add(uint32_t kind, Command command) {
    command.header = {sizeof command, kind};
    static_assert(sizeof command % 8 == 0);
    const size_t at = words_.size();
    words_.resize(at + sizeof command / 8);
    std::memcpy(&words_[at], &command, sizeof command);
    ++count_;
    return *this;
  }
  Recording& barrier() { return add(HALYARD_COMMAND_BARRIER, halyard_command_barrier_t{{}, 28, 13}); }
  Recording& fill(halyard_range_t target, uint32_t pattern, uint32_t size) {
    return add(HALYARD_COMMAND_FILL, halyard_command_fill_t{{}, target, pattern, size});
  }
  Recording& update(const void* source, halyard_range_t target) {
    return add(HALYARD_COMMAND_UPDATE, halyard_command_update_t{{}, source, target});
  }
  Recording& copy(halyard_range_t source, halyard_range_t target) {
    return add(HALYARD_COMMAND_COPY, halyard_command_copy_t{{}, source, target});
  }
  Recording& dispatch(const halyard_command_dispatch_t& command) {
    return add(HALYARD_COMMAND_DISPATCH, command);
  }
  // The label must outlive the list.
  Recording& begin_group(std::string_view label) {
    const halyard_text_t text = {label.data(), label.size()};
    return add(HALYARD_COMMAND_BEGIN_GROUP, halyard_command_begin_group_t{{}, text});
  }
  Recording& end_group() { return add(HALYARD_COMMAND_END_GROUP, EndGroup{}); }

  halyard_command_list_args_t args(uint32_t binding_count, bool one_shot = false) const {
    return {.struct_size = sizeof(halyard_command_list_args_t),
            .one_shot = one_shot,
            .affinity = 1,
            .commands = reinterpret_cast<const halyard_command_t*>(words_.data()),
            .commands_size = words_.size() * 8,
            .command_count = count_,
            .binding_count = binding_count};
  }

 private:
  struct EndGroup {
    halyard_command_t header;
  };
  std::vector<uint64_t> words_;
  uint32_t count_ = 0;
};

}  // namespace halyard::driver_tests
