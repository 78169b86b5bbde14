// A whole warm call of a compiled matrix product on the local devices, through the C ABI, compared with
// OpenBLAS on one thread. Benchmarks of single kernels are in drivers/local/benchmarks; cpu.py combines both
// in one table.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#if defined(HALYARD_HAVE_OPENBLAS)
#include <cblas.h>
#endif

#include "program.h"

namespace {

constexpr int kSize = 512;

benchmark::Counter speed() {
  return {static_cast<double>(kSize) * kSize * kSize, benchmark::Counter::kIsIterationInvariantRate};
}

std::vector<float> matrix(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> elements(size_t{kSize} * kSize);
  for (float& element : elements) element = static_cast<float>(static_cast<int>(random() % 201) - 100) / 64;
  return elements;
}

void matmul_512(benchmark::State& state, const char* device) {
  Program program;
  if (!program.load(state, bench_modules() + "matmul_512.vmvx-uk-dt.vmfb", "mm", device)) return;
  const std::vector<float> lhs = matrix(1);
  const std::vector<float> rhs = matrix(2);
  const halyard_value_t result =
      program.repeat(state, {program.view(lhs, {kSize, kSize}), program.view(rhs, {kSize, kSize})});
  std::vector<float> product(lhs.size());
  require(halyard_view_read(result.object, 0, product.data(), product.size() * sizeof(float)));
  for (const int row : {0, 17, kSize - 1})
    for (const int column : {0, 100, kSize - 1}) {
      double sum = 0;
      for (int k = 0; k < kSize; ++k) sum += double{lhs[row * kSize + k]} * rhs[k * kSize + column];
      if (std::abs(sum - product[row * kSize + column]) > 1e-2) state.SkipWithError("the product is wrong");
    }
  state.counters["speed"] = speed();
}
BENCHMARK_CAPTURE(matmul_512, local_sync, "local-sync")->UseRealTime();
BENCHMARK_CAPTURE(matmul_512, local_task_1, "local-task?workers=1")->UseRealTime();
BENCHMARK_CAPTURE(matmul_512, local_task_2, "local-task?workers=2")->UseRealTime();
BENCHMARK_CAPTURE(matmul_512, local_sync_baseline, "local-sync?isa=baseline")->UseRealTime();

#if defined(HALYARD_HAVE_OPENBLAS)
void openblas(benchmark::State& state) {
  openblas_set_num_threads(1);
  const std::vector<float> lhs = matrix(1);
  const std::vector<float> rhs = matrix(2);
  std::vector<float> product(lhs.size());
  for ([[maybe_unused]] auto _ : state) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSize, kSize, kSize, 1, lhs.data(), kSize,
                rhs.data(), kSize, 0, product.data(), kSize);
    benchmark::ClobberMemory();
  }
  state.counters["speed"] = speed();
  state.SetLabel(openblas_get_corename());
}
BENCHMARK(openblas)->Name("matmul_512/openblas")->UseRealTime();
#endif

}  // namespace

BENCHMARK_MAIN();
