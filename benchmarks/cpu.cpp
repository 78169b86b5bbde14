// A whole warm call of a compiled matrix product on the local devices, through the C ABI, beside OpenBLAS on
// one thread. Kernels alone are in drivers/local/benchmarks; cpu.py puts both into one table.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
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

std::string bench_modules() {
  const char* given = std::getenv("HALYARD_FIXTURES");
  return (given ? std::string(given) : std::string(HALYARD_SOURCE_DIR "/../shared/fixtures")) +
         "/../bench/modules/";
}

halyard_value_t view(const Program& program, const std::vector<float>& elements) {
  constexpr uint32_t kF32 = 0x21000020;
  constexpr int64_t kShape[] = {kSize, kSize};
  halyard_value_t value = {};
  value.kind = HALYARD_VALUE_OBJECT;
  require(halyard_view_create(program.device, kF32, kShape, 2, elements.data(),
                              elements.size() * sizeof(float), &value.object));
  return value;
}

void matmul_512(benchmark::State& state, const char* device) {
  const std::string path = bench_modules() + "matmul_512.vmvx-uk-dt.vmfb";
  if (!std::filesystem::exists(path)) {
    state.SkipWithError("the module is not here");
    return;
  }
  Program program;
  require(halyard_module_load_file(program.instance, path.c_str(), 0, &program.module));
  program.open_device(device);
  program.link("mm");
  const std::vector<float> lhs = matrix(1);
  const std::vector<float> rhs = matrix(2);
  const halyard_value_t arguments[2] = {view(program, lhs), view(program, rhs)};
  halyard_value_t result = {};
  for ([[maybe_unused]] auto _ : state) {
    halyard_release(result.object);
    require(halyard_call_invoke(program.call, program.function, arguments, 2, &result, 1));
  }
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
