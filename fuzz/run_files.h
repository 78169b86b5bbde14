// Files that a target reads when it runs: drivers, a program. On a machine that has only the programs they
// lie in the folder `lib` beside them; otherwise where the build has put them.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace halyard::fuzz {

inline std::string run_file(const char* built) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return built;
  const auto beside = program.parent_path() / "lib" / std::filesystem::path(built).filename();
  return std::filesystem::exists(beside, error) ? beside.string() : built;
}

}  // namespace halyard::fuzz
