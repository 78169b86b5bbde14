// Runs two runners in rounds, and compares them.
#include "against.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "bench_flags.h"
#include "common/child.h"
#include "common/inputs.h"
#include "common/json.h"
#include "common/printable.h"
#include "common/program_flags.h"
#include "rows.h"

namespace halyard::tools {

namespace {

using Run = benchmark::BenchmarkReporter::Run;

// Collects the rows of one run.
class Collector final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration) runs_.push_back(run);
  }
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<Run> runs_;
};

struct Times {
  double real = 0;  // seconds
  double cpu = 0;
};

Times median_of(const std::vector<Times>& all) {
  std::vector<double> real;
  std::vector<double> cpu;
  for (const Times& times : all) {
    real.push_back(times.real);
    cpu.push_back(times.cpu);
  }
  return {tools::median_of(real), tools::median_of(cpu)};
}

std::string escaped(std::string_view name) {
  std::string pattern;
  for (const char character : name) {
    if (std::string_view("\\^$.|?*+()[]{}").contains(character)) pattern += '\\';
    pattern += character;
  }
  return pattern;
}

// The flags with which another runner measures the same calls. All runners have these flags; the command may
// contain more.
Result<std::vector<std::string>> child_arguments(const Flags& flags, const Bench& bench,
                                                 const Target& target) {
  std::vector<std::string> arguments;
  const auto add = [&](const Flag& flag, std::string_view value) {
    arguments.push_back(fmt::format("{}={}", flag, value));
  };
  for (const Flag* const flag : std::initializer_list<const Flag*>{
           &flag::module, &flag::parameters, &flag::parameter_mode, &flag::module_mode, &flag::input,
           &flag::executable_plugin, &flag::device_lead_allocator, &flag::task_topology_group_count,
           &flag::task_topology_max_group_count, &flag::task_topology_mode, &flag::task_topology_cpu_ids,
           &flag::task_topology_nodes, &flag::batch_concurrency, &flag::benchmark_min_time})
    for (const std::string& value : flags.given(*flag)) add(*flag, value);
  if (flags.has(flag::inputs_from))
    for (const std::string& text : TOOL_TRY(arrays_in(flags[flag::inputs_from]))) add(flag::input, text);
  if (flags.has(flag::device)) {
    for (const std::string& uri : flags[flag::device]) add(flag::device, uri);
  } else {  // the other runner may have another default
    for (const auto& device : bench.program.devices) add(flag::device, halyard_device_uri(device.get()));
  }
  add(flag::function, target.name);
  if (bench.batch > 1) add(flag::batch_size, std::to_string(bench.batch));
  add(flag::benchmark_format, "json");
  add(flag::benchmark_filter, fmt::format("^{}(/|$)", escaped(call_row_name(target))));
  return arguments;
}

