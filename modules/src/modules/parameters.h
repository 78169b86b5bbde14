// Parameters: named ranges of bytes in files, by scope. Specified by parameters-and-files.md. Immutable once
// filled; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/loop.h"
#include "base/object.h"
#include "base/status.h"
#include "vm/native/native_module.h"

namespace halyard::modules {

struct Parameter {
  uint64_t length = 0;             // bytes
  std::span<const uint8_t> bytes;  // of a file; empty for a splat
  std::vector<uint8_t> pattern;    // splat: repeated to `length`
  Ref<Bytes> keep;                 // the file
};

// How the bytes of files are held.
enum class ParameterMode : uint8_t {
  file,     // in the file, which is mapped and must not change
  preload,  // in memory: the file may change or be deleted afterwards
};

// Progress of reading files into memory, in bytes; a failure ends the reading.
using ParameterProgress = std::function<Result<>(uint64_t done, uint64_t total)>;

// All parameters of one scope.
class ParameterScope final : public ObjectOf<ParameterScope> {
 public:
  static const ObjectType kType;
  // Adds every entry of a file. The first entry of a name wins. NOT_FOUND, PERMISSION_DENIED: the file;
  // UNIMPLEMENTED: another or newer format; INVALID_ARGUMENT, OUT_OF_RANGE: an invalid file, with the place.
  // On failure nothing is added.
  Result<> add_file(const std::string& path, ParameterMode mode = ParameterMode::file);
  // Of a file that is already mapped or read.
  Result<> add(const std::string& path, const Ref<Bytes>& file);
  const Parameter* find(std::string_view key) const;  // null where unknown; valid while the scope is
  std::vector<std::string_view> keys() const;         // sorted

 private:
  std::map<std::string, Parameter, std::less<>> parameters_;
};

struct ParameterFile {
  std::string scope;
  std::string path;
};

using ParameterScopes = std::map<std::string, Ref<ParameterScope>, std::less<>>;
Result<ParameterScopes> load_parameters(std::span<const ParameterFile> files,
                                        ParameterMode mode = ParameterMode::file,
                                        const ParameterProgress& progress = {});

// The native module `io_parameters`: load, gather, scatter. Loaded parameters are charged to `memory` (may be
// null), except those that stay in mapped files. `loop` (may be null) pre-faults the pages of large
// parameters.
Ref<vm::NativeModule> create_io_parameters_module(ParameterScopes scopes, Ref<Budget> memory = {},
                                                  Ref<Loop> loop = {});

}  // namespace halyard::modules
