// A file, pipe or device, read once from its start on, with a look at what comes next. No more is taken from
// a pipe than is read, so that what follows can be read by others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "common/files.h"

namespace halyard::tools {

class ByteStream {
 public:
  // Fails as open_file() does. "-" is standard input.
  static Result<ByteStream> open(const std::string& path);
  ByteStream(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}

  const std::string& path() const { return path_; }
  uint64_t position() const { return position_; }  // bytes that were read

  bool at_end();
  // Whether this comes next. Looks no further than the first byte that differs.
  bool begins_with(std::string_view expected);
  // Reads `size` bytes. Fewer: the rest of the file. A hostile size costs no more memory than the file has
  // bytes. RESOURCE_EXHAUSTED: the size is above kMostOfAStream, and this is no regular file. UNAVAILABLE: a
  // read has failed.
  Result<std::vector<uint8_t>> read(uint64_t size);

 private:
  std::string path_;
  OpenFile file_;
  std::string ahead_;  // looked at, but not read
  uint64_t position_ = 0;
};

}  // namespace halyard::tools
