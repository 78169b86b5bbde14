// Readers of parameter files: bytes to named parameters. Specified by parameters-and-files.md, section 3.
// Files are untrusted.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "modules/parameters.h"

namespace halyard::modules {

using ParameterEntries =
    std::vector<std::pair<std::string, Parameter>>;  // in the order of the file; names may repeat

// An .irpa archive with all chained headers. `path` is for messages, which name the byte. INVALID_ARGUMENT:
// not an archive, or damaged; OUT_OF_RANGE: a range out of bounds; UNIMPLEMENTED: a newer version, or an
// entry that refers to another file.
Result<ParameterEntries> read_irpa(const Ref<Bytes>& file, std::string_view path);
// The tensors of a .gguf file, with undecoded blocks. Errors likewise; UNIMPLEMENTED: another version or byte
// order. A tensor of an unknown type has `trouble`. INVALID_ARGUMENT also for two tensors of one name.
Result<ParameterEntries> read_gguf(const Ref<Bytes>& file, std::string_view path);
// The tensors of a .safetensors file. Errors likewise; INVALID_ARGUMENT also for a tensor with another number
// of bytes than its type and shape have.
Result<ParameterEntries> read_safetensors(const Ref<Bytes>& file, std::string_view path);

// INVALID_ARGUMENT names the first name (in order of bytes) that two entries have.
Result<> refuse_repeated_names(const ParameterEntries& entries, std::string_view path);

}  // namespace halyard::modules
