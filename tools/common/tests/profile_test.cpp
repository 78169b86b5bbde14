// Profiles: slices that a device or a thread could report, and what the sums say about each instant.
#include "common/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common/profile_report.h"

namespace halyard::tools {
namespace {

using Kind = ProfileRow::Kind;

halyard_text_t text_of(const char* text) { return {text, std::string_view(text).size()}; }

uint64_t clock_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// A profile whose slices are placed in nanoseconds after its begin. A unit is long enough to be measured, and
// the whole time is waited for, because a profile ends when it is told.
class Profiles : public testing::Test {
 protected:
  static constexpr uint64_t kUnit = 100'000;
  static constexpr uint64_t kUnits = 100;
  static constexpr uint64_t kDays = 10'000'000'000;

  void begin(Profile& profile) {
    before_ = clock_ns();
    ASSERT_TRUE(profile.begin(trace_));
    at_ = clock_ns();
  }
  halyard_trace_slice_t slice(uint32_t kind, const char* name, uint64_t from, uint64_t to) const {
    halyard_trace_slice_t slice = {};
    slice.struct_size = sizeof slice;
    slice.kind = kind;
    slice.name = text_of(name);
    slice.on_thread = 1;
    slice.begin_ns = at_ + from * kUnit;
    slice.end_ns = at_ + to * kUnit;
    return slice;
  }
  ProfileSums end(Profile& profile) const {
    std::this_thread::sleep_until(
        std::chrono::steady_clock::time_point(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::nanoseconds(at_ + kUnits * kUnit))));
    Result<ProfileSums> sums = profile.end(trace_);
    EXPECT_TRUE(sums);
    return sums ? std::move(*sums) : ProfileSums();
  }
  static const ProfileRow& row(const ProfileSums& sums, std::string_view name) {
    for (const ProfileRow& row : sums.rows)
      if (row.name == name) return row;
    ADD_FAILURE() << "no row " << name;
    static const ProfileRow none;
    return none;
  }

