// The cases, as a table made from cases.inc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/wildcards.h"
#include "session.h"

namespace halyard::cts {

#define HAL_CTS_CASE(group, name, scope, tags, rules, ...) void group##_##name(Session& session);
#include "cases.inc"
#undef HAL_CTS_CASE

enum class Scope {
  host,    // runs first; a driver that it refuses is not tested further
  driver,  // once; the session is not started
  device,  // for each device, in a session that is started
};

struct Case {
  const char* name;  // "memory.sizes"
  Scope scope;
  const char* tags;         // separated by blanks; the group is one of them
  const char* rules;        // the rules it tests, for people: "R70 R71"
  const char* description;  // one line: what it does and the required outcome
  void (*run)(Session& session);

  bool has_tag(std::string_view tag) const;
};

std::span<const Case> all_cases();
std::vector<std::string> all_tags();

using tools::matches;

}  // namespace halyard::cts
