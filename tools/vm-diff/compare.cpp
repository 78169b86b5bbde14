// One pass. Elements with equal bits are only counted.
#include "compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace halyard::tools {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t place_of_distance(unsigned __int128 distance) {
  if (distance <= 1) return static_cast<size_t>(distance);
  const unsigned __int128 below = distance - 1;
  const auto high = static_cast<uint64_t>(below >> 64);
  const int width = high ? 64 + std::bit_width(high) : std::bit_width(static_cast<uint64_t>(below));
  return static_cast<size_t>(width) + 1;
}

struct Distance {
  double absolute = 0;
  double relative = 0;
  unsigned __int128 ulps = 0;
  bool is_number = true;  // false: NaN or infinity in one of them only
};

Distance distance_of(const ElementValue& a, const ElementValue& b) {
  Distance distance;
  if (a.is_nan && b.is_nan) return distance;
  if (a.is_nan != b.is_nan || a.is_infinite != b.is_infinite || (a.is_infinite && a.value != b.value)) {
    distance = {kInfinity, kInfinity, 0, false};
    return distance;
  }
  const __int128 difference = b.order - a.order;
  distance.ulps = static_cast<unsigned __int128>(difference < 0 ? -difference : difference);
  if (a.is_infinite) return distance;
  distance.absolute = std::fabs(b.value - a.value);
  if (distance.absolute > 0)
    distance.relative = a.value != 0 ? distance.absolute / std::fabs(a.value) : kInfinity;
  return distance;
}

bool is_accepted(const Distance& distance, const ElementValue& a, const Tolerance& tolerance) {
  if (tolerance.is_exact() || !distance.is_number) return false;
  return distance.ulps <= tolerance.ulps ||
         distance.absolute <= tolerance.absolute + tolerance.relative * std::fabs(a.value);
}

}  // namespace

Comparison compare(const ElementKind& kind, std::span<const uint8_t> a, std::span<const uint8_t> b,
                   const std::vector<bool>& counts, const Tolerance& tolerance, size_t worst) {
  Comparison comparison;
  comparison.histogram.resize(kNoDistance + 1);
  const auto is_larger = [](const Miss& left, const Miss& right) {
    return left.absolute != right.absolute ? left.absolute > right.absolute : left.index < right.index;
  };
  for (uint64_t at = 0; at + kind.size <= a.size(); at += kind.size) {
    if (!counts.empty()) {
      bool is_counted = false;
      for (uint64_t i = at; i < at + kind.size; ++i) is_counted = is_counted || counts[i];
      if (!is_counted) continue;
    }
    ++comparison.elements;
    const ElementValue from = element_value(kind, a.data() + at);
    const ElementValue to = element_value(kind, b.data() + at);
    comparison.nan_a += from.is_nan;
    comparison.nan_b += to.is_nan;
    comparison.infinite_a += from.is_infinite;
    comparison.infinite_b += to.is_infinite;
    if (std::memcmp(a.data() + at, b.data() + at, kind.size) == 0) {
      ++comparison.histogram[0];
      continue;
    }
    const Distance distance = distance_of(from, to);
    ++comparison.different;
    ++comparison.histogram[distance.is_number ? place_of_distance(distance.ulps) : kNoDistance];
    const double ulps = distance.is_number ? static_cast<double>(distance.ulps) : kInfinity;
    comparison.largest_absolute = std::max(comparison.largest_absolute, distance.absolute);
    comparison.largest_relative = std::max(comparison.largest_relative, distance.relative);
    comparison.largest_ulps = std::max(comparison.largest_ulps, ulps);
    if (!is_accepted(distance, from, tolerance)) ++comparison.beyond;
    if (worst == 0) continue;
    Miss miss = {at / kind.size, {}, {}, distance.absolute, distance.relative, ulps};
    if (comparison.worst.size() == worst && !is_larger(miss, comparison.worst.back())) continue;
    miss.a = number_text(kind, a.data() + at);
    miss.b = number_text(kind, b.data() + at);
    if (comparison.worst.size() == worst) comparison.worst.pop_back();
    comparison.worst.insert(std::ranges::upper_bound(comparison.worst, miss, is_larger), std::move(miss));
  }
  return comparison;
}

std::string distance_text(size_t place) {
  if (place == kNoDistance) return "NaN or infinity";
  if (place <= 2) return std::to_string(place);
  const auto power = [](size_t exponent) {
    return exponent < 64 ? std::to_string(uint64_t{1} << exponent) : fmt::format("2^{}", exponent);
  };
  if (place <= 11) return fmt::format("{} to {}", (uint64_t{1} << (place - 2)) + 1, power(place - 1));
  return fmt::format("to 2^{}", place - 1);
}

}  // namespace halyard::tools
