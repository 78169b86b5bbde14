// .npy files: reads consecutive arrays, versions 1 to 3, and creates the header of an array. Specified by
// run-module-cli.md, section 3, "npy", and section 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/byte_stream.h"
#include "common/failure.h"

namespace halyard::tools {

// Little endian, in C order (the last dimension is contiguous), whatever the order in the file.
struct Array {
  std::string type_name;  // "f32"
  uint32_t element_type = 0;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  std::string type_text() const;  // "2x3xf32"
};

// Whether an array of this type can contain elements of Halyard's type `declared`. Types of the same name
// match. Types without a name in npy match others of the same width: signless integers match si and ui, bf16
// and 8-bit floats match *.
bool npy_holds(std::string_view type_name, std::string_view declared);

// A file with arrays. The position is after the last array read.
class NpyFile {
 public:
  static Result<NpyFile> open(const std::string& path);  // fails like open_file()
  explicit NpyFile(ByteStream stream) : stream_(std::move(stream)) {}
  // Whether the next bytes of a file are an array.
  static bool is_next(ByteStream& stream);

  const std::string& path() const { return stream_.path(); }
  bool at_end() { return stream_.at_end(); }
  // INVALID_ARGUMENT: not npy, or a type without an equivalent. OUT_OF_RANGE: no more arrays, or the file
  // ends within an array.
  Result<Array> next();

 private:
  Result<std::vector<uint8_t>> read(uint64_t size, std::string_view within);

  ByteStream stream_;
};

// Creates the header of an array, version 1; the elements follow it. UNIMPLEMENTED: npy has no such element
// type.
Result<std::vector<uint8_t>> npy_header(const std::string& element_type, const std::vector<int64_t>& shape);

}  // namespace halyard::tools
