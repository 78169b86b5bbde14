// The devices on which models run, and whether they work.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "common/program.h"

namespace halyard::tools::serve {

// Devices that were opened together. A lost device fails every later call; its models are then loaded again
// on other devices. Models retain their devices.
class Devices {
 public:
  // Opens the devices of --device; without that flag, opens the default device if a module needs a device.
  // Any thread.
  static Result<std::shared_ptr<Devices>> open(const Flags& flags, const Program& program,
                                               std::vector<Module> modules);

  // The program's instance and these devices, for context_options().
  const Program& program() const { return program_; }
  const std::vector<Device>& list() const { return program_.devices; }

  // Whether a device is lost: a call failed as on a lost device, and then an empty submission failed too.
  bool is_lost() const { return is_lost_.load(std::memory_order_relaxed); }
  // Submits empty work to every device. True: a device failed it, and the loss is new. Any thread; waits for
  // each device for at most a fraction of a second.
  bool check_loss();

 private:
  Devices() = default;

  Program program_;
  Module probe_;  // null if this build cannot assemble the module
  std::atomic<bool> is_lost_ = false;
};

}  // namespace halyard::tools::serve
