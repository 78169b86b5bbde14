/* The loops of seven kernels as one writes them by hand: the yardstick of benchmarks/vm-cc.py. Built with -DKERNEL=name; with
 * -DMODEL as well, the program calls what vm-cc made of the module instead. Prints the seconds of a call, the least of several, and a
 * checksum. */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef MODEL
#include "model.h"
static model_state state;
#endif

#define depthwise_conv 1
#define gelu 2
#define matmul_128 3
#define relu_bias 4
#define requantize_i8 5
#define scan 6
#define softmax 7

#if KERNEL == depthwise_conv
typedef float element;
static float a[1][58][58][64], b[3][3][64], o[1][56][56][64];
static int fill(void) {
  for (size_t i = 0; i < 58 * 58 * 64; ++i) (&a[0][0][0][0])[i] = (float)(i % 17) * 0.25f - 2.0f;
  for (size_t i = 0; i < 3 * 3 * 64; ++i) (&b[0][0][0])[i] = (float)(i % 13) * 0.5f - 3.0f;
  return 0;
}
static void by_hand(void) {
  for (int y = 0; y < 56; ++y)
    for (int x = 0; x < 56; ++x) {
      float sums[64] = {0};
      for (int dy = 0; dy < 3; ++dy)
        for (int dx = 0; dx < 3; ++dx)
          for (int c = 0; c < 64; ++c) sums[c] += a[0][y + dy][x + dx][c] * b[dy][dx][c];
      memcpy(o[0][y][x], sums, sizeof sums);
    }
}
#define CALL model_depthwise_conv(&state, a, b, o)
#elif KERNEL == gelu
typedef float element;
static float a[1024][1024], o[1024][1024];
static int fill(void) {
  for (size_t i = 0; i < 1024 * 1024; ++i) (&a[0][0])[i] = (float)(i % 1001) * 0.008f - 4.0f;
  return 0;
}
static void by_hand(void) {
  for (size_t i = 0; i < 1024; ++i)
    for (size_t j = 0; j < 1024; ++j) {
      const float x = a[i][j];
      o[i][j] = 0.5f * x * (1.0f + tanhf(0.7978846f * (x + 0.044715f * x * x * x)));
    }
}
#define CALL model_gelu(&state, a, o)
#elif KERNEL == matmul_128
typedef float element;
static float a[128][128], b[128][128], o[128][128];
static int fill(void) {
  for (size_t i = 0; i < 128 * 128; ++i) (&a[0][0])[i] = (float)(i % 17) * 0.25f - 2.0f;
  for (size_t i = 0; i < 128 * 128; ++i) (&b[0][0])[i] = (float)(i % 13) * 0.5f - 3.0f;
  return 0;
}
/* In the order that suits a processor: rows of b are read one after the other. Each sum has the order of the kernel. */
static void by_hand(void) {
  for (int i = 0; i < 128; ++i) {
    float sums[128] = {0};
    for (int k = 0; k < 128; ++k)
      for (int j = 0; j < 128; ++j) sums[j] += a[i][k] * b[k][j];
    memcpy(o[i], sums, sizeof sums);
  }
}
#define CALL model_matmul_128(&state, a, b, o)
#elif KERNEL == relu_bias
typedef float element;
static float a[1024][1024], b[1024], o[1024][1024];
static int fill(void) {
  for (size_t i = 0; i < 1024 * 1024; ++i) (&a[0][0])[i] = (float)(i % 1001) * 0.008f - 4.0f;
  for (size_t i = 0; i < 1024; ++i) b[i] = (float)(i % 13) * 0.5f - 3.0f;
  return 0;
}
static void by_hand(void) {
  for (int i = 0; i < 1024; ++i)
    for (int j = 0; j < 1024; ++j) {
      const float sum = a[i][j] + b[j];
      o[i][j] = sum <= 0.0f ? 0.0f : sum;
    }
}
#define CALL model_relu_bias(&state, a, b, o)
#elif KERNEL == requantize_i8
typedef int8_t element;
static int32_t a[1024][256], b[256], c[256];
static int8_t o[1024][256];
static int fill(void) {
  for (int i = 0; i < 1024 * 256; ++i) (&a[0][0])[i] = i % 20011 - 10000;
  for (int i = 0; i < 256; ++i) b[i] = i * 3 - 200;
  for (int i = 0; i < 256; ++i) c[i] = (1 << 23) + i * 1001;
  return 0;
}
static void by_hand(void) {
  for (int i = 0; i < 1024; ++i)
    for (int j = 0; j < 256; ++j) {
      const int64_t scaled = ((int64_t)(int32_t)((uint32_t)a[i][j] + (uint32_t)b[j]) * c[j] + 0x40000000) >> 31;
      const int32_t shifted = (int32_t)scaled - 3;
      o[i][j] = (int8_t)(shifted < -128 ? -128 : shifted > 127 ? 127 : shifted);
    }
}
#define CALL model_requantize_i8(&state, a, b, c, o)
#elif KERNEL == scan
typedef float element;
static float a[64][1024], o[64][1024];
static int fill(void) {
  for (size_t i = 0; i < 64 * 1024; ++i) (&a[0][0])[i] = (float)(i % 17) * 0.25f - 2.0f;
  return 0;
}
static void by_hand(void) {
  for (int i = 0; i < 64; ++i) {
    float sum = a[i][0];
    o[i][0] = sum;
    for (int j = 1; j < 1024; ++j) o[i][j] = sum += a[i][j];
  }
}
#define CALL model_scan(&state, a, o)
#elif KERNEL == softmax
typedef float element;
static float a[64][1024], o[64][1024];
static int fill(void) {
  for (size_t i = 0; i < 64 * 1024; ++i) (&a[0][0])[i] = (float)(i % 1001) * 0.008f - 4.0f;
  return 0;
}
static void by_hand(void) {
  for (int i = 0; i < 64; ++i) {
    float most = a[i][0];
    for (int j = 1; j < 1024; ++j)
      if (a[i][j] > most) most = a[i][j];
    for (int j = 0; j < 1024; ++j) o[i][j] = expf(a[i][j] - most);
    float sum = 0;
    for (int j = 0; j < 1024; ++j) sum += o[i][j];
    for (int j = 0; j < 1024; ++j) o[i][j] /= sum;
  }
}
#define CALL model_softmax(&state, a, o)
#else
#error "KERNEL: the name of a kernel"
#endif

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int call(void) {
#ifdef MODEL
  return CALL;
#else
  by_hand();
  return 0;
#endif
}

/* usage: PROGRAM TURNS */
int main(int argc, char** argv) {
  const int turns = argc == 2 ? atoi(argv[1]) : 0;
  double least = 1e9;
  if (turns <= 0) return 2;
  if (fill() != 0) return 2;
#ifdef MODEL
  static uint64_t arena[MODEL_ARENA_BYTES / 8 + 1];
  if (model_init(&state, arena, sizeof arena) != 0) return 3;
#endif
  for (int i = 0; i < turns; ++i) {
    const double begin = seconds();
    if (call() != 0) return 4;
    const double taken = seconds() - begin;
    if (taken < least) least = taken;
  }
  double sum = 0;
  const element* const all = (const element*)(const void*)&o;
  for (size_t i = 0; i < sizeof o / sizeof(element); ++i) sum += (double)all[i] * (double)(i % 7 + 1);
  printf("%.9g %.9g\n", least, sum);
  return 0;
}
