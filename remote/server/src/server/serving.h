// ServingProcess: a server as the functions of its own process see it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "server/server.h"
#include "server/shared.h"

namespace halyard::device_server {

class ServingProcess : public Server {
 public:
  // Without `tries_devices` a device that cannot be opened is the failure of the clients that ask for it.
  static remote::Result<std::unique_ptr<ServingProcess>> create(const ServerOptions& options, Role role,
                                                                bool tries_devices);
  using Server::run;
  // With at most `more` threads in place of those that are held up. `beat` is called a few times a second, on
  // a thread that nothing holds up.
  virtual void run(unsigned threads, size_t more, const std::function<void()>& beat) = 0;
  // Stops when the other end of the line is closed.
  virtual void stop_with(remote::Descriptor line) = 0;
  // Ends connections whose work was stopped so long ago and goes on. True: there are some.
  virtual bool end_stuck(std::chrono::milliseconds patience) = 0;
};

}  // namespace halyard::device_server
