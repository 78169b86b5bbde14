// all_reduce through a whole call of a program beside the bare MPI call, on the ranks of one job, in turn in
// the same process: examples/collectives/all_reduce.vmasm on local-sync, and MPI_Allreduce. Started by
// benchmarks/collectives.py.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include "program.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 9;

// Microseconds of one call, of the slowest rank.
template <typename Call>
double time_of(int calls, Call call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  double micros = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
  MPI_Allreduce(MPI_IN_PLACE, &micros, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return micros;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  int rank = 0;
  int count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  {
    std::ifstream file(HALYARD_SOURCE_DIR "/examples/collectives/all_reduce.vmasm");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    Program program;
    program.load_text(text);
    program.open_device();
    program.link("sum");
    if (rank == 0) std::printf("[\n");
    for (size_t bytes = 4; bytes <= size_t{64} << 20; bytes *= 4) {
      const size_t elements = bytes / sizeof(float);
      std::vector<float> send(elements);
      for (size_t i = 0; i < elements; ++i) send[i] = static_cast<float>(i % 97) + static_cast<float>(rank);
      std::vector<float> receive(elements);
      const halyard_value_t argument = program.view(send, {static_cast<int64_t>(elements)});
      halyard_value_t result = {};
      const auto bare = [&] {
        MPI_Allreduce(send.data(), receive.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      };
      const auto whole = [&] {
        halyard_release(result.object);
        require(halyard_call_invoke(program.call, program.function, &argument, 1, &result, 1));
      };
      const int calls = bytes <= 16 << 10 ? 400 : bytes <= 1 << 20 ? 40 : 4;
      time_of(3, bare);
      time_of(3, whole);
      std::vector<double> bares;
      std::vector<double> wholes;
      for (int round = 0; round < kRounds; ++round) {
        bares.push_back(time_of(calls, bare));
        wholes.push_back(time_of(calls, whole));
      }
      std::vector<float> found(elements);
      require(halyard_view_read(result.object, 0, found.data(), bytes));
      if (count == 2 && found != receive) {
        std::fprintf(stderr, "rank %d: the results for %zu bytes differ\n", rank, bytes);
        return 1;
      }
      halyard_release(result.object);
      halyard_release(argument.object);
      if (rank == 0)
        std::printf("%s {\"bytes\": %zu, \"mpi_us\": %.2f, \"halyard_us\": %.2f}\n", bytes == 4 ? " " : ",",
                    bytes, median(bares), median(wholes));
    }
    if (rank == 0) std::printf("]\n");
    std::fflush(stdout);
    for (void* handle : {static_cast<void*>(program.call), static_cast<void*>(program.function),
                         static_cast<void*>(program.context), static_cast<void*>(program.module),
                         static_cast<void*>(program.device), static_cast<void*>(program.instance)})
      halyard_release(handle);
  }
  MPI_Finalize();
  return 0;
}