  Trace trace_ = *Trace::create("");
  uint64_t before_ = 0;  // the profiled time begins between both
  uint64_t at_ = 0;
};

TEST_F(Profiles, AnInstantBelongsToDevicesThenWaitsThenTheInnermostFunction) {
  Profile profile;
  begin(profile);
  profile(slice(HALYARD_SLICE_MACHINE, "inner", 20, 60));
  profile(slice(HALYARD_SLICE_DEVICE, "kernel", 30, 40));
  profile(slice(HALYARD_SLICE_WAIT, "fence", 25, 50));
  profile(slice(HALYARD_SLICE_IMPORT, "outer", 10, 70));
  const ProfileSums sums = end(profile);
  EXPECT_DOUBLE_EQ(row(sums, "kernel").time_ns, 10 * kUnit);
  EXPECT_DOUBLE_EQ(row(sums, "waiting").time_ns, 15 * kUnit) << "25 to 30, 40 to 50";
  EXPECT_DOUBLE_EQ(row(sums, "inner").time_ns, 15 * kUnit) << "20 to 25, 50 to 60";
  EXPECT_DOUBLE_EQ(row(sums, "outer").time_ns, 20 * kUnit) << "10 to 20, 60 to 70";
  EXPECT_EQ(row(sums, "inner").kind, Kind::host);
  EXPECT_EQ(row(sums, "outer").kind, Kind::host);
  EXPECT_EQ(row(sums, "kernel").kind, Kind::kernel);
  double all = 0;
  for (const ProfileRow& one : sums.rows) all += one.time_ns;
  EXPECT_NEAR(all, sums.total_ns, 1);
  EXPECT_GE(sums.total_ns, kUnits * kUnit);
}

TEST_F(Profiles, KernelsAtOneTimeShareIt) {
  Profile profile;
  begin(profile);
  halyard_trace_slice_t on_queue = slice(HALYARD_SLICE_DEVICE, "queue", 0, 40);
  on_queue.on_thread = 0;
  profile(on_queue);
  profile(slice(HALYARD_SLICE_DEVICE, "threads", 10, 40));
  profile(slice(HALYARD_SLICE_DEVICE, "threads", 20, 40));
  const ProfileSums sums = end(profile);
  const ProfileRow& queue = row(sums, "queue");
  const ProfileRow& threads = row(sums, "threads");
  EXPECT_NEAR(queue.time_ns, (10 + 10 / 2.0 + 20 / 3.0) * kUnit, 1);
  EXPECT_NEAR(threads.time_ns, (10 / 2.0 + 20 * 2 / 3.0) * kUnit, 1);
  EXPECT_DOUBLE_EQ(threads.busy_ns, 30 * kUnit);
  EXPECT_DOUBLE_EQ(threads.thread_ns, 50 * kUnit);
  EXPECT_EQ(threads.most_threads, 2u);
  EXPECT_EQ(queue.most_threads, 0u) << "the device's own processor";
  EXPECT_EQ(sums.rows[0].name, "queue") << "the longest first";
}

TEST_F(Profiles, TimeOfTheProfilerIsLeftOut) {
  Profile profile;
  begin(profile);
  halyard_trace_slice_t counting = slice(HALYARD_SLICE_DEVICE, "counting", 10, 30);
  counting.code = HALYARD_KERNEL_PROFILER;
  profile(counting);
  profile(slice(HALYARD_SLICE_MACHINE, "f", 0, 40));
  const ProfileSums sums = end(profile);
  EXPECT_DOUBLE_EQ(sums.profiler_ns, 20 * kUnit);
  EXPECT_DOUBLE_EQ(row(sums, "f").time_ns, 20 * kUnit);
  EXPECT_EQ(sums.rows.size(), 3u) << "f, waiting and other";
}

TEST_F(Profiles, OnlyTheProfiledTimeCounts) {
  Profile profile;
  begin(profile);
  halyard_trace_slice_t before = slice(HALYARD_SLICE_MACHINE, "before", 0, 0);
  before.begin_ns = before_ - 50 * kUnit;
  before.end_ns = before_;
  profile(before);
  halyard_trace_slice_t across = slice(HALYARD_SLICE_MACHINE, "across", 0, 10);
  across.begin_ns = before_ - 50 * kUnit;
  profile(across);
  profile(slice(HALYARD_SLICE_MACHINE, "after", kDays, kDays + 1));
  profile(slice(HALYARD_SLICE_MACHINE, "at once", 5, 5));
  profile(slice(HALYARD_SLICE_DEVICE, "endless", 50, kDays));
  const ProfileSums sums = end(profile);
  EXPECT_GE(row(sums, "across").time_ns, 10 * kUnit);
  EXPECT_LE(row(sums, "across").time_ns, 10 * kUnit + static_cast<double>(at_ - before_));
  EXPECT_EQ(row(sums, "after").time_ns, 0);
  EXPECT_EQ(row(sums, "at once").calls, 1);
  EXPECT_EQ(row(sums, "at once").time_ns, 0);
  EXPECT_GE(row(sums, "endless").time_ns, 50 * kUnit);
  EXPECT_LE(row(sums, "endless").time_ns, sums.total_ns);
  for (const ProfileRow& one : sums.rows) EXPECT_NE(one.name, "before");
}

TEST_F(Profiles, LanesAndSlicesOfNoThreadAreNoWork) {
  Profile profile;
  begin(profile);
  halyard_trace_slice_t lane = slice(HALYARD_SLICE_MACHINE, "submission", 0, 10);
  lane.on_thread = 0;
  profile(lane);
  lane.kind = HALYARD_SLICE_WAIT;
  profile(lane);
  profile(slice(HALYARD_SLICE_PHASE, "load modules", 0, 10));
  const ProfileSums sums = end(profile);
  EXPECT_EQ(sums.rows.size(), 2u);
  EXPECT_EQ(row(sums, "waiting").time_ns, 0);
}

TEST_F(Profiles, TransfersAreKnownByTheirNamesUnlessTheyAreDispatches) {
  Profile profile;
  begin(profile);
  for (const char* name : {"fill", "update", "copy", "read", "write", "compare"})
    profile(slice(HALYARD_SLICE_DEVICE, name, 0, 1));
  halyard_trace_slice_t kernel = slice(HALYARD_SLICE_DEVICE, "copy", 0, 1);
  kernel.code = HALYARD_KERNEL_COMPILED;
  profile(kernel);
  const ProfileSums sums = end(profile);
  int copies = 0;
  for (const ProfileRow& one : sums.rows) {
    if (one.name == "waiting" || one.name == "other") continue;
    if (one.name == "copy") {
      ++copies;
      EXPECT_EQ(one.kind == Kind::kernel, one.calls_by_code[HALYARD_KERNEL_COMPILED] == 1);
    } else {
      EXPECT_EQ(one.kind, one.name == "compare" ? Kind::kernel : Kind::transfer) << one.name;
    }
  }
  EXPECT_EQ(copies, 2) << "a kernel called copy is another row";
}

TEST_F(Profiles, ADispatchOfSeveralThreadsIsOneCall) {
  Profile profile;
  begin(profile);
  halyard_trace_slice_t part = slice(HALYARD_SLICE_DEVICE, "k", 0, 10);
  part.code = HALYARD_KERNEL_INTERPRETED;
  part.known = HALYARD_SLICE_KNOWS_OPERATIONS | HALYARD_SLICE_KNOWS_BYTES;
  part.dispatch_workgroups = 8;
  part.operations = 800;
  part.bytes_read = 80;
  part.bytes_written = 40;
  part.reason = text_of("a reason");
  part.not_shared = text_of("few workgroups");
  for (const uint64_t workgroups : {5, 3}) {
    part.workgroups = workgroups;
    profile(part);
  }
  part.dispatch_workgroups = part.workgroups = 2;
  part.known = HALYARD_SLICE_KNOWS_BYTES;
  part.reason = {};
  part.uncounted = text_of("a call");
  part.source = text_of("k.mlir:1:1");
  part.code = 77;  // of a later version
  part.checked_loops = 3;
  profile(part);
  const ProfileSums sums = end(profile);
  const ProfileRow& k = row(sums, "k");
  EXPECT_DOUBLE_EQ(k.calls, 2);
  EXPECT_DOUBLE_EQ(k.calls_by_code[HALYARD_KERNEL_INTERPRETED], 1);
  EXPECT_EQ(k.least_workgroups, 2u);
  EXPECT_EQ(k.most_workgroups, 8u);
  EXPECT_FALSE(k.knows_operations);
  EXPECT_TRUE(k.knows_bytes);
  EXPECT_DOUBLE_EQ(k.bytes_read, 160);
  EXPECT_DOUBLE_EQ(k.bytes_written, 80);
  EXPECT_EQ(k.checked_loops, 3u);
  EXPECT_EQ(k.reason, "a reason") << "of the last dispatch that had one";
  EXPECT_EQ(k.uncounted, "a call");
  EXPECT_EQ(k.not_shared, "few workgroups");
  EXPECT_EQ(k.source, "k.mlir:1:1");
}

TEST_F(Profiles, StepsAreInTheOrderOfTheProgram) {
  for (const bool keeps : {true, false}) {
    Profile profile(keeps);
    begin(profile);
    const auto step = [&](uint64_t execution, uint64_t command, const char* name, const char* place) {
      halyard_trace_slice_t one = slice(HALYARD_SLICE_DEVICE, name, 10, 20);
      one.execution = execution;
      one.command = command;
      one.place = text_of(place);
      profile(one);
    };
    step(9, 2, "b", "at m.f+0000001A (f.mlir:3:5)");
    step(7, 1, "a", "m.g");
    step(9, 1, "a", "");
    step(9, 2, "b", "elsewhere");
    step(0, 0, "a", "no device that reports submissions");
    const ProfileSums sums = end(profile);
    if (!keeps) {
      EXPECT_TRUE(sums.steps.empty());
      continue;
    }
    ASSERT_EQ(sums.steps.size(), 3u);
    EXPECT_EQ(sums.steps[0].execution, 0u);
    EXPECT_EQ(sums.steps[0].place, "m.g");
    EXPECT_EQ(sums.steps[1].execution, 1u);
    EXPECT_EQ(sums.steps[1].command, 1u);
    EXPECT_EQ(sums.steps[1].place, "");
    EXPECT_EQ(sums.steps[2].command, 2u);
    EXPECT_EQ(sums.steps[2].name, "b");
    EXPECT_EQ(sums.steps[2].place, "m.f+0000001A");
    EXPECT_EQ(sums.steps[2].most_threads, 2u);
    EXPECT_NEAR(sums.steps[2].time_ns, 10 * kUnit * 2 / 5.0, 1);
  }
}

TEST_F(Profiles, AProfileCanBeginAgain) {
  Profile profile(true);
  begin(profile);
  halyard_trace_slice_t one = slice(HALYARD_SLICE_DEVICE, "first", 0, 10);
  one.execution = 1;
  profile(one);
  end(profile);
  begin(profile);
  profile(slice(HALYARD_SLICE_DEVICE, "second", 0, 10));
  const ProfileSums sums = end(profile);
  EXPECT_EQ(sums.rows.size(), 3u);
  EXPECT_EQ(sums.rows[0].name, "second");
  EXPECT_TRUE(sums.steps.empty());
}

// ---- The report

MachinePeaks peaks() {
  MachinePeaks peaks;
  peaks.threads = 4;
  peaks.vector_bits = 256;
  peaks.block_bytes = uint64_t{32} << 20;
  peaks.one_thread = {.gflops = 10, .read_gbs = 10, .copy_gbs = 20};
  peaks.all_threads = {.gflops = 40, .read_gbs = 30, .copy_gbs = 20};
  return peaks;
}

ProfileRow kernel(std::string name, double time_ns) {
  ProfileRow row;
  row.kind = Kind::kernel;
  row.name = std::move(name);
  row.calls = 1;
  row.time_ns = row.busy_ns = row.thread_ns = time_ns;
  row.most_threads = 1;
  row.least_workgroups = row.most_workgroups = 4;
  row.operations = 5 * time_ns;
  row.bytes_read = 2 * time_ns;
  row.calls_by_code[HALYARD_KERNEL_COMPILED] = 1;
  return row;
}

ProfileReport report_of(std::vector<ProfileRow> rows) {
  ProfileReport report;
  report.function = "f";
  report.peaks = peaks();
  for (const ProfileRow& row : rows) report.sums.total_ns += row.time_ns;
  report.sums.rows = std::move(rows);
  return report;
}

// The line of the table that begins with a name, with single blanks.
std::string line_of(const std::string& text, const std::string& name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (text.compare(at, name.size() + 1, name + ' ') == 0) {
      std::string line;
      for (const char c : text.substr(at, end - at))
        if (c != ' ' || !line.ends_with(' ')) line += c;
      return line;
    }
    at = end + 1;
  }
  return "";
}
std::string table_line(const ProfileRow& row) {
  const std::string text = profile_table(report_of({row}), ProfileDetail::table);
  return line_of(text, row.name);
}

