// The devices that models run on, and whether they still work.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "common/program.h"

namespace halyard::tools::serve {

// Devices that were opened together. A device that is lost fails every call from then on; its models are
// loaded again for others. Models keep theirs alive.
class Devices {
 public:
  // Opens the devices of --device; without that flag the default device, if one of the modules needs one. Any
  // thread.
  static Result<std::shared_ptr<Devices>> open(const Flags& flags, const Program& program,
                                               std::vector<Handle<halyard_module_t>> modules);

  // The program's instance and these devices, for ContextOptions.
  const Program& program() const { return program_; }
  const std::vector<Handle<halyard_device_t>>& list() const { return program_.devices; }
  // Null if there is none.
  halyard_device_t first() const { return list().empty() ? nullptr : list().front().get(); }

  // Whether a call has failed as on a lost device, and the device then failed an empty piece of work.
  bool is_lost() const { return is_lost_.load(std::memory_order_relaxed); }
  // Gives every device an empty piece of work. True: one has failed it, which was not known before. Any
  // thread; waits at most a fraction of a second for each.
  bool check_loss();

 private:
  Devices() = default;

  Program program_;
  Handle<halyard_module_t> probe_;  // null if this build cannot assemble it
  std::atomic<bool> is_lost_ = false;
};

}  // namespace halyard::tools::serve
