// Selects cases, devices and programs with flags. An invalid selection fails with a list of the existing ones
// and a suggestion.
#pragma once

#include <string>
#include <vector>

#include "cases.h"
#include "driver.h"

namespace halyard::cts {

// The cases that match a filter and have one of the tags, without those that have a skipped tag.
// INVALID_ARGUMENT: a filter matches no case, a tag is unknown, or no case is left.
Result<std::vector<const Case*>> choose_cases(const std::vector<std::string>& filters,
                                              const std::vector<std::string>& tags,
                                              const std::vector<std::string>& skipped_tags);

// INVALID_ARGUMENT, with a suggestion: no case matches. `given_by` names the flag or line.
Result<> check_names_a_case(const std::string& given_by, const std::string& pattern);

// The devices of `listed` that are in `wanted`, with their options; all if `wanted` is empty. NOT_FOUND: a
// device is not listed.
Result<std::vector<Target>> choose_devices(const std::vector<std::string>& wanted,
                                           const std::vector<Target>& listed);

// The programs from FORMAT=FILE texts.
Result<std::vector<Program>> given_programs(const std::vector<std::string>& given);

}  // namespace halyard::cts