TEST(ProfileTable, ShowsRatesAndTheNearerPeak) {
  EXPECT_EQ(table_line(kernel("k", 1000)), "k 1 1.0 us 100.0% 4 1 5.00 k 2.0 KiB 5.0 2.0 50% ops compiled");
  ProfileRow row = kernel("k", 1000);
  row.bytes_written = 16'000;
  EXPECT_NE(table_line(row).find("90% bytes"), std::string::npos);
  row.most_threads = 3;  // so many as all threads have
  EXPECT_NE(table_line(row).find("60% bytes"), std::string::npos);
  row.most_threads = 0;
  EXPECT_NE(table_line(row).find("4 - 5.00 k 17.6 KiB 5.0 18.0 - compiled"), std::string::npos)
      << table_line(row);
}

TEST(ProfileTable, ShowsADashForWhatIsNotKnown) {
  ProfileRow row = kernel("k", 1000);
  row.knows_operations = row.knows_bytes = false;
  row.least_workgroups = row.most_workgroups = 0;
  row.calls_by_code = {};
  EXPECT_EQ(table_line(row), "k 1 1.0 us 100.0% - 1 - - - - -");
  row.knows_bytes = true;
  EXPECT_NE(table_line(row).find("- 2.0 KiB - 2.0 10% bytes"), std::string::npos) << table_line(row);
  row.bytes_read = 0;
  EXPECT_NE(table_line(row).find("- 0 bytes - 0.0 -"), std::string::npos) << table_line(row);
  row = kernel("k", 1000);
  row.busy_ns = 0;
  EXPECT_NE(table_line(row).find("5.00 k 2.0 KiB - - - compiled"), std::string::npos) << table_line(row);
  for (const Kind kind : {Kind::waiting, Kind::other}) {
    row = {};
    row.kind = kind;
    row.name = "rest";
    row.time_ns = 5;
    EXPECT_EQ(table_line(row), "rest - 0.0 us 100.0% - - - - - - -");
  }
  row = {};
  row.kind = Kind::transfer;
  row.name = "copy";
  row.calls = 2;
  row.busy_ns = row.time_ns = 2e6;
  row.bytes_read = 1000;
  EXPECT_EQ(table_line(row), "copy 2 2.00 ms 100.0% - - - - - - -");
}

