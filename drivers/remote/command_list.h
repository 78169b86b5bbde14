// CommandList: a recording, sent to the server once.
#pragma once

#include <cstdint>
#include <memory>

#include "connection.h"
#include "halyard/driver.hpp"

namespace halyard::remote {

class CommandList {
 public:
  // UNIMPLEMENTED: an unknown command. RESOURCE_EXHAUSTED: the recording is larger than a message may be.
  static kit::Result<std::unique_ptr<CommandList>> create(const std::shared_ptr<Connection>& server,
                                                          const halyard_command_list_args_t& args);
  explicit CommandList(std::shared_ptr<Connection> server)
      : server_(std::move(server)), number_(server_->new_number()) {}
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;
  ~CommandList();
  uint64_t number() const { return number_; }
  // Empty unless the host records a trace.
  const CommandAddresses& commands() const { return commands_; }

 private:
  const std::shared_ptr<Connection> server_;
  const uint64_t number_;
  CommandAddresses commands_;
};

// The range with the memory's number at the server.
kit::Result<wire::Range> to_wire(const std::shared_ptr<Connection>& server, const halyard_range_t& range);

}  // namespace halyard::remote
