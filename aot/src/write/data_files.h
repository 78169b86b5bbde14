// Constants of a program: arrays of its C file, or, if they are large, a file of bytes that a file for the
// assembler includes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aot/translate.h"

namespace halyard::aot {

class DataFiles {
 public:
  // The names of the files without their ends, and the prefix of public names.
  DataFiles(std::string_view name, std::string_view prefix) : name_(name), prefix_(prefix) {}

  // The definition or declaration of an array.
  std::string add(const std::string& symbol, std::span<const uint8_t> bytes);
  // The files with what was large; none if nothing was.
  void finish(std::string_view comment, std::vector<File>& files) const;

 private:
  std::string name_;
  std::string prefix_;
  std::string binary_;
  std::string assembly_;
};

}  // namespace halyard::aot
