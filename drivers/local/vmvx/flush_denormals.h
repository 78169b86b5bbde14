// While this object exists, the thread's floating-point arithmetic flushes denormal inputs and results to
// zero, rounds to nearest and does not trap. Specified by exec-vmvx.md, section 3.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace halyard::local::vmvx {

class FlushDenormals {
 public:
  FlushDenormals() : mode_(read()) { write(kMode); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
  ~FlushDenormals() { write(mode_); }

 private:
#if defined(__x86_64__)
  using Mode = uint32_t;
  static constexpr Mode kMode = 0x1F80 | 0x8040;  // all exceptions masked; FTZ, DAZ
  static Mode read() { return _mm_getcsr(); }
  static void write(Mode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
  using Mode = uint64_t;
  static constexpr Mode kMode = 0x01080000;  // FZ, FZ16
  static Mode read() {
    Mode mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(Mode mode) { asm volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
#else
  using Mode = int;
  static constexpr Mode kMode = 0;
  static Mode read() { return 0; }
  static void write(Mode) {}
#endif

  const Mode mode_;
};

}  // namespace halyard::local::vmvx
