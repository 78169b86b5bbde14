// .npy files: reads arrays one after another, versions 1 to 3, and makes the header of an array. Specified by
// run-module-cli.md, section 3, "npy", and section 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/byte_stream.h"
#include "common/failure.h"

namespace halyard::tools {

// Little endian, in C order (the last dimension is contiguous), whatever the file has.
struct Array {
  std::string type_name;  // "f32"
  uint32_t element_type = 0;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  std::string type_text() const;  // "2x3xf32"
};

// Whether an array of this type can hold elements that Halyard calls `declared`: types of the same name; and
// where npy has no other name for them: signless integers as si or ui, bf16 and floats of 8 bits as * of the
// same width.
bool npy_holds(std::string_view type_name, std::string_view declared);

// A file with arrays. Its position is after the last array that was read.
class NpyFile {
 public:
  static Result<NpyFile> open(const std::string& path);  // fails as open_file() does
  explicit NpyFile(ByteStream stream) : stream_(std::move(stream)) {}
  // Whether what comes next in a file is an array.
  static bool is_next(ByteStream& stream);

  const std::string& path() const { return stream_.path(); }
  bool at_end() { return stream_.at_end(); }
  // INVALID_ARGUMENT: not npy, or a type without a counterpart; OUT_OF_RANGE: no more arrays, or the file
  // ends within one.
  Result<Array> next();

 private:
  Result<std::vector<uint8_t>> read(uint64_t size, std::string_view within);

  ByteStream stream_;
};

// The header of an array, version 1; the elements follow it. UNIMPLEMENTED: npy has no such element type.
Result<std::vector<uint8_t>> npy_header(const std::string& element_type, const std::vector<int64_t>& shape);

}  // namespace halyard::tools