// The end of a failed command's output, on one line.
std::string last_lines(std::string_view text) {
  constexpr size_t kMaxText = 400;
  if (text.size() > kMaxText) text.remove_prefix(text.size() - kMaxText);
  std::string line;
  for (const char character : text) line += character == '\n' ? ' ' : character;
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

// The string value of a member, or "".
std::string text_of(const Json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

Result<double> seconds_of(const Json& row, const char* time) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto value = row.find(time);
  if (value != row.end() && value->is_number() && value->get<double>() > 0)
    for (const auto& [name, seconds] : kUnits)
      if (text_of(row, "time_unit") == name) return value->get<double>() * seconds;
  return fail(HALYARD_INVALID_ARGUMENT, "its row has no '{}' above 0 with a 'time_unit' of ns, us, ms or s",
              time);
}

Result<Times> times_in(std::string_view text, const std::string& row_name) {
  const size_t begin = text.find('{');
  if (begin == std::string_view::npos)
    return fail(HALYARD_INVALID_ARGUMENT, "it printed no JSON; does it accept {}?",
                flag::benchmark_format.example);
  const Json json = TOOL_TRY(parse_json(text.substr(begin)));
  const auto rows = json.find("benchmarks");
  if (rows == json.end() || !rows->is_array())
    return fail(HALYARD_INVALID_ARGUMENT,
                "its JSON has no array 'benchmarks', unlike that of Google Benchmark");
  std::vector<Times> all;
  std::string names;
  for (const Json& row : *rows) {
    const std::string name = text_of(row, "name");
    if (name.empty()) continue;
    names += (names.empty() ? "" : ", ") + name;
    if (name != row_name && !name.starts_with(row_name + "/")) continue;
    const std::string type = text_of(row, "run_type");
    if (!type.empty() && type != "iteration") continue;
    if (row.value("error_occurred", Json()) == true) {
      const std::string message = text_of(row, "error_message");
      return fail(HALYARD_ABORTED, "its call failed: {}", message.empty() ? "?" : message);
    }
    all.push_back({TOOL_TRY(seconds_of(row, "real_time")), TOOL_TRY(seconds_of(row, "cpu_time"))});
  }
  if (!all.empty()) return median_of(all);
  return fail(HALYARD_INVALID_ARGUMENT, "it printed no row '{}'; it printed {}", row_name,
              names.empty() ? "none" : names);
}

// Runs `command`, a piece of shell such as "PATH/runner --flag", followed by these arguments. A signal stops
// it. UNAVAILABLE: it cannot be started.
Result<ChildExit> run_command(const std::string& command, const std::vector<std::string>& arguments,
                              Stop& stop) {
  constexpr size_t kMaxOutput = size_t{64} << 20;
  ChildProgram shell{.path = "/bin/sh",
                     .arguments = {"sh", "-c", "exec " + command + " \"$@\"", "sh"},
                     .outputs = {{STDOUT_FILENO, kMaxOutput}, {STDERR_FILENO, kMaxOutput}}};
  shell.arguments.insert(shell.arguments.end(), arguments.begin(), arguments.end());
  Children children;
  ChildExit output;
  const Result<> started = children.spawn(shell, std::nullopt, [&](ChildExit it) { output = std::move(it); });
  if (!started) return fail(started.error().code, "cannot start '{}': {}", command, started.error().text);
  stop.set_also([&] { children.terminate(); });
  children.run();
  stop.set_also({});
  return output;
}

Result<Times> run_other(const std::string& command, const std::vector<std::string>& arguments,
                        const std::string& row_name, Stop& stop) {
  constexpr int kNotFound = 127;  // exit code of a shell for a command that it does not find
  constexpr int kNotExecutable = 126;
  const ChildExit output = TOOL_TRY(run_command(command, arguments, stop));
  if (stop.asked_for()) return fail(HALYARD_CANCELLED, "stopped by a signal");
  const std::string said = last_lines(output.outputs[1]);
  const std::string words = said.empty() ? "" : "; it wrote: " + said;
  if (output.is_signalled())
    return fail(HALYARD_ABORTED, "{}={}: the command was ended by signal {} ({}){}", flag::against, command,
                output.signal(), ::strsignal(output.signal()), words);
  if (output.exit_code() == kNotFound || output.exit_code() == kNotExecutable)
    return fail(HALYARD_UNAVAILABLE,
                "{}={}: the command cannot be run{}; expected a program, with its path unless $PATH leads to "
                "it",
                flag::against, command, words);
  Result<Times> times = times_in(output.outputs[0], row_name);
  if (output.exit_code() != 0 && (times || times.error().code != HALYARD_ABORTED))
    return fail(HALYARD_ABORTED, "{}={}: the command ended with exit code {}{}", flag::against, command,
                output.exit_code(), words);
  if (!times) return fail(times.error().code, "{}={}: {}", flag::against, command, times.error().text);
  return times;
}

struct Round {
  Run own_run;
  Times own;
  Times other;
};

Times times_of(const Run& run) {
  const double iterations = static_cast<double>(std::max<int64_t>(1, run.iterations));
  return {run.real_accumulated_time / iterations, run.cpu_accumulated_time / iterations};
}

// With repetitions, returns the median of several runs.
Result<Run> run_own(Row& row) {
  Collector collector;
  benchmark::ClearRegisteredBenchmarks();
  row.enlist();
  benchmark::RunSpecifiedBenchmarks(&collector, "all");
  std::vector<Run> runs = collector.runs();
  if (runs.empty()) return fail(HALYARD_INTERNAL, "the row '{}' has not run", row.name());
  for (const Run& run : runs)
    if (run.error_occurred) return fail(HALYARD_ABORTED, "{}", run.error_message);
  std::ranges::sort(runs, {}, [](const Run& run) { return times_of(run).real; });
  return runs[runs.size() / 2];
}

Run make_run(const Run& like, std::string name, const Times& times) {
  Run run = like;
  run.run_name = {};
  run.run_name.function_name = std::move(name);
  run.repetitions = 1;
  run.repetition_index = 0;
  run.real_accumulated_time = times.real * static_cast<double>(run.iterations);
  run.cpu_accumulated_time = times.cpu * static_cast<double>(run.iterations);
  return run;
}

struct Comparison {
  double ratio = 0;
  double least = 0;
  double most = 0;
};

// The ratio of this runner's times to those of the other.
Comparison compared(const std::vector<Round>& rounds, const Times& own, const Times& other) {
  Comparison result = {own.real / other.real, 0, 0};
  for (const Round& round : rounds) {
    const double ratio = round.own.real / round.other.real;
    if (result.least == 0 || ratio < result.least) result.least = ratio;
    result.most = std::max(result.most, ratio);
  }
  return result;
}

std::string duration_text(double seconds) {
  constexpr std::pair<double, std::string_view> kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
  for (const auto& [unit, name] : kUnits)
    if (seconds >= unit) return fmt::format("{:.4g} {}", seconds / unit, name);
  return fmt::format("{:.4g} ns", seconds * 1e9);
}

// Reports two rows, and returns the final sentence of the output.
std::string report_rounds(const std::vector<Round>& rounds, const Target& target, const std::string& command,
                          Report& report) {
  std::vector<Times> own_times;
  std::vector<Times> other_times;
  for (const Round& round : rounds) {
    own_times.push_back(round.own);
    other_times.push_back(round.other);
  }
  const Times own = median_of(own_times);
  const Times other = median_of(other_times);
  const Comparison comparison = compared(rounds, own, other);

  std::vector<const Round*> sorted;
  for (const Round& round : rounds) sorted.push_back(&round);
  std::ranges::sort(sorted, {}, [](const Round* round) { return round->own.real; });
  const Run& middle = sorted[sorted.size() / 2]->own_run;
  const auto count = static_cast<double>(rounds.size());
  Run own_run = make_run(middle, middle.run_name.function_name, own);
  own_run.run_name.time_type = middle.run_name.time_type;
  own_run.counters["rounds"] = count;
  Run other_run = make_run(middle, target.name + "/against", other);
  other_run.iterations = 1;
  other_run.real_accumulated_time = other.real;
  other_run.cpu_accumulated_time = other.cpu;
  other_run.report_label = printable(command);
  other_run.counters = {{"ratio", comparison.ratio},
                        {"ratio_min", comparison.least},
                        {"ratio_max", comparison.most},
                        {"rounds", count}};
  report.ReportRuns({own_run, other_run});
  return fmt::format(
      "{}: {}, against {} of '{}': ratio of medians {:.3f}, in single rounds {:.3f} to {:.3f} ({} rounds; "
      "below 1 this is faster)\n",
      printable(target.name), duration_text(own.real), duration_text(other.real), printable(command),
      comparison.ratio, comparison.least, comparison.most, rounds.size());
}

Result<Round> run_round(const Flags& flags, Bench& bench, const Target& target, Row& row, bool other_first) {
  const std::string command = flags[flag::against];
  const std::vector<std::string> arguments = TOOL_TRY(child_arguments(flags, bench, target));
  Round round;
  for (const bool is_other : {other_first, !other_first}) {
    if (bench.stop.asked_for()) return fail(HALYARD_CANCELLED, "stopped by a signal");
    if (is_other) {
      round.other = TOOL_TRY(run_other(command, arguments, call_row_name(target), bench.stop));
    } else {
      round.own_run = TOOL_TRY(run_own(row));
      round.own = times_of(round.own_run);
    }
  }
  return round;
}

Result<uint64_t> rounds_of(const Flags& flags) {
  const uint64_t count = TOOL_TRY(flags[flag::rounds]);
  if (count >= flag::rounds.otherwise) return count;
  return wrong_value(
      flag::rounds, std::to_string(count),
      fmt::format("at least {}, because fewer give no reliable ratio", flag::rounds.otherwise));
}

}  // namespace

