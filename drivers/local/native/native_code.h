// NativeCode: a library of machine code that either loader has loaded into this process. The loaded code is
// trusted: nothing checks its behaviour.
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

  // The function with this name; null if there is none.
  virtual void* find(const char* name) const = 0;

  template <typename Function>
  Function* find_function(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }
};

// Loads a self-contained ELF library, also from a FatELF container, with this project's loader and runs its
// initializers. INCOMPATIBLE: for another processor. RESOURCE_EXHAUSTED: out of memory. Otherwise fails like
// read_elf().
Result<std::unique_ptr<NativeCode>> load_embedded_library(FileBytes file);
// Runs the same checks without loading.
Result<> judge_embedded_library(FileBytes file, const char* function);

// Loads a shared library with the system's loader, from bytes (optionally followed by a debug footer) or from
// a file. FAILED_PRECONDITION: not a library, or the loader refuses it; the message contains the reason.
// INCOMPATIBLE: for another processor.
Result<std::unique_ptr<NativeCode>> load_system_library(FileBytes file);
Result<std::unique_ptr<NativeCode>> load_system_library_file(const std::string& path);
Result<> judge_system_library(FileBytes file);

}  // namespace halyard::local
