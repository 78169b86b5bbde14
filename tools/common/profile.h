// Profile: the slices of a trace, summed by kernel and function. Each instant of the profiled time belongs to
// one row, or is divided among kernels that run at the same time, so that the rows add up to the whole time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

struct ProfileRow {
  enum class Kind : uint8_t {
    kernel,
    transfer,  // fill, update, copy, read, write
    host,      // a function of a module, or a native function that modules call
    waiting,   // nothing runs, and a thread waits
    other,     // the rest
  };
  Kind kind = Kind::other;
  std::string name;
  double calls = 0;               // dispatches that several threads shared count once
  double time_ns = 0;             // of the profiled time
  double busy_ns = 0;             // while at least one thread or queue ran it
  double thread_ns = 0;           // summed over threads
  uint64_t most_threads = 0;      // at the same time
  uint64_t least_workgroups = 0;  // of a dispatch; 0: not known
  uint64_t most_workgroups = 0;
  bool knows_operations = true;  // of all dispatches
  bool knows_bytes = true;
  double operations = 0;
  double bytes_read = 0;
  double bytes_written = 0;
  uint64_t checked_loops = 0;                // of compiled code, with a check of each access
  std::array<double, 4> calls_by_code = {};  // HALYARD_KERNEL_*
  // Of the last dispatch that had the text.
  std::string reason;  // why it was interpreted
  std::string uncounted;
  std::string not_shared;
  std::string source;
};

// One command of a submission, or an operation of a queue, of a device that reports its submissions.
struct ProfileStep {
  uint64_t execution = 0;  // grows with each submission
  uint64_t command = 0;    // of the execution, from 1; 0: an operation of the queue
  ProfileRow::Kind kind = ProfileRow::Kind::kernel;
  std::string name;
  std::string place;   // "module.f+0000001A", of the call that recorded it, or empty
  double time_ns = 0;  // as in ProfileRow
  double busy_ns = 0;
  uint64_t most_threads = 0;
};

// The result, in nanoseconds.
struct ProfileSums {
  double total_ns = 0;             // the profiled time without `profiler_ns`
  double profiler_ns = 0;          // time that the drivers needed only for the profile
  uint64_t dropped = 0;            // slices beyond the limit; their time is in "other"
  std::vector<ProfileRow> rows;    // by time, the longest first; the last ones are "waiting" and "other"
  std::vector<ProfileStep> steps;  // in the order of the program
};

// Thread-safe.
class Profile {
 public:
  static constexpr size_t kMaxSlices = 4'000'000;

  // With `keeps_steps` the sums have each step, for one call.
  explicit Profile(bool keeps_steps = false) : keeps_steps_(keeps_steps) {}
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // The profiled time begins. The profile must live until end() or the end of the trace.
  Result<> begin(const Trace& trace);
  // It ends; returns the sums.
  Result<ProfileSums> end(const Trace& trace);

  void operator()(const halyard_trace_slice_t& slice);  // for halyard_trace_observe

 private:
  struct Slice {
    uint64_t begin;
    uint64_t end;
    uint32_t row;
    uint32_t step;  // kNoStep: none
    uint32_t on_thread;
  };
  static constexpr uint32_t kNoStep = UINT32_MAX;
  class Sweep;
  uint32_t row_of(ProfileRow::Kind kind, std::string_view name);
  uint32_t step_of(const halyard_trace_slice_t& slice, const ProfileRow& row);

  std::mutex mutex_;
  std::vector<Slice> slices_;
  std::vector<ProfileRow> rows_;
  std::map<std::pair<ProfileRow::Kind, std::string>, uint32_t, std::less<>> numbers_;
  const bool keeps_steps_;
  std::vector<ProfileStep> steps_;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> step_numbers_;  // by execution and command
  uint64_t begin_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace halyard::tools
