// SemaphoreServer: what semaphores need of a connection to a server.
#pragma once

#include <cstdint>

#include "halyard/driver.hpp"
#include "remote/failure.h"

namespace halyard::remote {

namespace kit = halyard::kit;

// Thread-safe.
class SemaphoreServer {
 public:
  virtual ~SemaphoreServer() = default;
  virtual const kit::Services& services() const = 0;
  virtual uint64_t new_number() = 0;
  virtual void flush() = 0;  // sends what may have waited for more
  virtual void create_semaphore(uint64_t number, uint64_t initial) = 0;
  virtual void destroy_semaphore(uint64_t number) = 0;
  virtual void signal_semaphore(uint64_t number, uint64_t value) = 0;
  virtual void fail_semaphore(uint64_t number, const Failure& failure) = 0;
  virtual Failure failure_of(const kit::Status& status) const = 0;
};

}  // namespace halyard::remote
