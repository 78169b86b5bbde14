// Adjusts rows and passes them to Google Benchmark's reporters.
#include "report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>
#include <string_view>

#include "bench.h"
#include "common/files.h"
#include "common/profile_report.h"
#include "common/program_flags.h"

namespace halyard::tools {

namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // for CSV, which scripts still read
std::unique_ptr<benchmark::BenchmarkReporter> make_reporter(Format format) {
  switch (format) {
    case Format::json:
      return std::make_unique<benchmark::JSONReporter>();
    case Format::csv:
      return std::make_unique<benchmark::CSVReporter>();
    default:
      return std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
  }
}
#pragma GCC diagnostic pop

std::unexpected<Failure> cannot_write(const std::string& path) {
  return fail(code_of_errno(errno), "{}={}: cannot write the file: {}; check the path", flag::benchmark_out,
              path, errno ? std::strerror(errno) : "an earlier write failed");
}

// The document of Google Benchmark with the member "profiles".
std::string with_profiles(const std::string& document, const std::vector<ProfileReport>& profiles) {
  constexpr int kLines = 3;  // depth of the lines: a line for each row
  const size_t end = document.find_last_of('}');
  if (end == std::string::npos) return document;
  Json all = Json::array();
  for (const ProfileReport& profile : profiles) all.push_back(profile_json(profile));
  std::string text = json_document(all, kLines);
  text.pop_back();
  return document.substr(0, document.find_last_not_of('\n', end - 1) + 1) + ",\n  \"profiles\": " + text +
         "\n}\n";
}

}  // namespace

bool is_time(const std::string& counter) {
  constexpr std::string_view kTimes[] = {"min", "median", "p99"};
  return std::ranges::find(kTimes, counter) != std::end(kTimes);
}

Report::Report(Bench& bench, size_t name_width)
    : bench_(bench), name_width_(name_width), out_path_(bench.reports() ? bench.options.out : "") {}

Result<std::unique_ptr<Report>> Report::make(Bench& bench, size_t name_width) {
  const BenchmarkOptions& options = bench.options;
  auto report = std::unique_ptr<Report>(new Report(bench, name_width));
  if (!bench.reports()) return report;
  // The reporter selected by --benchmark_format, --benchmark_color and --benchmark_counters_tabular. The
  // library owns it.
  report->outputs_.push_back(
      {benchmark::CreateDefaultDisplayReporter(), options.format, options.display_aggregates_only, {}});
  report->keep_json();
  if (options.out.empty()) return report;
  errno = 0;
  report->file_.open(options.out);
  if (!report->file_) return cannot_write(options.out);
  report->file_reporter_ = make_reporter(options.out_format);
  report->file_reporter_->SetOutputStream(&report->file_);
  report->file_reporter_->SetErrorStream(&report->nowhere_);  // so that the machine is described only once
  report->outputs_.push_back({report->file_reporter_.get(), options.out_format, false, {}});
  report->keep_json();
  return report;
}

void Report::keep_json() {
  if (!bench_.flags->has(flag::profile)) return;
  for (Output& output : outputs_) {
    if (output.format != Format::json || output.text) continue;
    output.text = std::make_unique<std::ostringstream>();
    output.target = &output.reporter->GetOutputStream();
    output.reporter->SetOutputStream(output.text.get());
  }
}

bool Report::ReportContext(const Context& context) {
  if (has_context_) return true;
  has_context_ = true;
  bench_.progress.clear();
  Context widened = context;
  widened.name_field_width = name_width_;
  return std::ranges::all_of(outputs_, [&](auto& output) { return output.reporter->ReportContext(widened); });
}

void Report::pass_on(Output& output, const std::vector<Run>& runs) {
  std::vector<Run> rows;
  for (const Run& run : runs) {
    if (output.aggregates_only && run.repetitions > 1 && run.run_type != Run::RT_Aggregate) continue;
    rows.push_back(run);
    if (output.format != Format::console) continue;
    for (auto& [name, counter] : rows.back().counters)  // so that the table shows that they are seconds
      if (is_time(name))
        counter.flags =
            static_cast<benchmark::Counter::Flags>(benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  }
  if (rows.empty()) return;
  if (output.format == Format::csv) {
    output.kept.insert(output.kept.end(), rows.begin(), rows.end());
  } else {
    output.reporter->ReportRuns(rows);
  }
}

Result<> Report::take_slowest(std::vector<Run>& rows) {
  if (!bench_.agreement) return {};
  std::vector<double> own = {0};  // the total time of the rows, followed by their values
  for (const Run& run : rows) {
    if (run.run_type == Run::RT_Iteration || run.aggregate_name == "mean")
      own[0] += run.real_accumulated_time;
    own.insert(own.end(),
               {static_cast<double>(run.iterations), run.real_accumulated_time, run.cpu_accumulated_time});
    for (const auto& [name, counter] : run.counters) own.push_back(counter.value);
  }
  const std::vector<double> all = TOOL_TRY(bench_.agreement->gather(own));
  size_t slowest = 0;
  for (size_t rank = 1; rank < bench_.agreement->count(); ++rank)
    if (all[rank * own.size()] > all[slowest * own.size()]) slowest = rank;
  size_t at = slowest * own.size() + 1;
  for (Run& run : rows) {
    run.iterations = static_cast<benchmark::IterationCount>(all[at]);
    run.real_accumulated_time = all[at + 1];
    run.cpu_accumulated_time = all[at + 2];
    at += 3;
    for (auto& [name, counter] : run.counters) counter.value = all[at++];
    run.counters["rank"] = static_cast<double>(slowest);
  }
  return {};
}

void Report::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> measured = runs;
  std::erase_if(measured, [](const Run& run) { return run.error_occurred && run.error_message == kStopped; });
  const bool has_failed = std::ranges::any_of(measured, &Run::error_occurred);
  if (const Result<> taken = has_failed ? Result<>() : take_slowest(measured); !taken) {
    bench_.note(taken.error());
    return;
  }
  std::vector<Run> rows;
  for (Run run : measured) {
    // Removes the number of iterations from names. Also removes the kind of time, except for calls, because
    // their names are the same as in other runners.
    run.run_name.iterations.clear();
    run.family_index += family_;
    // Removes NaN, because JSON has no such number: it is the variation of a counter that is always 0.
    std::erase_if(run.counters, [](const auto& counter) { return !std::isfinite(counter.second.value); });
    if (!run.run_name.function_name.starts_with("BM_")) run.run_name.time_type.clear();
    rows.push_back(std::move(run));
  }
  if (rows.empty()) return;
  bench_.progress.clear();
  for (Output& output : outputs_) pass_on(output, rows);
  std::cout.flush();
}

Result<> Report::finish() {
  ReportContext(Context());
  for (Output& output : outputs_) {
    if (!output.kept.empty()) output.reporter->ReportRuns(output.kept);
    output.reporter->Finalize();
    if (output.text) {
      *output.target << with_profiles(output.text->str(), bench_.profiles);
    } else if (output.format == Format::json) {
      output.reporter->GetOutputStream() << '\n';
    }
  }
  std::cout.flush();
  if (out_path_.empty()) return {};
  errno = 0;
  file_.close();
  if (!file_) return cannot_write(out_path_);
  return {};
}

}  // namespace halyard::tools
