// Readers of parameter files: convert bytes to named parameters. Specified by parameters-and-files.md,
// section 3. Files are untrusted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace halyard::modules {

struct Parameter {
  uint64_t length = 0;             // bytes
  std::span<const uint8_t> bytes;  // in a file; empty for a splat
  std::vector<uint8_t> pattern;    // of a splat: repeated to `length`
  Ref<Bytes> keep;                 // retains the file
  std::string type;                // as declared by the file, "F16 [8, 4]"; empty: not declared
  std::string trouble;             // why it cannot be loaded; empty: it can
  std::string other;               // the place of an unused parameter with the same name; empty: none
};

using ParameterEntries =
    std::vector<std::pair<std::string, Parameter>>;  // in the order of the file; names may repeat

// Reads an .irpa archive with all chained headers. `path` is for messages, which name the byte.
// INVALID_ARGUMENT: not an archive, or damaged. OUT_OF_RANGE: a range out of bounds. UNIMPLEMENTED: a newer
// version, or an entry that refers to another file.
Result<ParameterEntries> read_irpa(const Ref<Bytes>& file, std::string_view path);
// Reads the tensors of a .gguf file, with undecoded blocks. Same errors as read_irpa(). UNIMPLEMENTED:
// another version or byte order. INVALID_ARGUMENT: also two tensors with the same name. A tensor of an
// unknown type has `trouble`.
Result<ParameterEntries> read_gguf(const Ref<Bytes>& file, std::string_view path);
// Reads the tensors of a .safetensors file. Same errors as read_irpa(). INVALID_ARGUMENT: also a tensor whose
// number of bytes does not match its type and shape.
Result<ParameterEntries> read_safetensors(const Ref<Bytes>& file, std::string_view path);

// INVALID_ARGUMENT: two entries have the same name; names the first such name in byte order.
Result<> refuse_repeated_names(const ParameterEntries& entries, std::string_view path);

}  // namespace halyard::modules
