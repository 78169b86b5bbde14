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
#include "vm/module/native_module.h"

namespace halyard::modules {

struct Parameter {
  uint64_t length = 0;             // bytes
  std::span<const uint8_t> bytes;  // of a file; empty for a splat
  std::vector<uint8_t> pattern;    // splat: repeated to `length`
  Ref<Bytes> keep;                 // the file
  std::string type;                // as its file declares it, "F16 [8, 4]"; empty: the file declares none
  std::string trouble;             // not empty: it cannot be loaded, and why
  std::string other;  // not empty: where else there is a parameter of this name, which is not used
};

// How the bytes of files are held.
enum class ParameterMode : uint8_t {
  file,     // in the file, which is mapped and must not change
  preload,  // in memory: the file may change or be deleted afterwards
};

// Progress of reading files into memory, in bytes; a failure ends the reading.
using ParameterProgress = std::function<Result<>(uint64_t done, uint64_t total)>;

// Gets a sentence without a newline, with names as in the file, and the file. On the thread of the call that
// reads, while it holds no lock.
using ParameterWarning = std::function<void(std::string_view text, std::string_view path)>;

// All parameters of one scope.
class ParameterScope final : public ObjectOf<ParameterScope> {
 public:
  static const ObjectType kType;
  // Adds every entry of a file that is mapped or read, whose name says its format; the first of a name
  // counts. UNIMPLEMENTED: another or newer format; INVALID_ARGUMENT, OUT_OF_RANGE: an invalid file, with the
  // place, or what it is instead. On failure nothing is added.
  Result<> add(const std::string& path, const Ref<Bytes>& file);
  Result<> add(const std::string& path, std::vector<std::pair<std::string, Parameter>> entries);
  const Parameter* find(std::string_view key) const;     // null where unknown; valid while the scope is
  std::string_view path_of(std::string_view key) const;  // the file of one that is known
  std::vector<std::string_view> keys() const;            // sorted

 private:
  struct Entry {
    Parameter parameter;
    uint32_t file;  // in paths_
  };
  std::map<std::string, Entry, std::less<>> parameters_;
  std::vector<std::string> paths_;
};

struct ParameterFile {
  std::string scope;
  std::string path;
};

using ParameterScopes = std::map<std::string, Ref<ParameterScope>, std::less<>>;
// Maps or reads the files; those of one scope are merged. An index of shards (shard_index.h) stands for its
// files. NOT_FOUND, PERMISSION_DENIED: a file; else as ParameterScope::add.
Result<ParameterScopes> load_parameters(std::span<const ParameterFile> files,
                                        ParameterMode mode = ParameterMode::file,
                                        const ParameterProgress& progress = {});

// The native module `io_parameters`: load, gather, scatter. Loaded parameters are charged to `memory` (may be
// null), except those that stay in mapped files. `loop` (may be null) pre-faults the pages of large
// parameters. `warn` (may be empty) is told once of each parameter that a program reads in a way that is
// likely to give wrong numbers.
Ref<vm::NativeModule> create_io_parameters_module(ParameterScopes scopes, Ref<Budget> memory = {},
                                                  Ref<Loop> loop = {}, ParameterWarning warn = {});

}  // namespace halyard::modules
