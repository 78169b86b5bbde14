// Files that tests read, those outside of this repository among them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace halyard {

// The folder of the shared fixtures: HALYARD_FIXTURES, or ../shared/fixtures. It need not exist.
inline std::filesystem::path fixtures() {
  const char* const folder = std::getenv("HALYARD_FIXTURES");
  return folder ? folder : HALYARD_SOURCE_DIR "/../shared/fixtures";
}

// "" for a file that does not exist.
inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace halyard
