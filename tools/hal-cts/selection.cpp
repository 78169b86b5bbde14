// Matches the texts of flags against cases, devices and programs.
#include "selection.h"

#include <algorithm>

#include "common/device_uri.h"
#include "common/files.h"
#include "cts_flags.h"
#include "text/suggest.h"

namespace halyard::cts {

using tools::fail;

namespace {

// "; did you mean ...?" or "".
std::string hint(const std::string& word, const std::vector<std::string>& known) {
  return did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()));
}

Result<Target> parse_device(const std::string& uri) {
  Target target;
  const tools::DeviceUri parts(uri);
  target.kind = parts.kind;
  target.path = parts.path;
  for (const auto& [key, value] : parts.options) {
    if (!value)
      return fail(HALYARD_INVALID_ARGUMENT, "{}={}: found the option '{}', expected KEY=VALUE", flag::device,
                  uri, key);
    target.options.emplace_back(key, *value);
  }
  return target;
}

Result<> check_tag(const tools::List& flag, const std::string& tag) {
  const std::vector<std::string> tags = all_tags();
  if (std::ranges::find(tags, tag) != tags.end()) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "{}: no tag '{}'{}; 'hal-cts --list' shows them", flag, tag,
              hint(tag, tags));
}

}  // namespace

Result<> check_names_a_case(const std::string& given_by, const std::string& pattern) {
  std::vector<std::string> names;
  for (const Case& it : all_cases()) {
    if (matches_wildcards(pattern, it.name)) return {};
    names.emplace_back(it.name);
  }
  return fail(HALYARD_INVALID_ARGUMENT, "{}: no case '{}'{}; 'hal-cts --list' names them", given_by, pattern,
              hint(pattern, names));
}

Result<std::vector<const Case*>> choose_cases(const std::vector<std::string>& filters,
                                              const std::vector<std::string>& tags,
                                              const std::vector<std::string>& skipped_tags) {
  for (const std::string& filter : filters) TOOL_TRY(check_names_a_case(flag::filter.text(), filter));
  for (const std::string& tag : tags) TOOL_TRY(check_tag(flag::tag, tag));
  for (const std::string& tag : skipped_tags) TOOL_TRY(check_tag(flag::skip_tag, tag));
  std::vector<const Case*> chosen;
  for (const Case& it : all_cases()) {
    const auto named = [&](const std::string& pattern) { return matches_wildcards(pattern, it.name); };
    const auto tagged = [&](const std::string& tag) { return it.has_tag(tag); };
    if (!filters.empty() && std::ranges::none_of(filters, named)) continue;
    if (!tags.empty() && std::ranges::none_of(tags, tagged)) continue;
    if (std::ranges::none_of(skipped_tags, tagged)) chosen.push_back(&it);
  }
  if (chosen.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "{}, {} and {} together leave no case; 'hal-cts {}' with one of them shows what it leaves",
                flag::filter, flag::tag, flag::skip_tag, flag::list);
  return chosen;
}

Result<std::vector<Target>> choose_devices(const std::vector<std::string>& wanted,
                                           const std::vector<Target>& listed) {
  if (wanted.empty()) return listed;
  std::vector<std::string> uris;
  std::string known;
  for (const Target& it : listed) {
    uris.push_back(it.uri());
    known += (known.empty() ? "'" : ", '") + it.uri() + "'";
  }
  std::vector<Target> chosen;
  for (const std::string& uri : wanted) {
    Target target = TOOL_TRY(parse_device(uri));
    const bool is_listed = std::ranges::find(uris, target.uri()) != uris.end();
    const bool is_default =
        target.path.empty() && std::ranges::find(listed, target.kind, &Target::kind) != listed.end();
    // A driver without a list has devices that are named by an address.
    if (!is_listed && !is_default && !listed.empty())
      return fail(HALYARD_NOT_FOUND, "{}={}: the driver has no such device{}; it lists {}", flag::device, uri,
                  hint(uri, uris), known.empty() ? "none" : known);
    chosen.push_back(std::move(target));
  }
  return chosen;
}

Result<std::vector<Program>> given_programs(const std::vector<std::string>& given) {
  std::vector<Program> programs;
  for (const std::string& it : given) {
    const size_t equals = it.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == it.size())
      return tools::wrong_value(flag::executable, it, "FORMAT=FILE");
    const std::string path = it.substr(equals + 1);
    const tools::FileContents file = TOOL_TRY(tools::FileContents::open(path));
    programs.push_back({it.substr(0, equals), {file.bytes().begin(), file.bytes().end()}, path, true});
  }
  return programs;
}

}  // namespace halyard::cts
