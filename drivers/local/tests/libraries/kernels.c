/* A library of device code for the tests of native executables. Macros select the variant:
 *   REVISION        5 or 6
 *   NAMES           0: functions have no names
 *   ATTRIBUTES      0: functions do not state their parameters
 *   IMPORTS         "symbol", "symbol": the imports
 *   CONSTANTS       number of constants of the executable
 *   SANITIZER       the number of a sanitizer
 *   FEATURES        bits
 *   CLAIMS          the revision that the header states
 *   BINDINGS        stated number of bindings of function 0
 *   INITIALIZER     1: has an initializer, which runs when the library is loaded
 *   OUTSIDE         1: uses the C library */
#include "abi.h"

#ifndef NAMES
#define NAMES 1
#endif
#ifndef ATTRIBUTES
#define ATTRIBUTES 1
#endif
#ifndef CONSTANTS
#define CONSTANTS 0
#endif
#ifndef SANITIZER
#define SANITIZER 0
#endif
#ifndef FEATURES
#define FEATURES 0
#endif
#ifndef CLAIMS
#define CLAIMS REVISION
#endif
#ifndef BINDINGS
#define BINDINGS 1
#endif
#ifndef INITIALIZER
#define INITIALIZER 0
#endif
#ifndef OUTSIDE
#define OUTSIDE 0
#endif

#if OUTSIDE
int abs(int);
#endif

static volatile u32 counter = 40; /* in a writable segment */
static volatile u32 zeros[3000];  /* more than a page that the file does not have */
#if INITIALIZER
__attribute__((constructor)) static void initialize(void) {
  counter += 2;
  zeros[2999] += 1;
}
#endif

/* 0: writes all its inputs, 32 words for each workgroup. Constant 0: words to skip. */
static int record(const struct environment* e, const struct dispatch* d, const struct workgroup* w) {
  const u64 number = ((u64)w->z * d->count_y + w->y) * d->count_x + w->x;
  u32* to = (u32*)d->bindings[0] + number * 32;
  if (d->constant_count > 0) to += d->constants[0];
  u32 n = 0;
  to[n++] = w->x;
  to[n++] = w->y;
  to[n++] = w->z;
  to[n++] = d->count_x;
  to[n++] = d->count_y;
  to[n++] = d->count_z;
  to[n++] = d->size_x * 100 + d->size_y * 10 + d->size_z;
  to[n++] = d->constant_count;
  to[n++] = d->binding_count;
  to[n++] = (u32)d->binding_sizes[0];
  to[n++] = w->local_memory_size;
  to[n++] = w->local_memory ? (u32)((u64)w->local_memory % 64) : 999;
  to[n++] = d->concurrency;
  to[n++] = w->reserved;
  to[n++] = e->thunk != 0;
  to[n++] = e->functions != 0 && e->functions[0] != 0;
  to[n++] = CONSTANTS ? e->constants[CONSTANTS - 1] : 0;
  to[n++] = (u32)e->processor[0];
  to[n++] = (u32)(e->processor[0] >> 32);
  to[n++] = e->processor[1] || e->processor[7];
  to[n++] = counter;
  to[n++] = zeros[2999];
  to[n++] = d->binding_count > 1 ? (u32)d->binding_sizes[d->binding_count - 1] : 0;
  to[n++] = (u32)((u64)e >> 4);
#if OUTSIDE
  to[n++] = (u32)abs(-(int)w->x - 5);
#endif
  return 0;
}

/* 1: fails with constant 0 in the workgroup whose x is constant 1. */
static int refuse(const struct environment* e, const struct dispatch* d, const struct workgroup* w) {
  (void)e;
  return w->x == d->constants[1] ? (int)d->constants[0] : 0;
}

