// Executable: kernels that the server has loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "connection.h"
#include "halyard/driver.hpp"

namespace halyard::remote {

class Executable {
 public:
  // NOT_FOUND, INVALID_ARGUMENT, INCOMPATIBLE: from the server's driver. PERMISSION_DENIED: machine code.
  static kit::Result<std::unique_ptr<Executable>> load(const std::shared_ptr<Connection>& server,
                                                       const halyard_executable_args_t& args);
  explicit Executable(std::shared_ptr<Connection> server)
      : server_(std::move(server)), number_(server_->new_number()) {}
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable();

  const kit::Services& services() const { return server_->services(); }
  uint64_t number() const { return number_; }
  uint32_t function_count() const { return static_cast<uint32_t>(functions_.size()); }
  kit::Result<halyard_function_info_t> function_info(uint32_t function) const;

 private:
  const std::shared_ptr<Connection> server_;
  const uint64_t number_;
  std::vector<Request::Function> functions_;
};

}  // namespace halyard::remote
