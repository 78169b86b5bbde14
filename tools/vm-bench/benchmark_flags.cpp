// Values of --benchmark_ flags. Google Benchmark itself would go on with its default where one is wrong, or
// end the process.
#include "benchmark_flags.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace halyard::tools {

namespace {

// Of a flag whose values are named in its table: others have been refused.
Format format_of(const Flags& flags, std::string_view name, std::string_view otherwise) {
  const std::string text = flags.value(name, otherwise);
  if (text == "json") return Format::json;
  return text == "csv" ? Format::csv : Format::console;
}

benchmark::TimeUnit unit_of(std::string_view text) {
  if (text == "ns") return benchmark::kNanosecond;
  if (text == "us") return benchmark::kMicrosecond;
  return text == "ms" ? benchmark::kMillisecond : benchmark::kSecond;
}

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// "0.5", "0.5s" or "100x".
Result<> parse_min_time(const Flags& flags, BenchmarkOptions& options) {
  constexpr double kDefault = 0.5;
  options.min_time = kDefault;
  if (!flags.has("benchmark_min_time")) return {};
  const std::string text = flags.value("benchmark_min_time");
  std::string_view number = text;
  const bool is_count = number.ends_with('x');
  if (is_count || number.ends_with('s')) number.remove_suffix(1);
  if (is_count
          ? parse_whole(number, options.iterations) && options.iterations > 0
          : parse_whole(number, options.min_time) && std::isfinite(options.min_time) && options.min_time > 0)
    return {};
  return fail(HALYARD_INVALID_ARGUMENT,
              "--benchmark_min_time={}: expected seconds, such as 0.5s, or a number of calls, such as 100x",
              text);
}

template <typename T>
Result<> hand_on_number(const Flags& flags, std::string_view name, T least, std::string_view example,
                        BenchmarkOptions& options) {
  if (!flags.has(name)) return {};
  T value = {};
  const std::string text = flags.value(name);
  if (!parse_whole(std::string_view(text), value) || !(value >= least))
    return fail(HALYARD_INVALID_ARGUMENT, "--{}={}: expected a number of at least {}, such as {}", name, text,
                least, example);
  options.handed_on.push_back(fmt::format("--{}={}", name, text));
  return {};
}

}  // namespace

Result<BenchmarkOptions> benchmark_options(const Flags& flags) {
  BenchmarkOptions options;
  options.handed_on.emplace_back("vm-bench");
  options.format = format_of(flags, "benchmark_format", "console");
  options.out = flags.value("benchmark_out");
  options.out_format = format_of(flags, "benchmark_out_format", "json");
  options.display_aggregates_only = flags.on("benchmark_display_aggregates_only");
  TOOL_TRY(parse_min_time(flags, options));
  options.handed_on.push_back(fmt::format("--benchmark_min_time={}", options.min_time));
  TOOL_TRY(hand_on_number(flags, "benchmark_min_warmup_time", 0.0, "1", options));
  TOOL_TRY(hand_on_number(flags, "benchmark_repetitions", 1, "7", options));
  for (const std::string_view name : {"benchmark_enable_random_interleaving",
                                      "benchmark_report_aggregates_only", "benchmark_counters_tabular"})
    if (flags.has(name)) options.handed_on.push_back(fmt::format("--{}={}", name, flags.on(name)));
  options.handed_on.push_back("--benchmark_color=" + flags.value("benchmark_color", "auto"));
  options.handed_on.push_back("--benchmark_format=" + flags.value("benchmark_format", "console"));
  for (const std::string& pairs : flags.all("benchmark_context")) {
    if (!pairs.contains('='))
      return fail(HALYARD_INVALID_ARGUMENT, "--benchmark_context={}: expected KEY=VALUE,...", pairs);
    options.handed_on.push_back("--benchmark_context=" + pairs);
  }
  for (const std::string_view name : {"benchmark_time_unit", "time_unit"})
    if (flags.has(name)) options.unit = unit_of(flags.value(name));
  return options;
}

}  // namespace halyard::tools
