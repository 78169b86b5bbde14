// ModuleFile: a file named on a command line whose bytes are a module or an executable.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "common/failure.h"
#include "common/files.h"

namespace halyard::tools {

class ModuleFile {
 public:
  // Fails like FileContents::open(). A file with the extension ".vmasm" is text, and is assembled.
  static Result<ModuleFile> open(const std::string& path);

  std::span<const std::byte> bytes() const;

 private:
  ModuleFile(FileContents file, Bytes assembled) : file_(std::move(file)), assembled_(std::move(assembled)) {}

  FileContents file_;
  Bytes assembled_;  // empty: the file has no text
};

}  // namespace halyard::tools
