// Reads the log of the search for drivers from the C ABI, and formats it.
#include "common/drivers.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/colour.h"
#include "common/printable.h"

namespace halyard::tools {

Result<Instance> make_instance(const Flags& flags, InstanceOptions options) {
  options.driver_libraries = flags[flag::driver];
  return check(Instance::create(options));
}

Result<> check_drivers(const Flags& flags) {
  for (const std::string& path : flags[flag::driver]) {
    std::error_code error;
    if (!std::filesystem::exists(path, error) && !error)
      return fail(HALYARD_NOT_FOUND, "{}={}: no such file; check the path", flag::driver, path);
  }
  return {};
}

Result<DriverSearch> DriverSearch::of(const Instance& instance) {
  DriverSearch search;
  search.search_ = TOOL_TRY(instance.search());
  while (true) {
    const auto entry = search.search_.entry(search.entries_.size());
    if (!entry && entry.error().code() == StatusCode::OUT_OF_RANGE) return search;
    search.entries_.push_back(TOOL_TRY(entry));
  }
}

const halyard_search_entry_t* DriverSearch::serving(std::string_view kind) const {
  for (const halyard_search_entry_t& entry : entries_) {
    const std::vector<std::string> kinds = split_list(is_accepted_driver(entry) ? entry.serves : "");
    if (std::ranges::find(kinds, kind) != kinds.end()) return &entry;
  }
  return nullptr;
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t size = std::min(list.find(','), list.size());
    words.emplace_back(list.substr(0, size));
    list.remove_prefix(std::min(size + 1, list.size()));
  }
  return words;
}

std::string_view outcome_name(const halyard_search_entry_t& entry, bool failed) {
  if (failed) return "refused";
  switch (entry.outcome) {
    case HALYARD_SEARCH_ACCEPTED:
      return entry.is_folder ? "folder" : "taken";
    case HALYARD_SEARCH_REFUSED:
      return "refused";
    case HALYARD_SEARCH_SHADOWED:
      return "shadowed";
    default:
      return "skipped";
  }
}

std::string_view origin_name(uint32_t origin) {
  switch (origin) {
    case HALYARD_ORIGIN_EMBEDDER:
      return "named by --driver";
    case HALYARD_ORIGIN_ENVIRONMENT:
      return "named by $HALYARD_DRIVER_PATH";
    case HALYARD_ORIGIN_USER:
      return "the user's folder";
    case HALYARD_ORIGIN_INSTALLATION:
      return "beside libhalyard or the program";
    default:
      return "of an origin that is unknown to this tool";
  }
}

std::string abi_text(uint32_t low, uint32_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
}

namespace {

Colour colour_of(std::string_view outcome) {
  if (outcome == "taken") return Colour::green;
  if (outcome == "refused") return Colour::red;
  return outcome == "folder" ? Colour::none : Colour::dim;
}

// The text that follows the path.
std::string remark(const halyard_search_entry_t& entry) {
  if (entry.is_folder)
    return entry.other_files
               ? fmt::format("  ({} files in it are not named halyard-driver-NAME.so)", entry.other_files)
               : "";
  if (!*entry.drivers) return "";
  std::string text = fmt::format("  {}  (version {}, ABI {}", entry.drivers, entry.version,
                                 abi_text(entry.abi_min, entry.abi_max));
  if (entry.sanitizer) text += fmt::format(", {}", halyard_sanitizer_name(entry.sanitizer));
  text += ")";
  if (entry.outcome == HALYARD_SEARCH_ACCEPTED && std::string_view(entry.serves) != entry.drivers)
    text += fmt::format("  serves only {}, because an earlier driver serves the rest", entry.serves);
  return text;
}

}  // namespace

std::string explanation(const DriverSearch& search, std::span<const std::optional<Failure>> failures) {
  constexpr std::string_view kIndent = "            ";
  std::string text;
  uint32_t section = UINT32_MAX;
  bool files = false;
  const auto begin_section = [&](uint32_t origin) {
    section = origin;
    text += coloured(Colour::bold, origin_name(origin)) + "\n";
  };
  for (size_t i = 0; i < search.entries().size(); ++i) {
    const halyard_search_entry_t& entry = search.entries()[i];
    const Failure* const failure = i < failures.size() && failures[i] ? &*failures[i] : nullptr;
    if (entry.origin > HALYARD_ORIGIN_ENVIRONMENT &&
        (section == UINT32_MAX || section < HALYARD_ORIGIN_ENVIRONMENT)) {
      begin_section(HALYARD_ORIGIN_ENVIRONMENT);
      text += "  it is not set, or empty\n";
    }
    if (entry.origin != section) begin_section(entry.origin);
    const std::string_view outcome = outcome_name(entry, failure != nullptr);
    text += fmt::format("  {}{}{}{}\n", coloured(colour_of(outcome), outcome),
                        std::string(10 - std::min<size_t>(outcome.size(), 9), ' '),
                        *entry.path ? printable(entry.path) : "''", printable(remark(entry)));
    const std::string reason = failure ? failure->line() : entry.reason;
    if (!reason.empty()) text += fmt::format("{}{}\n", kIndent, printable(reason));
    files = files || !entry.is_folder;
  }
  if (!files) text += "no file named halyard-driver-NAME.so was found\n";
  return text;
}

}  // namespace halyard::tools
