// Parses numbers with units.
#include "common/quantities.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <span>

namespace halyard::tools {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kSizes[] = {
    {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
    {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
constexpr Unit kDurations[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 60e9}};
constexpr double kMaxQuantity = 9e18;
constexpr uint64_t kMaxWhole = 9'000'000'000'000'000'000;

std::optional<uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  // Whole numbers of bytes and nanoseconds are exact, even if a double is not.
  uint64_t whole = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (read.ec == std::errc() && whole > 0)
    for (const Unit& unit : units)
      if (unit.factor == 1 && unit.name == std::string_view(read.ptr, text.data() + text.size()))
        return whole <= kMaxWhole ? std::optional(whole) : std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  const std::string_view name(end, text.data() + text.size());
  for (const Unit& unit : units) {
    const double value = std::ceil(number * unit.factor);
    if (unit.name == name && value <= kMaxQuantity) return static_cast<uint64_t>(value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) { return parse(text, kSizes); }

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const std::optional<uint64_t> time = parse(text, kDurations);
  if (!time) return std::nullopt;
  return std::chrono::nanoseconds(*time);
}

std::string format_size(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >> (10 * (unit + 1)) != 0) ++unit;
  const uint64_t size = uint64_t{1} << (10 * unit);
  if (bytes % size == 0) return fmt::format("{} {}", bytes / size, bytes == 1 ? "byte" : kUnits[unit]);
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(size), kUnits[unit]);
}

}  // namespace halyard::tools
