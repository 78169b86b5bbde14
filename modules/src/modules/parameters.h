// Parameters: named ranges of bytes in files, grouped in scopes. Specified by parameters-and-files.md.
// Immutable after loading; then any thread may read.
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
#include "modules/parameter_archive.h"
#include "vm/module/native_module.h"

namespace halyard::modules {

// Where the bytes of files are kept.
enum class ParameterMode : uint8_t {
  file,     // in the file, which is mapped and must not change
  preload,  // in memory: the file may change or be deleted after loading
};

// Called with the progress of reading files into memory, in bytes. A failure ends the reading.
using ParameterProgress = std::function<Result<>(uint64_t done, uint64_t total)>;

// Called with a sentence without a newline, in which names are as in the file, and with the file. Called on
// the thread of the call that reads, without locks held.
using ParameterWarning = std::function<void(std::string_view text, std::string_view path)>;

// All parameters of one scope.
class ParameterScope final : public ObjectOf<ParameterScope> {
 public:
  static const ObjectType kType;
  // Adds every entry of a mapped or preloaded file. The extension determines the format. If a name repeats,
  // the first entry is used. UNIMPLEMENTED: another or newer format. INVALID_ARGUMENT, OUT_OF_RANGE: an
  // invalid file, with the place, or with the recognised format. On failure nothing is added.
  Result<> add(const std::string& path, const Ref<Bytes>& file);
  Result<> add(const std::string& path, ParameterEntries entries);
  // A parameter with its key and the path of its file; they are valid as long as the scope.
  struct Found {
    std::string_view key;
    const Parameter* parameter = nullptr;  // null: the key is unknown
    std::string_view path;
  };
  Found find(std::string_view key) const;
  std::vector<std::string_view> keys() const;  // sorted

 private:
  struct Entry {
    Parameter parameter;
    uint32_t file;  // index in paths_
  };
  std::map<std::string, Entry, std::less<>> parameters_;
  std::vector<std::string> paths_;
};

struct ParameterFile {
  std::string scope;
  std::string path;
};

using ParameterScopes = std::map<std::string, Ref<ParameterScope>, std::less<>>;
// Maps or reads the files; files of the same scope are merged. An index of shards (shard_index.h) is replaced
// by its files. NOT_FOUND, PERMISSION_DENIED: a file. Otherwise as ParameterScope::add.
Result<ParameterScopes> load_parameters(std::span<const ParameterFile> files,
                                        ParameterMode mode = ParameterMode::file,
                                        const ParameterProgress& progress = {});

// The native module `io_parameters`: load, gather, scatter. Loaded parameters are charged to `memory` (may be
// null), except those that stay in mapped files. `loop` (may be null) pre-faults the pages of large
// parameters. `warn` (may be empty) is called once for each parameter that a program reads in a way that is
// likely to give wrong numbers.
Ref<vm::NativeModule> create_io_parameters_module(ParameterScopes scopes, Ref<Budget> memory = {},
                                                  Ref<Loop> loop = {}, ParameterWarning warn = {});

}  // namespace halyard::modules
