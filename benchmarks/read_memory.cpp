// The time in which one thread and several read 500 MB that no cache holds: the least time of a call whose
// kernels read weights of this size once, such as the decoding of a token. With HALYARD_READ_FILE=FILE, a
// file is mapped and read instead, as vm-bench maps weights; otherwise new memory. Rows of several threads
// are to be compared with that of one.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

struct Memory {
  uint8_t* bytes = nullptr;
  size_t size = 0;
};

Memory memory_to_read() {
  Memory memory = {.size = 500'000'000};
  void* bytes = MAP_FAILED;
  if (const char* const path = std::getenv("HALYARD_READ_FILE")) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status = {};
    if (file < 0 || fstat(file, &status) != 0) return {};
    memory.size = static_cast<size_t>(status.st_size);
    bytes = mmap(nullptr, memory.size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    close(file);
  } else {
    bytes = mmap(nullptr, memory.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED) std::memset(bytes, 1, memory.size);
  }
  if (bytes == MAP_FAILED) return {};
  memory.bytes = static_cast<uint8_t*>(bytes);
  return memory;
}

// In several streams at once, because the processor fetches ahead in each of them.
constexpr size_t kStreams = 8;

uint64_t read_bytes(const uint8_t* bytes, size_t size) {
  typedef uint64_t Words __attribute__((vector_size(64)));
  const size_t stream = size / kStreams / sizeof(Words) * sizeof(Words);
  Words sums[kStreams] = {};
  for (size_t at = 0; at + 4 * sizeof(Words) <= stream; at += 4 * sizeof(Words)) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kStreams; ++i) {
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) {
        Words words;
        std::memcpy(&words, bytes + i * stream + at + j * sizeof words, sizeof words);
        sums[i] |= words;
      }
    }
  }
  uint64_t any = 0;
  for (const Words& sum : sums) any |= sum[0];
  return any;
}

void read_once(benchmark::State& state) {
  static const Memory memory = memory_to_read();
  if (!memory.bytes) {
    state.SkipWithError("there is no memory, or no such file");
    return;
  }
  const auto count = static_cast<size_t>(state.range(0));
  const size_t share = memory.size / count;
  bool has_ended = false;
  std::barrier<> turn(static_cast<ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i)
    threads.emplace_back([&, i] {
      for (turn.arrive_and_wait(); !has_ended; turn.arrive_and_wait()) {
        benchmark::DoNotOptimize(read_bytes(memory.bytes + i * share, share));
        turn.arrive_and_wait();
      }
    });
  for ([[maybe_unused]] auto _ : state) {
    turn.arrive_and_wait();
    benchmark::DoNotOptimize(read_bytes(memory.bytes, share));
    turn.arrive_and_wait();
  }
  has_ended = true;
  turn.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * share * count));
}

void threads_of_machine(benchmark::internal::Benchmark* row) {
  row->Arg(1);
  for (unsigned count = 2; count <= std::thread::hardware_concurrency(); count *= 2) row->Arg(count);
}
BENCHMARK(read_once)->Apply(threads_of_machine)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
