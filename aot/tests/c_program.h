// Modules of tests as C in a shared library: written, compiled with all warnings as errors, and opened.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace halyard::aot::test {

// The names of the C compilers that this machine has, of those that the C must suit; g++ 12's cc is always
// there.
std::vector<std::string> compilers();

class CProgram {
 public:
  // Compiles the module, named "m", with `extra` C at the end of its source file.
  CProgram(const std::vector<uint8_t>& module, const std::string& compiler, const std::string& options,
           const std::string& extra);
  ~CProgram();
  CProgram(const CProgram&) = delete;

  // The compiler's messages; empty: the program is there.
  const std::string& error() const { return error_; }
  // The symbol of a function; null: there is none.
  void* symbol(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::string error_;
  void* library_ = nullptr;
};

}  // namespace halyard::aot::test
