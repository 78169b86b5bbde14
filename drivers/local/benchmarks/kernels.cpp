// Measures kernels alone, each with the limit of the machine in the same run: products with a loop that
// multiplies registers without memory accesses, copies with memcpy and memset, reading with memchr.
// benchmarks/cpu.py prints them as one table.
#include "vmvx/kernels.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "vmvx/flush_denormals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace halyard::local::vmvx;

benchmark::Counter rate(double count) { return {count, benchmark::Counter::kIsIterationInvariantRate}; }

// ---- Peaks: products per second, with enough accumulators to hide the latency.

#if defined(__x86_64__)
constexpr int kTurns = 4096;
constexpr int kAccumulators = 12;

#define PEAK(name, feature, vector, products, instruction)                                                   \
  __attribute__((target(feature))) void turns_##name() {                                                     \
    vector a = {}, b = {}, s0 = {}, s1 = {}, s2 = {}, s3 = {}, s4 = {}, s5 = {}, s6 = {}, s7 = {}, s8 = {},  \
           s9 = {}, s10 = {}, s11 = {};                                                                      \
    for (int i = 0; i < kTurns; ++i)                                                                         \
      asm volatile(instruction                                                                               \
                   " %12, %13, %0\n" instruction " %12, %13, %1\n" instruction " %12, %13, %2\n" instruction \
                   " %12, %13, %3\n" instruction " %12, %13, %4\n" instruction " %12, %13, %5\n" instruction \
                   " %12, %13, %6\n" instruction " %12, %13, %7\n" instruction " %12, %13, %8\n" instruction \
                   " %12, %13, %9\n" instruction " %12, %13, %10\n" instruction " %12, %13, %11\n"           \
                   : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7),         \
                     "+v"(s8), "+v"(s9), "+v"(s10), "+v"(s11)                                                \
                   : "v"(a), "v"(b));                                                                        \
  }                                                                                                          \
  void peak_##name(benchmark::State& state) {                                                                \
    if (!__builtin_cpu_supports(feature)) {                                                                  \
      state.SkipWithError("the processor lacks " feature);                                                   \
      return;                                                                                                \
    }                                                                                                        \
    for ([[maybe_unused]] auto _ : state) turns_##name();                                                    \
    state.counters["speed"] = rate(double{kTurns} * kAccumulators * (products));                             \
  }                                                                                                          \
  BENCHMARK(peak_##name)->Name("peak/" #name)

PEAK(avx512_f32, "avx512f", __m512, 16, "vfmadd231ps");
PEAK(avx512_s16, "avx512vnni", __m512, 32, "vpdpwssd");
PEAK(avx512_s8, "avx512vnni", __m512, 64, "vpdpbusd");
PEAK(avx512_bf16, "avx512bf16", __m512, 32, "vdpbf16ps");
PEAK(avx2_f32, "fma", __m256, 8, "vfmadd231ps");
#endif

// ---- Products

struct Free {
  void operator()(uint8_t* bytes) const { std::free(bytes); }
};
using AlignedBytes = std::unique_ptr<uint8_t, Free>;

// Zeros if `value` is 0, otherwise small numbers of any type.
AlignedBytes allocate(size_t size, int value) {
  AlignedBytes bytes(static_cast<uint8_t*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)));
  std::memset(bytes.get(), value, size);
  return bytes;
}

constexpr const char* kTypeNames[] = {"f32f32f32",    "s8s8s32",   "f16f16f32", "f16f16f16", "bf16bf16f32",
                                      "bf16bf16bf16", "s16s16s32", "s16u4s32",  "s16s8s32",  "s8s4s32"};

// Operands of `m` x `n` tiles, with a k of about `depth` elements.
struct Product {
  AlignedBytes lhs, rhs, out;
  Mmt4d operands;

  Product(const TileSizes& sizes, uint64_t m, uint64_t n, uint64_t depth, bool skip_rounding)
      : lhs(allocate(m * depth * sizes.m0 * 4, 0x11)),
        rhs(allocate(n * depth * sizes.n0 * 4, 0x11)),
        out(allocate(m * n * sizes.m0 * sizes.n0 * 4, 0)),
        operands({.lhs = lhs.get(),
                  .rhs = rhs.get(),
                  .out = out.get(),
                  .lhs_stride = depth / sizes.k0 * sizes.m0 * sizes.k0,
                  .rhs_stride = depth / sizes.k0 * sizes.n0 * sizes.k0,
                  .out_stride = n * sizes.m0 * sizes.n0,
                  .m = m,
                  .n = n,
                  .k = depth / sizes.k0,
                  .m0 = sizes.m0,
                  .n0 = sizes.n0,
                  .k0 = sizes.k0,
                  .accumulate = false,
                  .skip_rounding = skip_rounding}) {}
  void run(benchmark::State& state, Mmt4dKernel kernel) const {
    const FlushDenormals flush;
    for ([[maybe_unused]] auto _ : state) {
      kernel(operands);
      benchmark::ClobberMemory();
    }
  }
};

