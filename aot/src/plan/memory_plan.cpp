#include "plan/memory_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace halyard::aot {

namespace {

// Rounds of the search for a better order.
constexpr size_t kRounds = 2000;

uint64_t rounded(uint64_t size, uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Places one after another at the lowest address that is free while it is needed.
uint64_t place_in_order(std::vector<Lifetime>& all, const std::vector<size_t>& order, uint64_t alignment) {
  uint64_t end = 0;
  std::vector<size_t> placed;
  for (const size_t index : order) {
    Lifetime& each = all[index];
    const uint64_t size = rounded(each.size, alignment);
    std::vector<std::pair<uint64_t, uint64_t>> taken;
    for (const size_t other : placed)
      if (meet(all[other], each))
        taken.emplace_back(all[other].offset, all[other].offset + rounded(all[other].size, alignment));
    std::ranges::sort(taken);
    uint64_t at = 0;
    for (const auto& [from, to] : taken) {
      if (at + size <= from) break;
      at = std::max(at, to);
    }
    each.offset = at;
    end = std::max(end, at + size);
    placed.push_back(index);
  }
  return end;
}

}  // namespace

uint64_t peak_of(const std::vector<Lifetime>& all, uint64_t alignment) {
  uint64_t peak = 0;
  for (const Lifetime& each : all) {
    uint64_t sum = 0;
    for (const Lifetime& other : all)
      if (other.first <= each.first && each.first <= other.last) sum += rounded(other.size, alignment);
    peak = std::max(peak, sum);
  }
  return peak;
}

// The indices, largest key first; equal keys in the order of the lifetimes.
template <typename Key>
std::vector<size_t> order_by(const std::vector<Lifetime>& all, Key key) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    const auto key_a = key(all[a]);
    const auto key_b = key(all[b]);
    return key_a != key_b ? key_a > key_b : a < b;
  });
  return order;
}

uint64_t place_by_size(std::vector<Lifetime>& all, uint64_t alignment) {
  return place_in_order(all, order_by(all, std::mem_fn(&Lifetime::size)), alignment);
}

uint64_t place(std::vector<Lifetime>& all, uint64_t alignment) {
  uint64_t best = place_by_size(all, alignment);
  const uint64_t least = peak_of(all, alignment);
  std::vector<size_t> order(all.size());
  const auto attempt = [&](std::vector<size_t> next) {
    std::vector<Lifetime> copy = all;
    const uint64_t end = place_in_order(copy, next, alignment);
    if (end >= best) return false;
    best = end;
    all = std::move(copy);
    order = std::move(next);
    return true;
  };
  const auto sorted_by = [&](auto key) { return order_by(all, key); };
  order = sorted_by([](const Lifetime& each) { return each.size; });
  attempt(sorted_by([](const Lifetime& each) { return each.last - each.first; }));
  attempt(sorted_by([](const Lifetime& each) { return each.size * (each.last - each.first + 1); }));
  attempt(sorted_by([](const Lifetime& each) { return SIZE_MAX - each.first; }));
  attempt(sorted_by([](const Lifetime& each) { return each.last; }));
  // Then exchanges of two, by a generator with a fixed start, so the same program gives the same plan.
  uint64_t seed = 0x9E3779B97F4A7C15;
  const auto random = [&](size_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((seed >> 33) % below);
  };
  const size_t rounds = all.size() > 1 ? std::min<size_t>(kRounds, 40000000 / (all.size() * all.size())) : 0;
  for (size_t round = 0; round < rounds && best > least; ++round) {
    std::vector<size_t> next = order;
    std::swap(next[random(next.size())], next[random(next.size())]);
    attempt(std::move(next));
  }
  return best;
}

}  // namespace halyard::aot
