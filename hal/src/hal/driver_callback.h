// DriverCallback: marks the time in which a driver's thread runs code of the host. There, the last reference
// to a device must not close it: closing joins the very thread that would do it.
#pragma once

namespace halyard::hal {

class DriverCallback {
 public:
  DriverCallback() { ++depth_; }
  ~DriverCallback() { --depth_; }
  DriverCallback(const DriverCallback&) = delete;
  DriverCallback& operator=(const DriverCallback&) = delete;

  // Whether a driver is calling the host on this thread right now.
  static bool active() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace halyard::hal
