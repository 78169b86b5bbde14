// The highest rates of float operations and of memory that this machine reaches in simple loops, measured in
// some ten milliseconds. Rates of kernels are compared with them.
#pragma once

#include <cstdint>
#include <string>

namespace halyard::tools {

struct Peaks {
  double gflops =
      0;  // f32 multiplications and additions, not fused, as compiled code with exact math has them
  double read_gbs = 0;
  double copy_gbs = 0;  // read and written bytes together
};

struct MachinePeaks {
  unsigned threads = 1;
  Peaks one_thread;
  Peaks all_threads;  // the same if `threads` is 1
  unsigned vector_bits = 0;
  uint64_t block_bytes = 0;  // read and copied by all threads together
  uint64_t cache_bytes = 0;  // of the last level; 0: unknown

  // How they were measured, in one line.
  std::string method() const;
};

MachinePeaks measure_peaks(unsigned threads);

}  // namespace halyard::tools
