// Raises warnings of programs as Python's. They arrive on the thread that runs the program, without the
// interpreter's lock. So they are kept until the call that caused them returns to Python.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

typedef struct kept_warning kept_warning;
struct kept_warning {
  kept_warning* next;
  size_t text_size, path_size;
  char bytes[];  // the text, then the path
};

struct warning_list {
  _Atomic(kept_warning*) newest;
};

warning_list* make_warning_list(void) { return calloc(1, sizeof(warning_list)); }

static void free_warnings(kept_warning* warning) {
  while (warning) {
    kept_warning* next = warning->next;
    free(warning);
    warning = next;
  }
}

void free_warning_list(warning_list* list) {
  if (list) free_warnings(atomic_load(&list->newest));
  free(list);
}

void keep_warning(void* user, const halyard_warning_t* warning) {
  warning_list* list = user;
  const size_t text_size = warning->text.size, path_size = warning->path.size;
  kept_warning* kept = malloc(sizeof *kept + text_size + path_size);
  if (!kept) return;
  kept->text_size = text_size;
  kept->path_size = path_size;
  memcpy(kept->bytes, warning->text.data, text_size);
  memcpy(kept->bytes + text_size, warning->path.data, path_size);
  kept->next = atomic_load(&list->newest);
  while (!atomic_compare_exchange_weak(&list->newest, &kept->next, kept)) {
  }
}

// A warning about an array that was passed from Python is raised as an error: it means that the array's type
// or shape is not the one that the program expects.
static int is_of_array(const ContextObject* context, const kept_warning* warning) {
  if (!context->arrays) return 0;
  PyObject* path =
      PyUnicode_DecodeFSDefaultAndSize(warning->bytes + warning->text_size, (Py_ssize_t)warning->path_size);
  const int found = path ? PySequence_Contains(context->arrays, path) : -1;
  Py_XDECREF(path);
  return found;
}

static int raise_warning(module_state* state, const ContextObject* context, const kept_warning* warning,
                         int stack_level) {
  PyObject* text = PyUnicode_DecodeUTF8(warning->bytes, (Py_ssize_t)warning->text_size, "replace");
  const char* utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  const int is_error = utf8 ? is_of_array(context, warning) : -1;
  int result = -1;
  if (is_error > 0) {
    result = raise_status(state, halyard_status_create(HALYARD_INVALID_ARGUMENT, utf8));
  } else if (is_error == 0) {
    result = PyErr_WarnEx(PyExc_RuntimeWarning, utf8, stack_level);
  }
  Py_XDECREF(text);
  return result;
}

int raise_warnings(module_state* state, ContextObject* context, int stack_level) {
  if (!atomic_load_explicit(&context->warnings->newest, memory_order_relaxed)) return 0;
  kept_warning* newest = atomic_exchange(&context->warnings->newest, NULL);
  kept_warning* oldest = NULL;
  while (newest) {
    kept_warning* next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  int result = 0;
  for (const kept_warning* each = oldest; each && result == 0; each = each->next)
    result = raise_warning(state, context, each, stack_level);
  free_warnings(oldest);
  return result;
}
