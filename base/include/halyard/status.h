/* Halyard: status codes and the status handle. Plain C11, no dependencies.
 *
 * A null status means success. Any other status is a handle to an error. The error has a canonical code and a
 * message (what was expected, what was found, what to do), and may have notes and a cause. Callers append
 * notes while they pass the status on.
 *
 * This header declares the codes, the handle and the text type. It declares no functions on the handle,
 * because these differ by user: an embedder uses halyard/halyard.h, a driver uses halyard_host_services
 * (halyard/driver.h), a native module uses halyard/module.h.
 *
 * Ownership: the caller of a function that returns a halyard_status_t owns the status, and releases it or
 * passes it on. Threads: one thread at a time may use a status; any thread may retain or release it.
 *
 * Numbers: docs/spec/hal-types.md, "Status codes". They are part of the ecosystem and never change.
 */
#ifndef HALYARD_STATUS_H_
#define HALYARD_STATUS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ITEM(number, NAME): the one list of canonical codes. */
#define HALYARD_STATUS_CODES(ITEM) \
  ITEM(0, OK)                      \
  ITEM(1, CANCELLED)               \
  ITEM(2, UNKNOWN)                 \
  ITEM(3, INVALID_ARGUMENT)        \
  ITEM(4, DEADLINE_EXCEEDED)       \
  ITEM(5, NOT_FOUND)               \
  ITEM(6, ALREADY_EXISTS)          \
  ITEM(7, PERMISSION_DENIED)       \
  ITEM(8, RESOURCE_EXHAUSTED)      \
  ITEM(9, FAILED_PRECONDITION)     \
  ITEM(10, ABORTED)                \
  ITEM(11, OUT_OF_RANGE)           \
  ITEM(12, UNIMPLEMENTED)          \
  ITEM(13, INTERNAL)               \
  ITEM(14, UNAVAILABLE)            \
  ITEM(15, DATA_LOSS)              \
  ITEM(16, UNAUTHENTICATED)        \
  ITEM(17, DEFERRED)               \
  ITEM(18, INCOMPATIBLE)

/* A canonical code. Only the values above occur. The width is fixed because the type crosses libraries. */
typedef int32_t halyard_status_code_t;

enum {
#define HALYARD_STATUS_ENUM_(number, name) HALYARD_##name = number,
  HALYARD_STATUS_CODES(HALYARD_STATUS_ENUM_)
#undef HALYARD_STATUS_ENUM_
};

/* Text, not necessarily zero-terminated. */
typedef struct halyard_text {
  const char* data;
  size_t size;
} halyard_text_t;

/* Null means success. */
typedef struct halyard_status* halyard_status_t;

/* Returns "NOT_FOUND" for 5, and "UNKNOWN" for a number that is not a code. Never null; static storage. */
static inline const char* halyard_status_code_name(halyard_status_code_t code) {
  switch (code) {
#define HALYARD_STATUS_NAME_(number, name) \
  case number:                             \
    return #name;
    HALYARD_STATUS_CODES(HALYARD_STATUS_NAME_)
#undef HALYARD_STATUS_NAME_
    default:
      return "UNKNOWN";
  }
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_STATUS_H_ */