/* 2: binding 1 = binding 0 * 0.5, elements of the workgroup's eight floats. */
static int halve(const struct environment* e, const struct dispatch* d, const struct workgroup* w) {
  (void)e;
  const float* from = d->bindings[0];
  float* to = d->bindings[1];
  for (u32 i = w->x * 8; i < w->x * 8 + 8 && i < d->binding_sizes[1] / sizeof(float); ++i)
    to[i] = from[i] * 0.5f;
#if defined(__x86_64__)
  __asm__ volatile("ldmxcsr %0" ::"m"((const u32){0x1F80})); /* changes the mode and does not restore it */
#endif
  return 0;
}

/* 3: fills its local memory with its own number, and counts in binding 0 the words that then differ. */
static int scratch(const struct environment* e, const struct dispatch* d, const struct workgroup* w) {
  (void)e;
  volatile u32* words = w->local_memory;
  const u32 count = w->local_memory_size / sizeof(u32);
  u32 wrong = count == 2048 ? 0 : 1;
  for (u32 turn = 0; turn < 20; ++turn) {
    for (u32 i = 0; i < count; ++i) words[i] = w->x * 1000 + turn;
    for (u32 i = 0; i < count; ++i) wrong += words[i] != w->x * 1000 + turn;
  }
  ((u32*)d->bindings[0])[w->x] = wrong + 7;
  return 0;
}

/* 4: stores the number of workgroups that ran before it in binding 0, and of those running now in word 0 of
 * binding 1. Sequential. */
static int in_turn(const struct environment* e, const struct dispatch* d, const struct workgroup* w) {
  (void)e;
  u32* order = d->bindings[0];
  u32* running = d->bindings[1];
  if (__atomic_add_fetch(&running[0], 1, __ATOMIC_SEQ_CST) != 1) running[1] = 1;
  for (volatile u32 i = 0; i < 200000; ++i) {
  }
  order[w->x] = running[2]++;
  __atomic_sub_fetch(&running[0], 1, __ATOMIC_SEQ_CST);
  return (int)(d->concurrency - 1);
}

/* 5: binding 0 through import 0. */
struct import_parameters {
  u32 result;
  u32* words;
  u32 count;
};
static int call(const struct environment* e, const struct dispatch* d, const struct workgroup* w) {
  (void)w;
  struct import_parameters p = {0, d->bindings[0], (u32)(d->binding_sizes[0] / sizeof(u32))};
  const int failure = e->thunk(e->functions[0], &p, e->contexts[0], 0);
  return failure ? failure : p.result == p.count ? 0 : 1000;
}

static entry_function* const functions[] = {record, refuse, halve, scratch, in_turn, call};
static const char* const names[] = {"record", "refuse", "halve", "scratch", "in_turn", "call"};
static const struct source_location locations[] = {
    {12, 6, "f.mlir and more"}, {13, 0, "f.mlir"}, {14, 4096, 0},
    {15, 4097, "f.mlir"},       {0, 1, "x"},       {0, 0, 0}};
static const struct attributes attributes[] = {
    {.local_memory_pages = 1, .binding_count = BINDINGS, .constant_count = 1},
    {.constant_count = 2},
    {.binding_count = 2},
    {.local_memory_pages = 2, .binding_count = 1},
    {.binding_count = 2,
#if REVISION != 5
     .flags = 1,
     .size_x = 4,
     .size_y = 2,
     .size_z = 1
#endif
    },
    {.binding_count = 1},
};
#ifdef IMPORTS
static const char* const imports[] = {IMPORTS};
#endif
static const struct header header = {CLAIMS, "kernels", FEATURES, SANITIZER};
static const struct library library = {
    .header = &header,
#ifdef IMPORTS
    .imports = {sizeof imports / sizeof imports[0], imports},
#endif
    .exports = {.count = sizeof functions / sizeof functions[0],
                .functions = functions,
                .attributes = ATTRIBUTES ? attributes : 0,
                .names = NAMES ? names : 0,
                .source_locations = NAMES ? locations : 0},
    .constants = {CONSTANTS},
};

PUBLIC const struct library* iree_hal_executable_library_query(u32 revision, const struct environment* e) {
  if (e->thunk || e->functions || (CONSTANTS != 0) != (e->constants != 0)) return 0;
  return revision == REVISION ? &library : 0;
}
