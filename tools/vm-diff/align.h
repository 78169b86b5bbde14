// Pairs the steps of two runs, in order. Runs of one program pair by name; programs of other structure by
// what their steps have in common.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "step.h"

namespace halyard::tools {

enum class Match : uint8_t {
  name,  // the same name
  kind,  // the same name without the number that a compiler gives to a kernel
  size,  // writes as many bytes
};

struct Pair {
  size_t a = 0;
  size_t b = 0;
  Match match = Match::name;
};

struct Alignment {
  std::vector<Pair> pairs;     // ascending in both runs
  std::vector<size_t> only_a;  // steps without a partner
  std::vector<size_t> only_b;
};

Alignment align(std::span<const Step> a, std::span<const Step> b);

// "main_dispatch_3_matmul_64x64_f32": "matmul_64x64_f32".
std::string_view kind_of_kernel(std::string_view name);

}  // namespace halyard::tools
