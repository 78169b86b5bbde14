/* For tests in C: conditions, expected successes and expected failures. `failures` counts those that are not
 * met. */
#ifndef HALYARD_C_TESTS_CHECK_H_
#define HALYARD_C_TESTS_CHECK_H_

#include <stdio.h>
#include <string.h>

#include "halyard/halyard.h"

static int failures = 0;

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

/* Expects success; otherwise the error is printed and counted. */
static inline int ok_at(const char* file, int line, halyard_status_t status) {
  if (!status) return 1;
  char* text = halyard_status_text(status);
  fprintf(stderr, "%s:%d: %s\n", file, line, text);
  halyard_free(text);
  halyard_status_release(status);
  ++failures;
  return 0;
}
#define OK(call) ok_at(__FILE__, __LINE__, call)

/* Expects a failure with this code, whose message contains `part`. */
static inline void fails_at(const char* file, int line, halyard_status_t status, halyard_status_code_t code,
                            const char* part) {
  char* text = halyard_status_text(status);
  if (halyard_status_code(status) != code || !strstr(text, part)) {
    fprintf(stderr, "%s:%d: expected %s with '%s', found: %s\n", file, line, halyard_status_code_name(code),
            part, text);
    ++failures;
  }
  halyard_free(text);
  halyard_status_release(status);
}
#define FAILS(call, code, part) fails_at(__FILE__, __LINE__, call, code, part)

/* Releases these handles in this order; a handle may be NULL. */
#define RELEASE(...) release_all((void*[]){__VA_ARGS__}, sizeof((void*[]){__VA_ARGS__}) / sizeof(void*))
static inline void release_all(void* const* handles, size_t count) {
  for (size_t i = 0; i < count; ++i) halyard_release(handles[i]);
}

#endif /* HALYARD_C_TESTS_CHECK_H_ */