TEST(ProfileTable, ShowsQuantitiesWithUnits) {
  ProfileRow row = kernel("k", 2.5e9);
  row.calls = 1.5;
  row.operations = 999;
  row.least_workgroups = 1;
  EXPECT_NE(table_line(row).find("k 1.50 2.50 s 100.0% 1-4 1 999"), std::string::npos) << table_line(row);
  const std::pair<double, const char*> counts[] = {
      {1e6, "1.00 M"}, {2.5e9, "2.50 G"}, {1e12, "1.00 T"}, {1e15, "1.00 P"}, {1e18, "1000.00 P"}};
  for (const auto& [operations, text] : counts) {
    row.operations = operations;
    EXPECT_NE(table_line(row).find(text), std::string::npos) << table_line(row);
  }
}

TEST(ProfileTable, SharesAddUpTo100) {
  // Three thirds: the remainders are equal, so one row has a tenth more.
  const std::string text =
      profile_table(report_of({kernel("a", 100), kernel("b", 100), kernel("c", 100)}), ProfileDetail::table);
  double sum = 0;
  for (const char* name : {"a", "b", "c"}) {
    const std::string line = line_of(text, name);
    const size_t end = line.find('%');
    sum += std::stod(line.substr(line.rfind(' ', end) + 1));
  }
  EXPECT_NEAR(sum, 100, 1e-9) << text;
  ProfileRow nothing = kernel("k", 0);
  EXPECT_NE(table_line(nothing).find(" 0.0% "), std::string::npos) << table_line(nothing);
  EXPECT_EQ(profile_json(report_of({nothing}))["rows"][0]["share"], 0);
}

