// Reads known failures.
#include "known_failures.h"

#include <algorithm>

#include "common/files.h"
#include "selection.h"

namespace halyard::cts {

Result<std::vector<KnownFailure>> read_known_failures(const std::string& path) {
  const tools::FileContents file = TOOL_TRY(tools::FileContents::open(path));
  std::vector<KnownFailure> known;
  std::string_view rest = file.text();
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t size = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, size);
    rest.remove_prefix(std::min(size + 1, rest.size()));
    constexpr std::string_view kBlank = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlank) + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t name = line.find_last_of(kBlank) + 1;
    const std::string_view device = line.substr(0, line.find_first_of(kBlank));
    known.push_back({std::string(name ? device : ""), std::string(line.substr(name))});
    TOOL_TRY(check_names_a_case(fmt::format("{}:{}", path, number), known.back().name));
  }
  return known;
}

bool is_known(const std::vector<KnownFailure>& known, const std::string& device, const char* name) {
  return std::ranges::any_of(known, [&](const KnownFailure& it) {
    return matches_wildcards(it.name, name) && (it.device.empty() || matches_wildcards(it.device, device));
  });
}

}  // namespace halyard::cts