void mmt4d(benchmark::State& state, Mmt4dKernel kernel, const TileSizes& sizes, bool skip_rounding,
           uint64_t rows, uint64_t columns, uint64_t depth) {
  const Product product(sizes, rows / sizes.m0, columns / sizes.n0, depth, skip_rounding);
  product.run(state, kernel);
  const Mmt4d& o = product.operands;
  state.counters["speed"] = rate(static_cast<double>(o.m * o.m0) * static_cast<double>(o.n * o.n0) *
                                 static_cast<double>(o.k * o.k0));
}

// A right side larger than the caches, times one tile of rows. `speed` is its bytes, which are read once.
void matvec(benchmark::State& state, Mmt4dKernel kernel, const TileSizes& sizes, uint64_t element) {
  constexpr uint64_t kBytes = 1 << 26;
  constexpr uint64_t kDeep = 4096;
  const Product product(sizes, 1, kBytes / (kDeep * element * sizes.n0), kDeep, true);
  product.run(state, kernel);
  state.counters["speed"] = rate(kBytes);
}

void add_mmt4d() {
  for (const std::string_view name : instruction_sets()) {
    if (name == "scalar") continue;
    const Kernels& kernels = *find_kernels(name);
    for (size_t type = 0; type < kMmt4dTypeCount; ++type) {
      const std::string base = "mmt4d/" + std::string(name) + "/" + kTypeNames[type];
      const auto add = [&](const std::string& suffix, bool skip, uint64_t size, uint64_t depth) {
        const TileSizes& sizes = kernels.tiles[type];
        const Mmt4dKernel kernel = kernels.mmt4d_for(static_cast<Mmt4dType>(type), sizes.n0, sizes.k0);
        benchmark::RegisterBenchmark((base + suffix).c_str(), mmt4d, kernel, sizes, skip, size, size, depth);
      };
      // A workgroup of a typical compiled program, and a matrix larger than the second-level cache.
      add("", true, 64, 512);
      add("/large", true, 1024, 1024);
      if (static_cast<Mmt4dType>(type) == Mmt4dType::f16f16f16 ||
          static_cast<Mmt4dType>(type) == Mmt4dType::bf16bf16bf16)
        add("/rounded", false, 64, 512);
    }
  }
}

// The tiles of programs that do not query the tile sizes.
void add_mmt4d_8x4() {
  for (const std::string_view name : instruction_sets()) {
    const Kernels& kernels = *find_kernels(name);
    for (const auto& [type, element] :
         {std::pair(Mmt4dType::f32f32f32, uint64_t{4}), std::pair(Mmt4dType::s8s8s32, uint64_t{1})}) {
      const std::string rest = std::string(name) + "/" + kTypeNames[static_cast<size_t>(type)];
      for (const uint32_t m0 : {1, 2, 4, 8}) {
        const TileSizes sizes = {m0, 8, 4};
        const std::string tile = "/" + std::to_string(m0) + "x8x4";
        const Mmt4dKernel kernel = kernels.mmt4d_for(type, sizes.n0, sizes.k0);
        benchmark::RegisterBenchmark(("mmt4d/" + rest + tile).c_str(), mmt4d, kernel, sizes, true,
                                     m0 == 8 ? 64 : m0, 64, 512);
        benchmark::RegisterBenchmark(("matvec/" + rest + tile).c_str(), matvec, kernel, sizes, element);
        if (m0 == 8)
          benchmark::RegisterBenchmark(("mmt4d/" + rest + tile + "/rows").c_str(), mmt4d, kernel, sizes, true,
                                       32, 128, 512);
        if (m0 == 8)
          benchmark::RegisterBenchmark(("mmt4d/" + rest + tile + "/large").c_str(), mmt4d, kernel, sizes,
                                       true, 1024, 1024, 1024);
      }
    }
  }
}

