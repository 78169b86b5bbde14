// Plugins: libraries that provide the functions which native executables import. Loaded when a device opens,
// in the order in which they were named; asked in that order. Specified by exec-cpu-library.md, section 8.
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

  // `text` is "PATH[&key=value]...": a shared library, or an embedded ELF library where it is "embedded:PATH"
  // or the path ends with ".sos". NOT_FOUND: no such file. FAILED_PRECONDITION: no plugin, or of another
  // version; or what it says itself.
  Result<> load(std::string_view text, const abi::Environment& environment);

  struct Import {
    abi::ImportFunction function = nullptr;
    void* context = nullptr;
  };
  // `name` as the executable writes it: with '?' in front it is optional, and stays null where nobody has it.
  // NOT_FOUND: nobody has it.
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
