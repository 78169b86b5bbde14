#define _GNU_SOURCE  // clock_gettime
// The time limit of one call: `timeout=`, in seconds.
#include <math.h>
#include <time.h>

#include "common.h"

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int take_timeout(FunctionObject* function, PyObject* given, PyObject** keywords, int64_t* deadline) {
  *deadline = INT64_MAX;
  *keywords = given;
  Py_XINCREF(given);
  if (!given || function->has_timeout || PyDict_Size(given) == 0) return 0;
  PyObject* timeout = PyDict_GetItemString(given, "timeout");
  if (!timeout) return 0;
  if (timeout != Py_None) {
    const double seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "%U(): timeout must be a number of seconds or None, not %R",
                   function->name, Py_TYPE(timeout));
      goto failed;
    }
    if (isnan(seconds) || seconds < 0) {
      PyErr_Format(PyExc_ValueError, "%U(): timeout must be 0 or more seconds, not %R", function->name,
                   timeout);
      goto failed;
    }
    const int64_t start = now();
    // A time that the clock cannot represent means no limit.
    if (seconds * 1e9 < (double)(INT64_MAX - start) * 0.999) *deadline = start + (int64_t)(seconds * 1e9);
  }
  // The rest is a copy, because the caller's dict may be in use elsewhere.
  Py_DECREF(given);
  *keywords = PyDict_Copy(given);
  if (*keywords && PyDict_DelItemString(*keywords, "timeout") == 0) return 0;
failed:
  Py_CLEAR(*keywords);
  return -1;
}

uint32_t milliseconds_until(int64_t deadline) {
  if (deadline == INT64_MAX) return UINT32_MAX;
  const int64_t left = deadline - now();
  if (left <= 0) return 0;
  const int64_t milliseconds = (left + 999999) / 1000000;
  return milliseconds < UINT32_MAX ? (uint32_t)milliseconds : UINT32_MAX - 1;
}

int raise_deadline(module_state* state, const char* cause) {
  char text[160];
  PyOS_snprintf(text, sizeof text, "the time limit of the call passed while it waited for %s", cause);
  return raise_status(state, halyard_status_create(HALYARD_DEADLINE_EXCEEDED, text));
}
