// Rows of text and of JSON from the same rows of a profile.
#include "common/profile_report.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include "common/printable.h"
#include "common/quantities.h"
#include "common/table.h"

namespace halyard::tools {

namespace {

using Kind = ProfileRow::Kind;

constexpr size_t kRowsOnTerminal = 20;
constexpr std::string_view kUnknown = "-";

std::string time_text(double ns) {
  if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string count_text(double count) {
  constexpr std::string_view kUnits[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  for (; count >= 1000 && unit + 1 < std::size(kUnits); ++unit) count /= 1000;
  return unit == 0 ? fmt::format("{:.0f}", count) : fmt::format("{:.2f}{}", count, kUnits[unit]);
}

// A number of calls that is not whole if a dispatch failed, or as an average of several calls.
std::string calls_text(double calls) {
  return std::fabs(calls - std::round(calls)) < 0.005 ? fmt::format("{:.0f}", calls)
                                                      : fmt::format("{:.2f}", calls);
}

// Percentages with one decimal place that add up to exactly 100: the largest remainders are rounded up.
std::vector<double> percentages(const std::vector<ProfileRow>& rows, double total) {
  std::vector<double> exact;
  std::vector<double> tenths;
  for (const ProfileRow& row : rows) {
    exact.push_back(total > 0 ? 1000 * row.time_ns / total : 0);
    tenths.push_back(std::floor(exact.back()));
  }
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, std::ranges::greater(), [&](size_t i) { return exact[i] - tenths[i]; });
  const auto missing = static_cast<size_t>(
      total > 0 ? std::lround(1000 - std::accumulate(tenths.begin(), tenths.end(), 0.0)) : 0);
  for (size_t i = 0; i < std::min(missing, order.size()); ++i) tenths[order[i]] += 1;
  for (double& share : tenths) share /= 10;
  return tenths;
}

// One row for several; operations and bytes are known if they are of all.
ProfileRow sum_of(std::string name, Kind kind, std::span<const ProfileRow> rows) {
  ProfileRow sum;
  sum.kind = kind;
  sum.name = std::move(name);
  sum.knows_operations = sum.knows_bytes = kind == Kind::kernel;
  for (const ProfileRow& row : rows) {
    sum.calls += row.calls;
    sum.time_ns += row.time_ns;
    sum.busy_ns += row.busy_ns;
    sum.thread_ns += row.thread_ns;
    sum.most_threads = std::max(sum.most_threads, row.most_threads);
    sum.knows_operations = sum.knows_operations && row.knows_operations;
    sum.knows_bytes = sum.knows_bytes && row.knows_bytes;
    sum.operations += row.operations;
    sum.bytes_read += row.bytes_read;
    sum.bytes_written += row.bytes_written;
  }
  return sum;
}

// The rows in the order of the table: without `detail` all, host functions are one row, and a terminal shows
// only the longest kernels.
std::vector<ProfileRow> shown_rows(const std::vector<ProfileRow>& rows, ProfileDetail detail) {
  if (detail == ProfileDetail::all) return rows;
  std::vector<ProfileRow> devices;
  std::vector<ProfileRow> host;
  std::vector<ProfileRow> last;
  for (const ProfileRow& row : rows)
    (row.kind == Kind::host                                   ? host
     : row.kind == Kind::kernel || row.kind == Kind::transfer ? devices
                                                              : last)
        .push_back(row);
  if (::isatty(STDERR_FILENO) && devices.size() > kRowsOnTerminal + 1) {
    const auto left_out = std::span<const ProfileRow>(devices).subspan(kRowsOnTerminal);
    ProfileRow sum = sum_of(fmt::format("{} more (--profile=all)", left_out.size()), Kind::kernel, left_out);
    sum.most_threads = 0;
    devices.resize(kRowsOnTerminal);
    devices.push_back(std::move(sum));
  }
  if (!host.empty()) devices.push_back(sum_of("host code", Kind::host, host));
  devices.insert(devices.end(), last.begin(), last.end());
  return devices;
}

bool has_rates(const ProfileRow& row) { return row.busy_ns > 0 && row.kind == Kind::kernel; }
double gflops_of(const ProfileRow& row) { return row.operations / row.busy_ns; }
double gbs_of(const ProfileRow& row) { return (row.bytes_read + row.bytes_written) / row.busy_ns; }

// The peaks of as many threads as ran the kernel; null if the device's own processor ran it.
const Peaks* peaks_for(const ProfileRow& row, const MachinePeaks& peaks) {
  if (row.most_threads == 0) return nullptr;
  return row.most_threads == 1 ? &peaks.one_thread : &peaks.all_threads;
}

// The nearer of both peaks, "41% ops" or "12% bytes".
std::string nearest_peak(const ProfileRow& row, const MachinePeaks& peaks) {
  const Peaks* const of = peaks_for(row, peaks);
  if (!of || !has_rates(row)) return std::string(kUnknown);
  const double operations = row.knows_operations ? 100 * gflops_of(row) / of->gflops : 0;
  const double bytes = row.knows_bytes ? 100 * gbs_of(row) / std::max(of->read_gbs, of->copy_gbs) : 0;
  if (operations == 0 && bytes == 0) return std::string(kUnknown);
  return operations >= bytes ? fmt::format("{:.0f}% ops", operations) : fmt::format("{:.0f}% bytes", bytes);
}

const std::string& why_interpreted(const ProfileRow& row, const ProfileReport& report) {
  return report.no_compiler.empty() ? row.reason : report.no_compiler;
}
bool was_interpreted(const ProfileRow& row) { return row.calls_by_code[HALYARD_KERNEL_INTERPRETED] > 0; }

// How the kernel ran: "compiled", "interpreted", "compiled, 3 calls interpreted".
std::string how_text(const ProfileRow& row) {
  std::string text;
  if (row.calls_by_code[HALYARD_KERNEL_COMPILED] > 0) text = "compiled";
  if (row.calls_by_code[HALYARD_KERNEL_NATIVE] > 0) text = "native";
  if (row.checked_loops > 0) text += fmt::format(", {} loops checked", row.checked_loops);
  if (!was_interpreted(row)) return text;
  if (text.empty()) return "interpreted";
  return text +
         fmt::format(", {} calls interpreted", calls_text(row.calls_by_code[HALYARD_KERNEL_INTERPRETED]));
}

constexpr std::string_view kCheckedBecause =
    "loops checked: each access was checked, because accesses may be out of bounds, buffers may overlap, or "
    "a "
    "loop has too many iterations for one check before it";

// Below the table: why kernels were interpreted, and why operations or bytes are not known, with the kernels
// of each reason.
std::string reasons_text(const ProfileReport& report) {
  constexpr size_t kNames = 3;
  std::map<std::string, std::vector<std::string>> kernels;
  for (const ProfileRow& row : report.sums.rows) {
    if (row.kind != Kind::kernel) continue;
    if (was_interpreted(row)) kernels["interpreted: " + why_interpreted(row, report)].push_back(row.name);
    if (row.checked_loops > 0) kernels[std::string(kCheckedBecause)].push_back(row.name);
    if (!row.uncounted.empty()) kernels["not counted: " + row.uncounted].push_back(row.name);
  }
  std::string text;
  for (const auto& [reason, names] : kernels) {
    std::string list;
    for (size_t i = 0; i < std::min(names.size(), kNames); ++i) list += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kNames) list += fmt::format(" and {} more", names.size() - kNames);
    text += printable(fmt::format("{} ({})", reason, list)) + "\n";
  }
  return text;
}

std::string workgroups_text(const ProfileRow& row) {
  if (row.most_workgroups == 0) return std::string(kUnknown);
  if (row.least_workgroups == row.most_workgroups) return std::to_string(row.most_workgroups);
  return fmt::format("{}-{}", row.least_workgroups, row.most_workgroups);
}

Row cells_of(const ProfileRow& row, double share, const ProfileReport& report) {
  const auto calls = static_cast<double>(report.calls);
  const auto known = [](bool is_known, const std::string& text) {
    return is_known ? text : std::string(kUnknown);
  };
  const bool is_kernel = row.kind == Kind::kernel;
  const bool has_calls = row.kind != Kind::waiting && row.kind != Kind::other;
  const double bytes = row.bytes_read + row.bytes_written;
  std::string how = how_text(row);
  if (!row.source.empty()) how += (how.empty() ? "" : ", ") + row.source;
  return {
      row.name,
      known(has_calls, calls_text(row.calls / calls)),
      time_text(row.time_ns / calls),
      fmt::format("{:.1f}%", share),
      known(is_kernel, workgroups_text(row)),
      known(row.most_threads != 0, std::to_string(row.most_threads)),
      known(is_kernel && row.knows_operations, count_text(row.operations / calls)),
      known(is_kernel && row.knows_bytes, format_size(static_cast<uint64_t>(std::llround(bytes / calls)))),
      known(has_rates(row) && row.knows_operations, fmt::format("{:.1f}", gflops_of(row))),
      known(has_rates(row) && row.knows_bytes, fmt::format("{:.1f}", gbs_of(row))),
      nearest_peak(row, report.peaks),
      how};
}

std::string peaks_line(const Peaks& peaks, unsigned threads) {
  return fmt::format("{} {}: {:.0f} GFLOP/s, reads {:.1f} GB/s, copies {:.1f} GB/s\n", threads,
                     threads == 1 ? "thread" : "threads", peaks.gflops, peaks.read_gbs, peaks.copy_gbs);
}

std::string head(const ProfileReport& report) {
  const auto calls = static_cast<double>(report.calls);
  std::string text =
      fmt::format("profile of {}: {}", report.function, time_text(report.sums.total_ns / calls));
  if (report.calls > 1) text += fmt::format(" a call, the average of {} calls", report.calls);
  if (report.untraced_ns) text += fmt::format("; without the trace {}", time_text(*report.untraced_ns));
  text += "\n";
  if (report.sums.profiler_ns > 0)
    text += fmt::format("counting operations took {}, which is not included\n",
                        time_text(report.sums.profiler_ns));
  if (report.compiled > 0)
    text += fmt::format("meanwhile {} function{} compiled, in {}\n", report.compiled,
                        report.compiled == 1 ? " was" : "s were", time_text(report.compile_ns));
  if (report.sums.dropped > 0)
    text += fmt::format("{} slices were beyond the limit of {}; their time is in other rows\n",
                        report.sums.dropped, Profile::kMaxSlices);
  text += "peaks of this machine, " + report.peaks.method() + ":\n";
  text += "  " + peaks_line(report.peaks.one_thread, 1);
  if (report.peaks.threads > 1) text += "  " + peaks_line(report.peaks.all_threads, report.peaks.threads);
  return text;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kernel:
      return "kernel";
    case Kind::transfer:
      return "transfer";
    case Kind::host:
      return "host";
    case Kind::waiting:
      return "waiting";
    default:
      return "other";
  }
}

Json json_of(const Peaks& peaks) {
  return {{"gflops", json_rounded(peaks.gflops, 2)},
          {"read_gbs", json_rounded(peaks.read_gbs, 2)},
          {"copy_gbs", json_rounded(peaks.copy_gbs, 2)}};
}

Json json_of(const ProfileRow& row, const ProfileReport& report) {
  const auto calls = static_cast<double>(report.calls);
  const double total = report.sums.total_ns;
  Json json = {{"kind", kind_name(row.kind)},
               {"name", row.name},
               {"time_ns", json_rounded(row.time_ns / calls, 1)},
               {"share", json_rounded(total > 0 ? row.time_ns / total : 0, 6)}};
  if (row.kind == Kind::waiting || row.kind == Kind::other) return json;
  json["calls"] = json_rounded(row.calls / calls, 3);
  if (row.kind == Kind::host) return json;
  json["busy_ns"] = json_rounded(row.busy_ns / calls, 1);
  json["thread_ns"] = json_rounded(row.thread_ns / calls, 1);
  json["threads"] = row.most_threads == 0 ? Json() : Json(row.most_threads);
  if (row.kind == Kind::transfer) return json;
  json["workgroups"] = row.most_workgroups == 0 ? Json() : Json({row.least_workgroups, row.most_workgroups});
  const bool has_operations = row.knows_operations;
  json["operations"] = has_operations ? json_rounded(row.operations / calls, 1) : Json();
  json["bytes_read"] = row.knows_bytes ? json_rounded(row.bytes_read / calls, 1) : Json();
  json["bytes_written"] = row.knows_bytes ? json_rounded(row.bytes_written / calls, 1) : Json();
  json["gflops"] = has_operations && has_rates(row) ? json_rounded(gflops_of(row), 3) : Json();
  json["gbs"] = row.knows_bytes && has_rates(row) ? json_rounded(gbs_of(row), 3) : Json();
  json["compiled_calls"] = json_rounded(row.calls_by_code[HALYARD_KERNEL_COMPILED] / calls, 3);
  json["interpreted_calls"] = json_rounded(row.calls_by_code[HALYARD_KERNEL_INTERPRETED] / calls, 3);
  json["checked_loops"] = json_rounded(static_cast<double>(row.checked_loops) / calls, 3);
  json["native_calls"] = json_rounded(row.calls_by_code[HALYARD_KERNEL_NATIVE] / calls, 3);
  const auto add_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) json[name] = text;
  };
  if (was_interpreted(row)) add_text("interpreted_because", why_interpreted(row, report));
  add_text("not_counted_because", row.uncounted);
  add_text("not_shared_because", row.not_shared);
  add_text("source", row.source);
  return json;
}