TEST(ProfileTable, SaysHowAKernelRan) {
  ProfileRow row = kernel("k", 1000);
  row.calls_by_code = {};
  row.calls_by_code[HALYARD_KERNEL_INTERPRETED] = 2;
  row.reason = "it is new";
  const auto text = [&](const std::string& no_compiler = "") {
    ProfileReport report = report_of({row});
    report.no_compiler = no_compiler;
    return profile_table(report, ProfileDetail::table);
  };
  EXPECT_NE(text().find("% ops  interpreted\n"), std::string::npos) << text();
  EXPECT_NE(text().find("interpreted: it is new (k)\n"), std::string::npos) << text();
  EXPECT_NE(text("no library").find("interpreted: no library (k)\n"), std::string::npos);
  EXPECT_EQ(text("no library").find("it is new"), std::string::npos);
  row.calls_by_code[HALYARD_KERNEL_COMPILED] = 1;
  row.checked_loops = 2;
  row.source = "k.mlir:1:1";
  EXPECT_NE(text().find("compiled, 2 loops checked, 2 calls interpreted, k.mlir:1:1\n"), std::string::npos)
      << text();
  EXPECT_NE(text().find("\nloops checked: each access was checked"), std::string::npos);
  row.calls_by_code = {};
  row.calls_by_code[HALYARD_KERNEL_NATIVE] = 1;
  row.checked_loops = 0;
  row.uncounted = "a call";
  EXPECT_NE(text().find("native, k.mlir:1:1\n"), std::string::npos) << text();
  EXPECT_NE(text().find("not counted: a call (k)\n"), std::string::npos);
  row.calls_by_code = {};
  EXPECT_NE(text().find("% ops  k.mlir:1:1\n"), std::string::npos) << text();
}

