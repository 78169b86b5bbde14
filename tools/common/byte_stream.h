// A file, pipe or device that is read once, from start to end, with lookahead. From a pipe it takes no more
// bytes than are read, so that other processes can read the rest.
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
  // Fails like open_file(). "-" is standard input.
  static Result<ByteStream> open(const std::string& path);
  ByteStream(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}

  const std::string& path() const { return path_; }
  uint64_t position() const { return position_; }  // number of bytes read

  bool at_end();
  // Whether the next bytes are `expected`. Looks no further than the first byte that differs.
  bool begins_with(std::string_view expected);
  // Reads `size` bytes, or fewer at the end of the file. A hostile size takes no more memory than the file
  // has bytes. RESOURCE_EXHAUSTED: the size exceeds kMaxStreamBytes, and the file is not a regular file.
  // UNAVAILABLE: a read has failed.
  Result<std::vector<uint8_t>> read(uint64_t size);

 private:
  std::string path_;
  OpenFile file_;
  std::string ahead_;  // bytes of the lookahead, not read yet
  uint64_t position_ = 0;
};

}  // namespace halyard::tools