Json json_of(const ProfileStep& step, double total) {
  return {{"kind", kind_name(step.kind)},
          {"name", step.name},
          {"place", step.place},
          {"execution", step.execution},
          {"command", step.command},
          {"time_ns", json_rounded(step.time_ns, 1)},
          {"share", json_rounded(total > 0 ? step.time_ns / total : 0, 6)},
          {"busy_ns", json_rounded(step.busy_ns, 1)},
          {"threads", step.most_threads == 0 ? Json() : Json(step.most_threads)}};
}

}  // namespace

std::string profile_table(const ProfileReport& report, ProfileDetail detail) {
  const std::vector<ProfileRow> rows = shown_rows(report.sums.rows, detail);
  const std::vector<double> shares = percentages(rows, report.sums.total_ns);
  std::vector<Row> cells;
  for (size_t i = 0; i < rows.size(); ++i) cells.push_back(cells_of(rows[i], shares[i], report));
  return head(report) +
         table({"kernel", "calls", "time", "share", "workgroups", "threads", "operations", "bytes", "GFLOP/s",
                "GB/s", "of peak", "how it ran, where in the source"},
               cells) +
         reasons_text(report);
}

Json profile_json(const ProfileReport& report) {
  const auto calls = static_cast<double>(report.calls);
  Json rows = Json::array();
  for (const ProfileRow& row : report.sums.rows) rows.push_back(json_of(row, report));
  Json json = {{"function", report.function},
               {"calls", report.calls},
               {"total_ns", json_rounded(report.sums.total_ns / calls, 1)},
               {"untraced_ns", report.untraced_ns ? json_rounded(*report.untraced_ns, 1) : Json()},
               {"counting_ns", json_rounded(report.sums.profiler_ns, 1)},
               {"compiled", report.compiled},
               {"compile_ns", json_rounded(report.compile_ns, 1)},
               {"dropped_slices", report.sums.dropped}};
  json["peaks"] = {{"threads", report.peaks.threads},
                   {"vector_bits", report.peaks.vector_bits},
                   {"block_bytes", report.peaks.block_bytes},
                   {"cache_bytes", report.peaks.cache_bytes},
                   {"one_thread", json_of(report.peaks.one_thread)},
                   {"all_threads", json_of(report.peaks.all_threads)}};
  json["rows"] = std::move(rows);
  Json steps = Json::array();
  for (const ProfileStep& step : report.sums.steps) steps.push_back(json_of(step, report.sums.total_ns));
  json["steps"] = std::move(steps);
  return json;
}

}  // namespace halyard::tools
