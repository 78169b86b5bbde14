// Heat: samples of an interpreted function, and its compiled versions. The interpreter takes a sample every
// Sampling::branches branches of a stack (vm/run/sampling.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace halyard::vm {

struct FunctionCode;

// When functions are compiled. Set when the compile queue is created.
struct Sampling {
  uint32_t branches = 512;  // between two samples
  uint32_t hot = 8000;      // samples of a function after which it is compiled,
  std::chrono::nanoseconds age = std::chrono::milliseconds(200);  // if its first sample is this old
  uint32_t late = 2000;  // samples of frames that are still interpreted then, after which loops are compiled
};

// One for each function of a module with a compile queue. Thread-safe.
struct Heat {
  std::atomic<uint32_t> samples = 0;
  std::atomic<std::chrono::steady_clock::rep> first_sample = 0;  // its time
  std::atomic<bool> asked_for = false;
  std::atomic<uint32_t> late_samples = 0;  // of frames still interpreted after the function was compiled
  // Null until compiled. New calls run `for_calls`. `for_loops` also has entries at the heads of outermost
  // loops, for frames that are already in a loop.
  std::atomic<const FunctionCode*> for_calls = nullptr;
  std::atomic<const FunctionCode*> for_loops = nullptr;
  std::atomic<uint32_t> moved = 0;  // number of frames that switched to machine code at the head of a loop
};

}  // namespace halyard::vm
