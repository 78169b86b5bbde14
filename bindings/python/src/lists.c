// Creates lists of programs (vm.list) from Python's, and objects from Python's values.
#include <stdio.h>

#include "common.h"

int enter_list(module_state* state, nesting_t* nesting, size_t size) {
  char message[160];
  if (nesting->depth >= HALYARD_LIST_MAX_DEPTH) {
    snprintf(message, sizeof message,
             "expected lists nested at most %d deep, found more levels, or a list that contains itself",
             HALYARD_LIST_MAX_DEPTH);
  } else if (size > (size_t)(HALYARD_LIST_MAX_ELEMENTS - nesting->visited)) {
    snprintf(message, sizeof message,
             "a list and the lists within it have more than %d elements; a list that is reached on several "
             "paths counts once for each",
             HALYARD_LIST_MAX_ELEMENTS);
  } else {
    ++nesting->depth;
    nesting->visited += (Py_ssize_t)size;
    return 0;
  }
  return raise_status(state, halyard_status_create(HALYARD_RESOURCE_EXHAUSTED, message));
}

void leave_list(nesting_t* nesting) { --nesting->depth; }

static int list_of_values(module_state* state, halyard_device_t device, nesting_t* nesting, PyObject* values,
                          halyard_object_t* out);

static int convert_object(module_state* state, halyard_device_t device, nesting_t* nesting, PyObject* item,
                          halyard_object_t* out) {
  *out = NULL;
  if (item == Py_None) return 0;
  if (Py_TYPE(item) == state->object_type) {
    *out = ((ObjectObject*)item)->handle;
    halyard_retain(*out);
    return 0;
  }
  if (PyList_Check(item) || PyTuple_Check(item)) return list_of_values(state, device, nesting, item, out);
  const view_request_t request = {.state = state, .device = device, .rank = -1};
  return make_view(&request, item, out);
}

int object_of_value(module_state* state, halyard_device_t device, PyObject* item, halyard_object_t* out) {
  nesting_t nesting = {0};
  return convert_object(state, device, &nesting, item, out);
}

// An element of a list: numbers stay numbers.
static int element_of_value(module_state* state, halyard_device_t device, nesting_t* nesting, PyObject* item,
                            halyard_value_t* out) {
  *out = (halyard_value_t){.kind = HALYARD_VALUE_NULL};
  if (PyLong_Check(item)) {
    out->kind = HALYARD_VALUE_I64;
    out->i64 = PyLong_AsLongLong(item);
    return PyErr_Occurred() ? -1 : 0;
  }
  if (PyFloat_Check(item)) {
    out->kind = HALYARD_VALUE_F64;
    out->f64 = PyFloat_AsDouble(item);
    return 0;
  }
  if (convert_object(state, device, nesting, item, &out->object) < 0) return -1;
  if (out->object) out->kind = HALYARD_VALUE_OBJECT;
  return 0;
}

int append_to_list(module_state* state, halyard_object_t list, halyard_value_t* element) {
  const int result = raise_status(state, halyard_list_append(list, element));
  if (element->kind == HALYARD_VALUE_OBJECT) halyard_release(element->object);
  return result;
}

// A new vm.list of any values: ints are i64, floats f64.
static int list_of_values(module_state* state, halyard_device_t device, nesting_t* nesting, PyObject* values,
                          halyard_object_t* out) {
  const Py_ssize_t size = PySequence_Size(values);
  if (size < 0 || enter_list(state, nesting, (size_t)size) < 0) return -1;
  int failed = raise_status(state, halyard_list_create(HALYARD_VALUE_NULL, out)) < 0;
  for (Py_ssize_t i = 0; !failed && i < size; ++i) {
    PyObject* item = PySequence_GetItem(values, i);
    halyard_value_t element;
    failed = !item || element_of_value(state, device, nesting, item, &element) < 0 ||
             append_to_list(state, *out, &element) < 0;
    Py_XDECREF(item);
  }
  leave_list(nesting);
  if (!failed) return 0;
  halyard_release(*out);
  *out = NULL;
  return -1;
}
