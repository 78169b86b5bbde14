// Names the calling bytecode as the maker of what a native function allocates.
#pragma once

#include <optional>
#include <string>

#include "hal/device/device.h"
#include "hal/trace/memory_log.h"
#include "vm/native/bind.h"

namespace halyard::modules {

// No effect unless the device logs its memory.
class CallerMakes {
 public:
  CallerMakes(const hal::Device& device, const vm::CallContext& call) {
    if (device.memory_log()) [[unlikely]]
      begin(call);
  }

 private:
  void begin(const vm::CallContext& call) {
    place_ = call.place();
    if (!place_.empty()) scope_.emplace(place_);
  }

  std::string place_;
  std::optional<hal::MakerScope> scope_;
};

}  // namespace halyard::modules