TEST(ProfileTable, AReasonNamesThreeKernels) {
  std::vector<ProfileRow> rows;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    rows.push_back(kernel(name, 100));
    rows.back().uncounted = "a call";
  }
  const std::string text = profile_table(report_of(rows), ProfileDetail::table);
  EXPECT_NE(text.find("not counted: a call (a, b, c and 2 more)\n"), std::string::npos) << text;
}

TEST(ProfileTable, FunctionsOfTheHostAreOneRowUnlessAllAreWanted) {
  std::vector<ProfileRow> rows = {kernel("k", 100)};
  for (const char* name : {"f", "g"}) {
    rows.emplace_back();
    rows.back().kind = Kind::host;
    rows.back().name = name;
    rows.back().calls = 2;
    rows.back().time_ns = 50;
  }
  rows.emplace_back();
  rows.back().kind = Kind::waiting;
  rows.back().name = "waiting";
  const ProfileReport report = report_of(rows);
  const std::string text = profile_table(report, ProfileDetail::table);
  EXPECT_EQ(line_of(text, "host code"), "host code 4 0.1 us 50.0% - - - - - - -");
  EXPECT_EQ(line_of(text, "f"), "");
  const std::string all = profile_table(report, ProfileDetail::all);
  EXPECT_EQ(line_of(all, "host code"), "");
  EXPECT_EQ(line_of(all, "g"), "g 2 0.1 us 25.0% - - - - - - -");
}

TEST(ProfileTable, TheHeadSaysWhatWasProfiled) {
  ProfileReport report = report_of({kernel("k", 4000)});
  EXPECT_TRUE(profile_table(report, ProfileDetail::table).starts_with("profile of f: 4.0 us\n"));
  report.calls = 4;
  report.untraced_ns = 900;
  report.sums.profiler_ns = 3000;
  report.sums.dropped = 2;
  report.compiled = 1;
  report.compile_ns = 2e6;
  const std::string text = profile_table(report, ProfileDetail::table);
  EXPECT_TRUE(
      text.starts_with("profile of f: 1.0 us a call, the average of 4 calls; without the trace 0.9 us\n"
                       "counting operations took 3.0 us, which is not included\n"
                       "meanwhile 1 function was compiled, in 2.00 ms\n"
                       "2 slices were beyond the limit of 4000000; their time is in other rows\n"))
      << text;
  EXPECT_NE(text.find("  1 thread: 10 GFLOP/s, reads 10.0 GB/s, copies 20.0 GB/s\n"
                      "  4 threads: 40 GFLOP/s, reads 30.0 GB/s, copies 20.0 GB/s\n"),
            std::string::npos)
      << text;
  report.compiled = 2;
  report.peaks.threads = 1;
  const std::string other = profile_table(report, ProfileDetail::table);
  EXPECT_NE(other.find("meanwhile 2 functions were compiled"), std::string::npos);
  EXPECT_EQ(other.find("4 threads"), std::string::npos);
}

TEST(ProfileTable, TheMethodNamesACacheThatIsLargerThanTheBlock) {
  MachinePeaks measured = peaks();
  EXPECT_EQ(measured.method().find("cache"), std::string::npos);
  measured.cache_bytes = measured.block_bytes;
  EXPECT_EQ(measured.method().find("cache"), std::string::npos);
  measured.cache_bytes = measured.block_bytes + 1;
  EXPECT_NE(measured.method().find("less than the last-level cache of"), std::string::npos);
}

