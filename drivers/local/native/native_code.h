// NativeCode: a library of machine code in this process, whoever loaded it. From here on the bytes are
// trusted: what they do is not watched.
#pragma once

#include <memory>
#include <string>

#include "elf_reader.h"
#include "status.h"

namespace halyard::local {

class NativeCode {
 public:
  NativeCode() = default;
  NativeCode(const NativeCode&) = delete;
  NativeCode& operator=(const NativeCode&) = delete;
  virtual ~NativeCode() = default;

  // The function of that name; null where there is none.
  virtual void* find(const char* name) const = 0;

  template <typename Function>
  Function* find_function(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }
};

// An ELF library that needs nothing of anybody, by our own loader; or a FatELF container with one. Its
// initializers have run. INCOMPATIBLE: for another processor. RESOURCE_EXHAUSTED: no memory for it. Else as
// read_elf().
Result<std::unique_ptr<NativeCode>> load_embedded_library(FileBytes file);
// The same without loading: whether it could be.
Result<> judge_embedded_library(FileBytes file, const char* function);

// A shared library by the system's loader, from bytes (a debug footer may follow them) or from a file.
// FAILED_PRECONDITION: no library, or the loader's reason. INCOMPATIBLE: for another processor.
Result<std::unique_ptr<NativeCode>> load_system_library(FileBytes file);
Result<std::unique_ptr<NativeCode>> load_system_library_file(const std::string& path);
Result<> judge_system_library(FileBytes file);

}  // namespace halyard::local
