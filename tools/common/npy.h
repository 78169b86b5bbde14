// .npy files: reads arrays one after another, versions 1 to 3, and makes the header of an array. Specified by
// run-module-cli.md, section 3, "npy", and section 4.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/failure.h"
#include "common/files.h"

namespace halyard::tools {

struct Array {
  uint32_t element_type = 0;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

// A file with arrays. Its position is after the last array that was read.
class NpyFile {
 public:
  static Result<NpyFile> open(const std::string& path);  // fails as open_file() does
  const std::string& path() const { return path_; }
  bool at_end();
  // INVALID_ARGUMENT: not npy, or a type without a counterpart; UNIMPLEMENTED: Fortran order; OUT_OF_RANGE:
  // no more arrays, or the file ends within one.
  Result<Array> next();

 private:
  NpyFile(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  OpenFile file_;
};

// The header of an array, version 1; the elements follow it. UNIMPLEMENTED: npy has no such element type.
Result<std::vector<uint8_t>> npy_header(const std::string& element_type, const std::vector<int64_t>& shape);

}  // namespace halyard::tools
