// Files: those that the server may read for clients, the regular files below some folders. A client names a
// file by its path below a folder. Paths with "..", symbolic links on the way and other kinds of files are
// refused, whatever others change at the same time. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "remote/address.h"
#include "server/blob_cache.h"

namespace halyard::device_server {

class Files {
 public:
  // NOT_FOUND, PERMISSION_DENIED: a folder cannot be opened.
  static Result<Files> create(const std::vector<std::string>& folders);

  bool empty() const { return folders_.empty(); }
  // The bytes from `offset` on. NOT_FOUND: no folder has such a file. INVALID_ARGUMENT: the path is none.
  // OUT_OF_RANGE: the file is shorter.
  Result<ImportableBytes> read(std::string_view path, uint64_t offset, uint64_t size) const;

 private:
  std::vector<remote::Descriptor> folders_;
};

}  // namespace halyard::device_server