// ---- Copies. Each copies a matrix of `size` bytes; `speed` is `size` divided by the time.

struct Mover {
  const char* name;
  void (*move)(const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size);
};

// A shape with about as many rows as columns.
Shape square(uint64_t elements) {
  uint64_t size1 = 16;
  while (size1 * size1 * 4 <= elements) size1 *= 2;
  return {elements / size1, size1};
}
Tiling tiling_of(const Shape& shape, uint64_t rows, uint64_t columns, bool transposed) {
  const uint64_t grid0 = shape.size0 / rows;
  const uint64_t grid1 = shape.size1 / columns;
  return {.o0 = transposed ? grid1 : grid0,
          .o1 = transposed ? grid0 : grid1,
          .t0 = transposed ? columns : rows,
          .t1 = transposed ? rows : columns,
          .tile_stride0 = (transposed ? grid0 : grid1) * rows * columns,
          .stride0 = shape.size1,
          .stride1 = 1,
          .size0 = shape.size0,
          .size1 = shape.size1,
          .outer_transposed = transposed,
          .inner_transposed = transposed};
}

constexpr Mover kMovers[] = {
    {"memcpy",
     [](const Kernels&, const uint8_t* from, uint8_t* to, uint64_t size) { std::memcpy(to, from, size); }},
    {"memset", [](const Kernels&, const uint8_t*, uint8_t* to, uint64_t size) { std::memset(to, 1, size); }},
    {"read",
     [](const Kernels&, const uint8_t* from, uint8_t*, uint64_t size) {
       benchmark::DoNotOptimize(std::memchr(from, 0xEE, size));  // there is none
     }},
    {"copy",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       const Shape shape = square(size / 4);
       kernels.copy[2]({from, shape.size1, 1}, {to, shape.size1, 1}, shape);
     }},
    {"fill",
     [](const Kernels& kernels, const uint8_t*, uint8_t* to, uint64_t size) {
       const Shape shape = square(size / 4);
       kernels.fill(0x01020304, {to, shape.size1, 1}, shape);
     }},
    {"pack_lhs_f32",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[2](from, to, tiling_of(square(size / 4), 16, 1, false), 0);
     }},
    {"pack_rhs_f32",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[2](from, to, tiling_of(square(size / 4), 1, 16, true), 0);
     }},
    {"pack_lhs_s8",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[0](from, to, tiling_of(square(size), 16, 4, false), 0);
     }},
    {"pack_rhs_s8",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[0](from, to, tiling_of(square(size), 4, 16, true), 0);
     }},
    {"unpack_f32",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.unpack[2](from, to, tiling_of(square(size / 4), 16, 16, false));
     }},
    {"pack_lhs_f32_8x4",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[2](from, to, tiling_of(square(size / 4), 8, 4, false), 0);
     }},
    {"pack_rhs_f32_8x4",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[2](from, to, tiling_of(square(size / 4), 4, 8, true), 0);
     }},
    {"pack_lhs_s8_8x4",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[0](from, to, tiling_of(square(size), 8, 4, false), 0);
     }},
    {"pack_rhs_s8_8x4",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.pack[0](from, to, tiling_of(square(size), 4, 8, true), 0);
     }},
    {"unpack_f32_8x8",
     [](const Kernels& kernels, const uint8_t* from, uint8_t* to, uint64_t size) {
       kernels.unpack[2](from, to, tiling_of(square(size / 4), 8, 8, false));
     }},
};

void move(benchmark::State& state, const Mover& mover, uint64_t size) {
  const Kernels& kernels = *find_kernels("best");
  const AlignedBytes from = allocate(size, 1);
  const AlignedBytes to = allocate(size, 2);
  for ([[maybe_unused]] auto _ : state) {
    mover.move(kernels, from.get(), to.get(), size);
    benchmark::ClobberMemory();
  }
  state.counters["speed"] = rate(static_cast<double>(size));
}

void add_movers() {
  for (const Mover& mover : kMovers)
    for (const uint64_t size :
         {uint64_t{1} << 12, uint64_t{1} << 15, uint64_t{1} << 18, uint64_t{1} << 20, uint64_t{1} << 26})
      benchmark::RegisterBenchmark((std::string("move/") + mover.name + "/" + std::to_string(size)).c_str(),
                                   move, mover, size);
}

}  // namespace

int main(int argc, char** argv) {
  add_mmt4d();
  add_mmt4d_8x4();
  add_movers();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
