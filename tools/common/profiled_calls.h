// Profiles calls of a program, and adds the facts that a trace does not have: peaks, compilation.
#pragma once

#include <string>

#include "common/flags.h"
#include "common/profile_report.h"
#include "common/program.h"

namespace halyard::tools {

// The program must have been made with `is_profiled` and must outlive this object.
class ProfiledCalls {
 public:
  // With `keeps_steps` the report has the steps, for one call.
  ProfiledCalls(const Program& program, bool keeps_steps) : program_(program), profile_(keeps_steps) {}

  // Before the first call and after the last.
  Result<> begin();
  Result<ProfileReport> end(const Flags& flags, std::string function, uint64_t calls);

 private:
  const Program& program_;
  Profile profile_;
  halyard_compiler_stats_t compiled_before_ = {};
};

// The file of --profile=FILE.html, or empty.
std::string profile_page(const Flags& flags);
// The value of --profile. Precondition: it is given.
ProfileDetail profile_detail(const Flags& flags);

}  // namespace halyard::tools