Result<> check_against(const Flags& flags) {
  TOOL_TRY(rounds_of(flags));
  if (flags[flag::untrusted])
    return fail(HALYARD_PERMISSION_DENIED,
                "{} with {}: the other runner would run the module without these restrictions; remove one of "
                "the flags",
                flag::against, flag::untrusted);
  if (flags.has(flag::threads))
    return fail(HALYARD_INVALID_ARGUMENT,
                "{}={} with {}: other runners call on one thread; remove one of the flags", flag::threads,
                flags.given(flag::threads).back(), flag::against);
  for (const std::string& path : flags[flag::module])
    if (path == kStandard)
      return fail(HALYARD_INVALID_ARGUMENT,
                  "{}=- with {}: two runners cannot both read standard input; pass a file", flag::module,
                  flag::against);
  return {};
}

Result<> compare(const Flags& flags, Bench& bench, Report& report) {
  const uint64_t count = TOOL_TRY(rounds_of(flags));
  std::vector<std::unique_ptr<Row>> rows;
  for (const Measured& function : bench.functions) rows.push_back(make_call_row(bench, function));
  report.ReportContext({});
  std::string sentences;
  Result<> done;
  for (size_t i = 0; i < rows.size() && done; ++i) {
    const Target& target = bench.functions[i].target;
    report.set_family(static_cast<int64_t>(i));
    rows[i]->prepare();
    std::vector<Round> rounds;
    for (uint64_t turn = 0; turn < count && done; ++turn) {
      bench.progress.show(turn + 1, count, target.name);
      Result<Round> round = run_round(flags, bench, target, *rows[i], turn % 2 == 0);
      if (round) {
        rounds.push_back(*std::move(round));
      } else {
        done = std::unexpected(std::move(round).error());
      }
    }
    if (!rounds.empty()) sentences += report_rounds(rounds, target, flags[flag::against], report);
  }
  TOOL_TRY(report.finish());
  if (bench.options.format == Format::console) fmt::print("{}", sentences);
  return done;
}

}  // namespace halyard::tools
