// The processor, for native executables: the data words passed to every call, the levels that a file may
// require, and the floating-point mode of kernels.
#pragma once

#include <array>
#include <cstdint>

#include "status.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace halyard::local {

// INCOMPATIBLE: this processor lacks a level that is required (needed_processor_levels()) and named.
Result<> check_processor_levels(uint32_t levels);

// While this object exists, the thread's arithmetic flushes denormal numbers to zero, rounds to nearest and
// does not trap; the destructor restores the previous mode. Specified by exec-vmvx.md, section 3.
class KernelFloatMode {
 public:
#if defined(__x86_64__)
  KernelFloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kMode); }
  ~KernelFloatMode() { _mm_setcsr(before_); }

 private:
  static constexpr uint32_t kMode = 0x1F80 | 0x8040;  // all exceptions masked; FTZ and DAZ
  const uint32_t before_;
#elif defined(__aarch64__)
  KernelFloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(kMode));
  }
  ~KernelFloatMode() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  static constexpr uint64_t kMode = 0x01080000;  // FZ and FZ16
  uint64_t before_ = 0;
#else
  KernelFloatMode() {}  // this architecture has no such mode
#endif

 public:
  KernelFloatMode(const KernelFloatMode&) = delete;
  KernelFloatMode& operator=(const KernelFloatMode&) = delete;
};

}  // namespace halyard::local
