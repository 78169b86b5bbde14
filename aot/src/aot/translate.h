// Modules to C: what vm-cc uses of this layer. Includes no other header of Halyard, because tools have their
// own statuses and bytes.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

namespace halyard::aot {

// A parameter whose bytes become part of the program. They must stay where they are until the call returns.
struct ParameterBytes {
  std::string scope;
  std::string key;
  std::span<const uint8_t> bytes;
  std::vector<uint8_t> pattern;  // repeated to `length`, if there are no bytes
  uint64_t length = 0;
};

struct Options {
  std::string name;                        // of the files without ".c", and the prefix of public names
  std::string source;                      // the module's file, for a comment
  bool main = false;                       // also writes a program
  bool planned = true;                     // plans memory where it is known
  bool checks = true;                      // of bounds, in loads and stores
  uint32_t split = 0;                      // the number of files for functions beside NAME.c
  uint32_t devices = 1;                    // that the program sees; all are the same one
  std::vector<ParameterBytes> parameters;  // others are pointers that the caller of the program gives
};

struct File {
  std::string name;  // without a folder
  std::string text;
};

// What was decided, for people.
struct Report {
  std::string text;
  std::string picture;  // SVG; empty if memory is not planned
};

struct Refusal {
  int32_t code;  // HALYARD_*
  std::string text;
};

// Writes a module as freestanding C: a header and a source file, and with `main` a file with a program. The
// same module and options give the same texts. INVALID_ARGUMENT and the verifier's other codes: the module is
// not valid. UNIMPLEMENTED: it needs what C without a runtime cannot have; the text says where and why.
// `report` may be null.
std::expected<std::vector<File>, Refusal> translate(std::span<const uint8_t> module, const Options& options,
                                                    Report* report = nullptr);

}  // namespace halyard::aot
