// The cases: a table generated from cases.inc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halyard/wildcards.hpp"
#include "session.h"

namespace halyard::cts {

#define HAL_CTS_CASE(group, name, scope, tags, rules, ...) void group##_##name(Session& session);
#include "cases.inc"
#undef HAL_CTS_CASE

enum class Scope {
  host,    // runs first; if it refuses the driver, no other case runs
  driver,  // runs once; the session is not started
  device,  // runs for each device, in a started session
};

struct Case {
  const char* name;  // "memory.sizes"
  Scope scope;
  const char* tags;         // separated by blanks, including the group
  const char* rules;        // the tested rules, for people: "R70 R71"
  const char* description;  // one line: the tested action and the required outcome
  void (*run)(Session& session);

  bool has_tag(std::string_view tag) const;
};

std::span<const Case> all_cases();
std::vector<std::string> all_tags();
}  // namespace halyard::cts
