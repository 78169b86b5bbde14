// Files: those that the server may read for clients, the regular files below some folders. A client names a
// file by its path below a folder. Paths with "..", symbolic links on the way and other kinds of files are
// refused, whatever others change at the same time. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "remote/address.h"

namespace halyard::device_server {

class Files {
 public:
  // NOT_FOUND, PERMISSION_DENIED: a folder cannot be opened.
  static Result<Files> create(const std::vector<std::string>& folders);

  bool empty() const { return folders_.empty(); }
  using Sink = std::function<Result<>(std::span<const uint8_t>)>;
  // Gives the bytes from `offset` on to the sink, in pieces. NOT_FOUND: no folder has such a file.
  // INVALID_ARGUMENT: the path is none. OUT_OF_RANGE: the file is shorter. Failures of the sink.
  Result<> read(std::string_view path, uint64_t offset, uint64_t size, const Sink& sink) const;

 private:
  std::vector<remote::Descriptor> folders_;
};

}  // namespace halyard::device_server
