/* The mode of floats in microkernels and in kernels of object files. */
#include "small_floats.c"

/*@@ hal_flush_begin hal_flush_end */
/* Between the two, denormal numbers count as zero, as on other devices; on processors without a case here
 * they do not. No access to memory moves across them. */
#if defined(__SSE2__)
static inline uint32_t hal_flush_begin(void) {
  uint32_t before;
  __asm__ volatile("stmxcsr %0" : "=m"(before));
  const uint32_t flushes = before | 0x8040u;
  __asm__ volatile("ldmxcsr %0" : : "m"(flushes) : "memory");
  return before;
}

static inline void hal_flush_end(uint32_t before) {
  __asm__ volatile("ldmxcsr %0" : : "m"(before) : "memory");
}
#elif defined(__aarch64__)
static inline uint64_t hal_flush_begin(void) {
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"(before | 0x01080000u) : "memory");
  return before;
}

static inline void hal_flush_end(uint64_t before) {
  __asm__ volatile("msr fpcr, %0" : : "r"(before) : "memory");
}
#elif defined(__arm__) && defined(__ARM_FP)
static inline uint32_t hal_flush_begin(void) {
  uint32_t before;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(before));
  __asm__ volatile("vmsr fpscr, %0" : : "r"(before | 0x01000000u) : "memory");
  return before;
}

static inline void hal_flush_end(uint32_t before) {
  __asm__ volatile("vmsr fpscr, %0" : : "r"(before) : "memory");
}
#else
static inline uint32_t hal_flush_begin(void) { return 0; }

static inline void hal_flush_end(uint32_t before) { (void)before; }
#endif
