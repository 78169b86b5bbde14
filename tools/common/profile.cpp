// Collects slices, then goes through their begins and ends in the order of time.
#include "common/profile.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

namespace halyard::tools {

namespace {

using Kind = ProfileRow::Kind;

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::string_view view_of(const halyard_text_t& text) { return {text.data, text.size}; }

bool is_transfer(const halyard_trace_slice_t& slice) {
  constexpr std::string_view kNames[] = {"fill", "update", "copy", "read", "write"};
  return slice.code == HALYARD_KERNEL_UNKNOWN &&
         std::ranges::find(kNames, view_of(slice.name)) != std::end(kNames);
}

// "module.f+0000001A" of "at module.f+0000001A (f.mlir:3:5)".
std::string_view place_name(std::string_view place) {
  if (place.starts_with("at ")) place.remove_prefix(3);
  return place.substr(0, place.find(' '));
}

void set_if_any(std::string& text, const halyard_text_t& given) {
  if (given.size != 0 && text != view_of(given)) text = view_of(given);
}

constexpr uint32_t kProfilerRow = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kWaitingRow = kProfilerRow - 1;

}  // namespace

uint32_t Profile::row_of(Kind kind, std::string_view name) {
  const auto [place, is_new] =
      numbers_.try_emplace({kind, std::string(name)}, static_cast<uint32_t>(rows_.size()));
  if (is_new) {
    rows_.emplace_back();
    rows_.back().kind = kind;
    rows_.back().name = name;
  }
  return place->second;
}

uint32_t Profile::step_of(const halyard_trace_slice_t& slice, const ProfileRow& row) {
  if (!keeps_steps_ || slice.execution == 0) return kNoStep;
  const auto [found, is_new] =
      step_numbers_.try_emplace({slice.execution, slice.command}, static_cast<uint32_t>(steps_.size()));
  if (is_new) {
    ProfileStep& step = steps_.emplace_back();
    step.execution = slice.execution;
    step.command = slice.command;
    step.kind = row.kind;
    step.name = row.name;
    step.place = place_name(view_of(slice.place));
  }
  return found->second;
}

Result<> Profile::begin(const Trace& trace) {
  {
    const std::lock_guard lock(mutex_);
    slices_.clear();
    rows_.clear();
    numbers_.clear();
    steps_.clear();
    step_numbers_.clear();
    dropped_ = 0;
    begin_ = now();
  }
  return check(trace.observe(*this));
}

void Profile::operator()(const halyard_trace_slice_t& slice) {
  const bool is_device = slice.kind == HALYARD_SLICE_DEVICE;
  const bool is_host = slice.kind == HALYARD_SLICE_MACHINE || slice.kind == HALYARD_SLICE_IMPORT;
  const bool is_wait = slice.kind == HALYARD_SLICE_WAIT;
  // Lanes of a device show submissions, which are no work of their own.
  if (!is_device && !(slice.on_thread != 0 && (is_host || is_wait))) return;
  const std::lock_guard lock(mutex_);
  if (slice.end_ns <= begin_) return;
  uint32_t number = kWaitingRow;
  uint32_t step = kNoStep;
  if (slice.code == HALYARD_KERNEL_PROFILER) {
    number = kProfilerRow;
  } else if (!is_wait) {
    number = row_of(is_host              ? Kind::host
                    : is_transfer(slice) ? Kind::transfer
                                         : Kind::kernel,
                    view_of(slice.name));
    ProfileRow& row = rows_[number];
    const double part = slice.dispatch_workgroups == 0 ? 1
                                                       : static_cast<double>(slice.workgroups) /
                                                             static_cast<double>(slice.dispatch_workgroups);
    row.calls += part;
    if (is_device) {
      step = step_of(slice, row);
      row.thread_ns += static_cast<double>(slice.end_ns - slice.begin_ns);
      if (row.kind == Kind::kernel && slice.dispatch_workgroups != 0) {
        row.least_workgroups = row.least_workgroups == 0
                                   ? slice.dispatch_workgroups
                                   : std::min(row.least_workgroups, slice.dispatch_workgroups);
        row.most_workgroups = std::max(row.most_workgroups, slice.dispatch_workgroups);
      }
      row.knows_operations = row.knows_operations && (slice.known & HALYARD_SLICE_KNOWS_OPERATIONS);
      row.knows_bytes = row.knows_bytes && (slice.known & HALYARD_SLICE_KNOWS_BYTES);
      row.operations += part * static_cast<double>(slice.operations);
      row.bytes_read += part * static_cast<double>(slice.bytes_read);
      row.bytes_written += part * static_cast<double>(slice.bytes_written);
      row.checked_loops += slice.checked_loops;
      if (slice.code < row.calls_by_code.size()) row.calls_by_code[slice.code] += part;
      set_if_any(row.reason, slice.reason);
      set_if_any(row.uncounted, slice.uncounted);
      set_if_any(row.not_shared, slice.not_shared);
      set_if_any(row.source, slice.source);
    }
  }
  if (slice.end_ns == slice.begin_ns) return;
  if (slices_.size() == kMaxSlices) {
    ++dropped_;
    return;
  }
  slices_.push_back({slice.begin_ns, slice.end_ns, number, step, slice.on_thread});
}

// What runs at the present instant of the sweep.
class Profile::Sweep {
 public:
  Sweep(std::vector<ProfileRow>& rows, std::vector<ProfileStep>& steps, ProfileSums& sums)
      : rows_(rows), sums_(sums), of_rows_(rows), of_steps_(steps) {}

