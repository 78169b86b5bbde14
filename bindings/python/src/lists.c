// Lists of programs (vm.list) made of Python's, and what Python gives where a program expects an object.
#include "common.h"

int object_of_value(module_state* state, halyard_device_t device, PyObject* item, halyard_object_t* out) {
  *out = NULL;
  if (item == Py_None) return 0;
  if (Py_TYPE(item) == state->object_type) {
    *out = ((ObjectObject*)item)->handle;
    halyard_retain(*out);
    return 0;
  }
  if (PyList_Check(item) || PyTuple_Check(item)) return list_of_values(state, device, item, out);
  const view_request_t request = {.state = state, .device = device, .rank = -1};
  return make_view(&request, item, out);
}

// An element: numbers stay numbers.
static int element_of_value(module_state* state, halyard_device_t device, PyObject* item,
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
  if (object_of_value(state, device, item, &out->object) < 0) return -1;
  if (out->object) out->kind = HALYARD_VALUE_OBJECT;
  return 0;
}

int append_to_list(module_state* state, halyard_object_t list, halyard_value_t* element) {
  const int result = raise_status(state, halyard_list_append(list, element));
  if (element->kind == HALYARD_VALUE_OBJECT) halyard_release(element->object);
  return result;
}

int list_of_values(module_state* state, halyard_device_t device, PyObject* values, halyard_object_t* out) {
  if (raise_status(state, halyard_list_create(HALYARD_VALUE_NULL, out)) < 0) return -1;
  // Lists that contain themselves have no end.
  int failed = Py_EnterRecursiveCall(" while a list was converted");
  const int has_entered = !failed;
  for (Py_ssize_t i = 0; !failed && i < PySequence_Size(values); ++i) {
    PyObject* item = PySequence_GetItem(values, i);
    halyard_value_t element;
    failed = !item || element_of_value(state, device, item, &element) < 0 ||
             append_to_list(state, *out, &element) < 0;
    Py_XDECREF(item);
  }
  if (has_entered) Py_LeaveRecursiveCall();
  if (!failed) return 0;
  halyard_release(*out);
  *out = NULL;
  return -1;
}
