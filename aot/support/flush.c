/* The mode of floats while kernels run. */
#include "small_floats.c"

/*@@ hal_flush_begin hal_flush_end */
/* While a kernel runs, small numbers count as zero, as on other devices; on processors without a case here
 * they do not. */
#if defined(__SSE2__)
static inline uint32_t hal_flush_begin(void) {
  uint32_t before;
  __asm__ volatile("stmxcsr %0" : "=m"(before));
  const uint32_t flushes = before | 0x8040u;
  __asm__ volatile("ldmxcsr %0" : : "m"(flushes));
  return before;
}

static inline void hal_flush_end(uint32_t before) { __asm__ volatile("ldmxcsr %0" : : "m"(before)); }
#elif defined(__aarch64__)
static inline uint64_t hal_flush_begin(void) {
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"(before | 0x01080000u));
  return before;
}

static inline void hal_flush_end(uint64_t before) { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
#elif defined(__arm__) && defined(__ARM_FP)
static inline uint32_t hal_flush_begin(void) {
  uint32_t before;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(before));
  __asm__ volatile("vmsr fpscr, %0" : : "r"(before | 0x01000000u));
  return before;
}

static inline void hal_flush_end(uint32_t before) { __asm__ volatile("vmsr fpscr, %0" : : "r"(before)); }
#else
static inline uint32_t hal_flush_begin(void) { return 0; }

static inline void hal_flush_end(uint32_t before) { (void)before; }
#endif