  void begin(uint32_t index, const Slice& slice) { change(index, slice, true); }
  void end(uint32_t index, const Slice& slice) { change(index, slice, false); }

  // Time passes. It belongs to the profiler, else to devices, else to waits, else to the innermost function
  // of the host.
  void pass(double time) {
    if (profiling_ != 0) {
      sums_.profiler_ns += time;
      return;
    }
    sums_.total_ns += time;
    of_rows_.pass(time, devices_);
    of_steps_.pass(time, devices_);
    if (devices_ != 0) return;
    if (waits_ != 0) {
      waiting_ns += time;
    } else if (!host_.empty()) {
      rows_[host_.back().row].time_ns += time;
    } else {
      other_ns += time;
    }
  }

  double waiting_ns = 0;
  double other_ns = 0;

 private:
  void change(uint32_t index, const Slice& slice, bool begins) {
    const int by = begins ? 1 : -1;
    if (slice.row == kProfilerRow) {
      profiling_ += by;
    } else if (slice.row == kWaitingRow) {
      waits_ += by;
    } else if (rows_[slice.row].kind == Kind::host) {
      if (begins) {
        host_.push_back({index, slice.row});
      } else {
        std::erase_if(host_, [&](const Running& running) { return running.index == index; });
      }
    } else {
      devices_ += by;
      of_rows_.change(slice.row, by, slice.on_thread != 0);
      if (slice.step != kNoStep) of_steps_.change(slice.step, by, slice.on_thread != 0);
    }
  }

  // Slices that run at the present instant, by row or step.
  template <typename Item>
  class Share {
   public:
    explicit Share(std::vector<Item>& items)
        : items_(items), running_(items.size()), on_threads_(items.size()) {}
    void change(uint32_t item, int by, bool on_thread) {
      running_[item] += by;
      if (on_thread) on_threads_[item] += by;
      items_[item].most_threads =
          std::max(items_[item].most_threads, static_cast<uint64_t>(on_threads_[item]));
      if (by > 0 && running_[item] == 1) active_.push_back(item);
      if (by < 0 && running_[item] == 0) std::erase(active_, item);
    }
    // `all`: the slices of all items.
    void pass(double time, int all) {
      for (const uint32_t item : active_) {
        items_[item].busy_ns += time;
        items_[item].time_ns += time * running_[item] / all;
      }
    }

   private:
    std::vector<Item>& items_;
    std::vector<int> running_;
    std::vector<int> on_threads_;
    std::vector<uint32_t> active_;
  };

  struct Running {
    uint32_t index;
    uint32_t row;
  };
  std::vector<ProfileRow>& rows_;
  ProfileSums& sums_;
  Share<ProfileRow> of_rows_;
  Share<ProfileStep> of_steps_;
  std::vector<Running> host_;  // the innermost last
  int devices_ = 0;
  int waits_ = 0;
  int profiling_ = 0;
};

Result<ProfileSums> Profile::end(const Trace& trace) {
  const uint64_t end = now();
  TOOL_TRY(trace.end_observation());
  const std::lock_guard lock(mutex_);
  struct Change {
    uint64_t time;
    bool begins;
    uint32_t slice;
  };
  std::vector<Change> changes;
  changes.reserve(2 * slices_.size());
  for (uint32_t i = 0; i < slices_.size(); ++i) {
    const uint64_t from = std::max(slices_[i].begin, begin_);
    const uint64_t to = std::min(slices_[i].end, end);
    if (from >= to) continue;
    changes.push_back({from, true, i});
    changes.push_back({to, false, i});
  }
  // At one instant ends come first, then begins, the outer slice before those nested in it.
  std::ranges::sort(changes, [&](const Change& a, const Change& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.begins != b.begins) return b.begins;
    return a.begins && slices_[a.slice].end > slices_[b.slice].end;
  });
  ProfileSums sums;
  Sweep sweep(rows_, steps_, sums);
  uint64_t at = begin_;
  for (const Change& change : changes) {
    if (change.time != at) sweep.pass(static_cast<double>(change.time - at));
    at = change.time;
    if (change.begins) {
      sweep.begin(change.slice, slices_[change.slice]);
    } else {
      sweep.end(change.slice, slices_[change.slice]);
    }
  }
  if (end > at) sweep.pass(static_cast<double>(end - at));
  std::ranges::sort(rows_, [](const ProfileRow& a, const ProfileRow& b) {
    return std::tie(b.time_ns, a.name) < std::tie(a.time_ns, b.name);
  });
  sums.rows = std::move(rows_);
  std::ranges::sort(steps_, {},
                    [](const ProfileStep& step) { return std::pair(step.execution, step.command); });
  // Executions count from 0, in the order of their submission.
  uint64_t before = 0;
  uint64_t executions = 0;
  for (ProfileStep& step : steps_) {
    if (step.execution != before) ++executions;
    before = step.execution;
    step.execution = executions - 1;
  }
  sums.steps = std::move(steps_);
  for (const auto& [kind, name, time] : {std::tuple(Kind::waiting, "waiting", sweep.waiting_ns),
                                         std::tuple(Kind::other, "other", sweep.other_ns)}) {
    ProfileRow& row = sums.rows.emplace_back();
    row.kind = kind;
    row.name = name;
    row.time_ns = time;
  }
  sums.dropped = dropped_;
  return sums;
}

}  // namespace halyard::tools