TEST(ProfileJson, HasTheMembersOfEachKind) {
  ProfileRow k = kernel("k", 1000);
  k.calls_by_code[HALYARD_KERNEL_INTERPRETED] = 1;
  k.reason = "it is new";
  k.not_shared = "few workgroups";
  ProfileRow copy;
  copy.kind = Kind::transfer;
  copy.name = "copy";
  ProfileRow host;
  host.kind = Kind::host;
  host.name = "f";
  ProfileRow waiting;
  waiting.kind = Kind::waiting;
  waiting.name = "waiting";
  ProfileReport report = report_of({k, copy, host, waiting});
  report.calls = 2;
  Json rows = profile_json(report)["rows"];
  EXPECT_EQ(rows[0]["kind"], "kernel");
  EXPECT_EQ(rows[0]["threads"], 1);
  EXPECT_EQ(rows[0]["workgroups"], Json({4, 4}));
  EXPECT_EQ(rows[0]["operations"], 2500);
  EXPECT_EQ(rows[0]["gflops"], 5);
  EXPECT_EQ(rows[0]["gbs"], 2);
  EXPECT_EQ(rows[0]["interpreted_because"], "it is new");
  EXPECT_EQ(rows[0]["not_shared_because"], "few workgroups");
  EXPECT_FALSE(rows[0].contains("source"));
  EXPECT_EQ(rows[1]["kind"], "transfer");
  EXPECT_TRUE(rows[1]["threads"].is_null());
  EXPECT_FALSE(rows[1].contains("operations"));
  EXPECT_EQ(rows[2]["kind"], "host");
  EXPECT_FALSE(rows[2].contains("busy_ns"));
  EXPECT_EQ(rows[3]["kind"], "waiting");
  EXPECT_FALSE(rows[3].contains("calls"));

  k.knows_operations = k.knows_bytes = false;
  k.most_threads = k.most_workgroups = 0;
  k.busy_ns = 0;
  report = report_of({k});
  report.no_compiler = "no library";
  rows = profile_json(report)["rows"];
  for (const char* name :
       {"operations", "bytes_read", "bytes_written", "gflops", "gbs", "threads", "workgroups"})
    EXPECT_TRUE(rows[0][name].is_null()) << name;
  EXPECT_EQ(rows[0]["interpreted_because"], "no library");
  k.knows_operations = k.knows_bytes = true;
  rows = profile_json(report_of({k}))["rows"];
  EXPECT_TRUE(rows[0]["gflops"].is_null()) << "no time, no rate";
  EXPECT_TRUE(rows[0]["gbs"].is_null());
}

TEST(ProfileJson, HasTheSteps) {
  ProfileReport report = report_of({kernel("k", 1000)});
  ProfileStep step;
  step.name = "k";
  step.place = "m.f";
  step.command = 3;
  step.time_ns = 500;
  step.most_threads = 2;
  report.sums.steps.push_back(step);
  step.kind = Kind::other;
  step.most_threads = 0;
  report.sums.steps.push_back(step);
  Json json = profile_json(report);
  EXPECT_TRUE(json["untraced_ns"].is_null());
  EXPECT_EQ(json["steps"][0]["kind"], "kernel");
  EXPECT_EQ(json["steps"][0]["share"], 0.5);
  EXPECT_EQ(json["steps"][0]["threads"], 2);
  EXPECT_EQ(json["steps"][0]["command"], 3);
  EXPECT_EQ(json["steps"][1]["kind"], "other");
  EXPECT_TRUE(json["steps"][1]["threads"].is_null());
  report.sums.total_ns = 0;
  report.untraced_ns = 7;
  json = profile_json(report);
  EXPECT_EQ(json["steps"][0]["share"], 0) << "of no time";
  EXPECT_EQ(json["untraced_ns"], 7);
}

}  // namespace
}  // namespace halyard::tools
