// Results in arrays of the caller: `out=`.
#include "common.h"

int take_out(FunctionObject* function, PyObject** keywords, PyObject** out) {
  *out = NULL;
  if (!*keywords || function->has_out || PyDict_Size(*keywords) == 0) return 0;
  PyObject* given = PyDict_GetItemString(*keywords, "out");
  if (!given) return 0;
  Py_INCREF(given);
  PyObject* rest = PyDict_Copy(*keywords);  // the caller's dict may be in use elsewhere
  if (!rest || PyDict_DelItemString(rest, "out") < 0) {
    Py_XDECREF(rest);
    Py_DECREF(given);
    return -1;
  }
  Py_DECREF(*keywords);
  *keywords = rest;
  *out = given;
  if (given == Py_None) Py_CLEAR(*out);
  return 0;
}

// Copies one result. Returns a new reference to the array, or to the result if there is no array.
static PyObject* write_one(FunctionObject* function, PyObject* result, PyObject* target, PyObject* name) {
  module_state* state = state_of((PyObject*)function);
  if (target == Py_None) return Py_NewRef(result);
  if (Py_TYPE(result) != state->tensor_type)
    return PyErr_Format(PyExc_TypeError,
                        "%U(): out has an array for a result that is no tensor, but %R; give None",
                        function->name, Py_TYPE(result));
  const view_request_t request = {.function_name = function->name, .argument_name = name};
  return copy_tensor((TensorObject*)result, &request, target) < 0 ? NULL : Py_NewRef(target);
}

PyObject* write_out(FunctionObject* function, PyObject* result, PyObject* out) {
  if (!result || !out) return result;
  const Py_ssize_t count = function->result_count;
  const int is_sequence = PyTuple_Check(out) || PyList_Check(out);
  PyObject* written = NULL;
  PyObject* name = PyUnicode_FromString("out");
  if (!name) {
  } else if (count == 1 && !is_sequence) {
    written = write_one(function, result, out, name);
  } else if (!is_sequence || PySequence_Size(out) != count) {
    PyErr_Format(PyExc_TypeError, "%U(): out must be %s, for %zd result%s", function->name,
                 count == 1 ? "an array" : "a tuple of arrays or None", count, count == 1 ? "" : "s");
  } else {
    written = PyTuple_New(count);
    for (Py_ssize_t i = 0; written && i < count; ++i) {
      PyObject* target = PySequence_GetItem(out, i);
      PyObject* one = count == 1 ? result : PyTuple_GetItem(result, i);
      PyObject* item = target && one ? write_one(function, one, target, name) : NULL;
      Py_XDECREF(target);
      if (!item) Py_CLEAR(written);
      if (item) PyTuple_SetItem(written, i, item);
    }
    if (written && count == 1) {
      PyObject* only = Py_NewRef(PyTuple_GetItem(written, 0));
      Py_DECREF(written);
      written = only;
    }
  }
  Py_XDECREF(name);
  Py_DECREF(result);
  return written;
}
