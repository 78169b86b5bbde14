// Parses the values of --benchmark_ flags, because Google Benchmark uses its default for an invalid value, or
// ends the process.
#include "benchmark_flags.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "bench_flags.h"

namespace halyard::tools {

namespace {

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// "0.5", "0.5s" or "100x".
Result<> parse_min_time(const Flags& flags, BenchmarkOptions& options) {
  constexpr double kDefault = 0.5;
  options.min_time = kDefault;
  if (!flags.has(flag::benchmark_min_time)) return {};
  const std::string text = flags[flag::benchmark_min_time];
  std::string_view number = text;
  const bool is_count = number.ends_with('x');
  if (is_count || number.ends_with('s')) number.remove_suffix(1);
  if (is_count
          ? parse_whole(number, options.iterations) && options.iterations > 0
          : parse_whole(number, options.min_time) && std::isfinite(options.min_time) && options.min_time > 0)
    return {};
  return wrong_value(flag::benchmark_min_time, text,
                     "seconds, such as 0.5s, or a number of calls, such as 100x");
}

template <typename T>
Result<> hand_on_number(const Flags& flags, const Text& flag, T least, BenchmarkOptions& options) {
  if (!flags.has(flag)) return {};
  T value = {};
  const std::string text = flags[flag];
  if (!parse_whole(std::string_view(text), value) || !(value >= least))
    return wrong_value(flag, text,
                       fmt::format("a number of at least {}, such as {}", least, flag.example_value()));
  options.handed_on.push_back(fmt::format("{}={}", flag, text));
  return {};
}

}  // namespace

Result<BenchmarkOptions> benchmark_options(const Flags& flags) {
  BenchmarkOptions options;
  options.handed_on.emplace_back("vm-bench");
  options.format = flags[flag::benchmark_format];
  options.out = flags[flag::benchmark_out];
  options.out_format = flags[flag::benchmark_out_format];
  options.display_aggregates_only = flags[flag::benchmark_display_aggregates_only];
  TOOL_TRY(parse_min_time(flags, options));
  const auto hand_on = [&](const Flag& flag, const auto& value) {
    options.handed_on.push_back(fmt::format("{}={}", flag, value));
  };
  hand_on(flag::benchmark_min_time, options.min_time);
  TOOL_TRY(hand_on_number(flags, flag::benchmark_min_warmup_time, 0.0, options));
  TOOL_TRY(hand_on_number(flags, flag::benchmark_repetitions, 1, options));
  for (const Toggle* const flag :
       {&flag::benchmark_enable_random_interleaving, &flag::benchmark_report_aggregates_only,
        &flag::benchmark_counters_tabular})
    if (flags.has(*flag)) hand_on(*flag, flags[*flag]);
  hand_on(flag::benchmark_color, flags[flag::benchmark_color]);
  for (const std::string& format : flags.given(flag::benchmark_format))
    hand_on(flag::benchmark_format, format);
  for (const std::string& pairs : flags[flag::benchmark_context]) {
    if (!pairs.contains('=')) return wrong_value(flag::benchmark_context, pairs, "KEY=VALUE,...");
    hand_on(flag::benchmark_context, pairs);
  }
  for (const auto* const flag : {&flag::benchmark_time_unit, &flag::time_unit})
    if (flags.has(*flag)) options.unit = flags[*flag];
  return options;
}

}  // namespace halyard::tools
