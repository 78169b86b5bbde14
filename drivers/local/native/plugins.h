// Plugins: libraries with functions that native executables import. They are loaded when a device opens, and
// are searched in the order in which they were named. Specified by exec-cpu-library.md, section 8.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "library_abi.h"
#include "native_code.h"

namespace halyard::local {

class Plugins {
 public:
  Plugins() = default;
  Plugins(const Plugins&) = delete;
  Plugins& operator=(const Plugins&) = delete;
  ~Plugins();

  // `text` is "PATH[&key=value]...". The file is a shared library, or an embedded ELF library if `text`
  // begins with "embedded:" or the path ends with ".sos". NOT_FOUND: no such file. FAILED_PRECONDITION: not a
  // plugin, or another version. Also returns the plugin's own failures.
  Result<> load(std::string_view text, const abi::Environment& environment);

  struct Import {
    abi::ImportFunction function = nullptr;
    void* context = nullptr;
  };
  // `name` is the text in the executable: a leading '?' makes the import optional, and the result is null if
  // no plugin has the function. NOT_FOUND: no plugin has it.
  Result<Import> resolve(const char* name) const;

 private:
  struct Loaded {
    std::string path;
    std::unique_ptr<NativeCode> code;
    const abi::Plugin* plugin;
    void* self;
  };
  std::vector<Loaded> plugins_;
};

}  // namespace halyard::local
