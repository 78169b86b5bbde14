#include "common/module_file.h"

namespace halyard::tools {

Result<ModuleFile> ModuleFile::open(const std::string& path) {
  FileContents file = TOOL_TRY(FileContents::open(path));
  Bytes assembled;
  if (path.ends_with(".vmasm")) assembled = TOOL_TRY(halyard::assemble(file.text(), path));
  return ModuleFile(std::move(file), std::move(assembled));
}

std::span<const std::byte> ModuleFile::bytes() const {
  if (assembled_.empty()) return std::as_bytes(file_.bytes());
  return {assembled_.data(), assembled_.size()};
}

}  // namespace halyard::tools
