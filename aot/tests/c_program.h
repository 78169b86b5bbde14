// Modules of tests as C in a shared library: written, compiled with all warnings as errors, and opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace halyard::aot::test {

// The names of the C compilers that this machine has, of those that the C must suit; g++ 12's cc is always
// there.
std::vector<std::string> compilers();

// The arguments and results of a function, one character of the calling convention for each: numbers.
struct Signature {
  std::string arguments;
  std::string results;
};

class CProgram {
 public:
  // Compiles the module, named "m", whose exports are "f0", "f1" and so on, with these signatures.
  CProgram(const std::vector<uint8_t>& module, const std::string& compiler, const std::string& options,
           const std::vector<Signature>& functions);
  ~CProgram();
  CProgram(const CProgram&) = delete;

  // The compiler's messages; empty: the program is there, and begins with the first call.
  const std::string& error() const { return error_; }
  // Calls a function with the bits of its arguments. Returns its status.
  int call(size_t function, const uint64_t* in, uint64_t* out);

 private:
  void* symbol(const std::string& name) const;

  std::filesystem::path folder_;
  std::string error_;
  void* library_ = nullptr;
  std::vector<uint64_t> state_;
  std::vector<uint64_t> arena_;
};

}  // namespace halyard::aot::test
