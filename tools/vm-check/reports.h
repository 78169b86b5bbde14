// Findings for programs: XML in JUnit's form, as GoogleTest writes it, and JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runner.h"

namespace halyard::tools {

std::string to_junit(const std::vector<Suite>& suites, std::span<const Finding> findings, double seconds);

// `interrupted`: not all tests were run.
std::string to_json(const std::vector<Suite>& suites, std::span<const Finding> findings, bool interrupted);
// The list of tests.
std::string to_json(const std::vector<Suite>& suites);

}  // namespace halyard::tools
