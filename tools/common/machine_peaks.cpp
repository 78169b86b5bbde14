// Each loop runs several times, on all threads at once, and the fastest run counts, because disturbances only
// slow it down.
#include "common/machine_peaks.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/quantities.h"
#include "halyard/x86_features.hpp"

namespace halyard::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 4;               // the last one is not measured
constexpr uint64_t kRounds = 100'000;  // of the float loop; below a millisecond
constexpr uint64_t kMinBlock = uint64_t{32} << 20;
constexpr uint64_t kMaxBlock = uint64_t{64} << 20;

// ---- Loops, with vectors of a number of bytes

// As many chains as hide the latency of an addition after a multiplication on processors of today.
constexpr size_t kChains = 12;

template <size_t kBytes>
struct VectorsOf;
#define VECTORS_OF(bytes)                                       \
  template <>                                                   \
  struct VectorsOf<bytes> {                                     \
    typedef float Floats __attribute__((vector_size(bytes)));   \
    typedef uint64_t Words __attribute__((vector_size(bytes))); \
  };
VECTORS_OF(16)
VECTORS_OF(32)
VECTORS_OF(64)
#undef VECTORS_OF

template <size_t kBytes>
[[gnu::always_inline]] inline float multiply_and_add(uint64_t rounds) {
  using Vector = typename VectorsOf<kBytes>::Floats;
  Vector sums[kChains];
  for (size_t i = 0; i < kChains; ++i) sums[i] = Vector{} + static_cast<float>(i);
  Vector factor = Vector{} + 0.5f;
  Vector term = Vector{} + 1.0f;
  for (uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (Vector& sum : sums) sum = sum * factor + term;  // not fused: -ffp-contract=off
  }
  float total = 0;
  for (const Vector& sum : sums) total += sum[0];
  return total;
}

template <size_t kBytes>
[[gnu::always_inline]] inline uint64_t read_all(const std::byte* bytes, uint64_t size) {
  using Vector = typename VectorsOf<kBytes>::Words;
  Vector sums[8] = {};
  for (uint64_t at = 0; at + sizeof sums <= size; at += sizeof sums) {
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) {
      Vector read;
      std::memcpy(&read, bytes + at + i * sizeof read, sizeof read);
      sums[i] |= read;
    }
  }
  uint64_t any = 0;
  for (const Vector& sum : sums) any |= sum[0];
  return any;
}

struct Loops {
  unsigned vector_bits;
  float (*multiply_and_add)(uint64_t rounds);
  uint64_t (*read_all)(const std::byte* bytes, uint64_t size);
};

constexpr Loops kBaseline = {128, multiply_and_add<16>, read_all<16>};

#ifdef __x86_64__
[[gnu::target("avx2")]] float multiply_and_add_256(uint64_t rounds) { return multiply_and_add<32>(rounds); }
[[gnu::target("avx2")]] uint64_t read_all_256(const std::byte* bytes, uint64_t size) {
  return read_all<32>(bytes, size);
}
[[gnu::target("avx512f")]] float multiply_and_add_512(uint64_t rounds) {
  return multiply_and_add<64>(rounds);
}
[[gnu::target("avx512f")]] uint64_t read_all_512(const std::byte* bytes, uint64_t size) {
  return read_all<64>(bytes, size);
}
constexpr Loops kAvx2 = {256, multiply_and_add_256, read_all_256};
constexpr Loops kAvx512 = {512, multiply_and_add_512, read_all_512};
#endif

const Loops& widest_loops() {
#ifdef __x86_64__
  if (x86::avx512f()) return kAvx512;
  if (x86::avx2()) return kAvx2;
#endif
  return kBaseline;
}

// ---- Measuring

// Keeps the compiler from omitting the computation of a value.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

// The seconds of `work(thread)` on all threads at once; the least of several runs.
double seconds_of(unsigned threads, const std::function<void(unsigned thread)>& work) {
  double least = 1e9;
  std::atomic<unsigned> arrived = 0;
  std::atomic<int> run = 0;
  const auto loop = [&](unsigned thread) {
    for (int i = 0; i < kRuns; ++i) {
      arrived.fetch_add(1);
      if (thread != 0) {
        while (run.load() <= i) std::this_thread::yield();
        work(thread);
        continue;
      }
      while (arrived.load() < threads * static_cast<unsigned>(i + 1)) std::this_thread::yield();
      const Clock::time_point begin = Clock::now();
      run.store(i + 1);
      work(thread);
      // The others have ended a run when they arrive for the next one; the last run is not measured.
      while (i + 1 < kRuns && arrived.load() < threads * static_cast<unsigned>(i + 2) - 1)
        std::this_thread::yield();
      if (i + 1 < kRuns) least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
    }
  };
  std::vector<std::jthread> others;
  for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(loop, thread);
  loop(0);
  return least;
}

uint64_t last_level_cache() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long size = ::sysconf(name); size > 0) return static_cast<uint64_t>(size);
#endif
  return 0;
}

Peaks peaks_of(const Loops& loops, unsigned threads, std::vector<std::byte>& block) {
  Peaks peaks;
  const double rounds = seconds_of(threads, [&](unsigned) { keep(loops.multiply_and_add(kRounds)); });
  const double lanes = loops.vector_bits / 32.0;
  peaks.gflops = 2 * lanes * kChains * kRounds * threads / rounds / 1e9;
  const uint64_t share = block.size() / threads & ~uint64_t{4095};
  const auto own = [&](unsigned thread) { return block.data() + thread * share; };
  const double read = seconds_of(threads, [&](unsigned thread) { keep(loops.read_all(own(thread), share)); });
  peaks.read_gbs = static_cast<double>(share * threads) / read / 1e9;
  const double copied = seconds_of(threads, [&](unsigned thread) {
    std::memcpy(own(thread), own(thread) + share / 2, share / 2);
    keep(own(thread));
  });
  peaks.copy_gbs = static_cast<double>(share / 2 * 2 * threads) / copied / 1e9;
  return peaks;
}

}  // namespace

MachinePeaks measure_peaks(unsigned threads) {
  const Loops& loops = widest_loops();
  MachinePeaks peaks;
  peaks.threads = std::max(threads, 1u);
  peaks.vector_bits = loops.vector_bits;
  peaks.cache_bytes = last_level_cache();
  peaks.block_bytes = std::clamp(2 * peaks.cache_bytes, kMinBlock, kMaxBlock);
  std::vector<std::byte> block(peaks.block_bytes, std::byte{1});
  peaks.one_thread = peaks_of(loops, 1, block);
  peaks.all_threads = peaks.threads == 1 ? peaks.one_thread : peaks_of(loops, peaks.threads, block);
  return peaks;
}

std::string MachinePeaks::method() const {
  std::string text = fmt::format("f32 multiplications and additions in vectors of {} bits; a block of {}",
                                 vector_bits, format_size(block_bytes));
  if (cache_bytes > block_bytes)
    text += fmt::format(", less than the last-level cache of {}", format_size(cache_bytes));
  return text;
}

}  // namespace halyard::tools
