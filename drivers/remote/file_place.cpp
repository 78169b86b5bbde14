// The kernel lists the mappings of a process in /proc/self/maps:
//   7f1c2a000000-7f1c2c000000 r--p 00001000 fe:00 1234      /srv/models/model.irpa
#include "file_place.h"

#include <charconv>
#include <fstream>
#include <string_view>

namespace halyard::remote {

namespace {

// Takes a hexadecimal number and the character after it.
bool take_number(std::string_view& line, char after, uint64_t& number) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  if (error != std::errc() || end == line.data() + line.size() || *end != after) return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

std::optional<FilePlace> file_place_of(std::span<const uint8_t> bytes, const std::string& folder) {
  const auto first = reinterpret_cast<uint64_t>(bytes.data());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::string_view rest = line;
    uint64_t begin = 0, end = 0, offset = 0;
    if (!take_number(rest, '-', begin) || !take_number(rest, ' ', end) || first < begin || first >= end)
      continue;
    const size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
    if (!take_number(rest, ' ', offset) || bytes.size() > end - first) return std::nullopt;
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const std::string_view path = rest.substr(slash);
    const bool is_below =
        path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/';
    if (!is_below || path.ends_with(" (deleted)")) return std::nullopt;
    return FilePlace{std::string(path.substr(folder.size() + 1)), offset + (first - begin)};
  }
  return std::nullopt;
}

}  // namespace halyard::remote
