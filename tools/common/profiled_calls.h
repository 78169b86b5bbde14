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
  ProfiledCalls(const ProfiledCalls&) = delete;
  ProfiledCalls& operator=(const ProfiledCalls&) = delete;
  // After a failed call, the trace goes on without the profile.
  ~ProfiledCalls();

  // Before the first call and after the last.
  Result<> begin();
  Result<ProfileReport> end(const Flags& flags, std::string function, uint64_t calls);

 private:
  const Program& program_;
  Profile profile_;
  bool is_observing_ = false;
  halyard_compiler_stats_t compiled_before_ = {};
};

// The file of --profile=FILE.html, or empty.
std::string profile_page(const Flags& flags);
// The value of --profile. Precondition: it is given.
ProfileDetail profile_detail(const Flags& flags);

}  // namespace halyard::tools
