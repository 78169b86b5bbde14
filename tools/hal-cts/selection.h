// What the flags choose: cases, devices, programs. A wrong choice fails with what there is and what may be
// meant.
#pragma once

#include <string>
#include <vector>

#include "cases.h"
#include "driver.h"

namespace halyard::cts {

// Cases that match a filter and have a tag, of those given, without those of a skipped tag. INVALID_ARGUMENT:
// a filter that matches none, an unknown tag, nothing left.
Result<std::vector<const Case*>> choose_cases(const std::vector<std::string>& filters,
                                              const std::vector<std::string>& tags,
                                              const std::vector<std::string>& skipped_tags);

// INVALID_ARGUMENT, with a suggestion, where no case matches. `given_by` names the flag or line.
Result<> check_names_a_case(const std::string& given_by, const std::string& pattern);

// Those of `listed` that are wanted, with their options; all where nothing is. NOT_FOUND: one that is not
// listed.
Result<std::vector<Target>> choose_devices(const std::vector<std::string>& wanted,
                                           const std::vector<Target>& listed);

// Of FORMAT=FILE.
Result<std::vector<Program>> given_programs(const std::vector<std::string>& given);

}  // namespace halyard::cts
