// Checks whether data fits the tensor that a function expects, and raises errors that say why not.
#include "common.h"

PyObject* place_of(const view_request_t* request) {
  if (!request->function_name && request->argument_name) return Py_NewRef(request->argument_name);
  if (!request->function_name) return PyUnicode_FromString("the tensor");
  return PyUnicode_FromFormat("%U(): argument '%U'", request->function_name, request->argument_name);
}

int refuse(const view_request_t* request, PyObject* text) {
  PyObject* place = text ? place_of(request) : NULL;
  PyObject* whole = place ? PyUnicode_FromFormat("%U %U", place, text) : NULL;
  const char* utf8 = whole ? PyUnicode_AsUTF8AndSize(whole, NULL) : NULL;
  if (utf8) raise_status(request->state, halyard_status_create(HALYARD_INVALID_ARGUMENT, utf8));
  Py_XDECREF(whole);
  Py_XDECREF(place);
  Py_XDECREF(text);
  return -1;
}

PyObject* shape_tuple(const int64_t* shape, size_t rank) {
  PyObject* tuple = PyTuple_New((Py_ssize_t)rank);
  for (size_t i = 0; tuple && i < rank; ++i) {
    PyObject* size = PyLong_FromLongLong(shape[i]);
    if (size) {
      PyTuple_SetItem(tuple, (Py_ssize_t)i, size);
    } else {
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

int check_shape(const view_request_t* request, const int64_t* shape, int rank) {
  int fits = request->rank < 0 || request->rank == rank;
  for (int i = 0; fits && request->rank >= 0 && i < rank; ++i)
    fits = request->shape[i] < 0 || request->shape[i] == shape[i];
  if (fits) return 0;
  int has_any = 0;
  for (int i = 0; i < request->rank; ++i) has_any |= request->shape[i] < 0;
  PyObject* found = shape_tuple(shape, (size_t)rank);
  PyObject* expected = shape_tuple(request->shape, (size_t)request->rank);
  PyObject* text = found && expected ? PyUnicode_FromFormat("has shape %R, expected %R%s", found, expected,
                                                            has_any ? " (-1: any size)" : "")
                                     : NULL;
  Py_XDECREF(found);
  Py_XDECREF(expected);
  return refuse(request, text);
}

int check_element(const view_request_t* request, uint32_t found) {
  const uint32_t expected = request->is_signed ? with_sign(request->element_type) : request->element_type;
  if (!expected || same_element(expected, found)) return 0;
  const element_name_t *is = element_by_type(found), *wanted = element_by_type(expected);
  if (!is || !wanted)
    return refuse(request,
                  PyUnicode_FromFormat("has elements of type %s, expected %s", is ? is->numpy : "unknown",
                                       wanted ? wanted->numpy : "another"));
  if (same_integers(expected, found))
    return refuse(
        request,
        PyUnicode_FromFormat("has elements of type %s, expected %s; convert it with .astype(\"%s\"), or take "
                             "the same bits with .view(\"%s\")",
                             is->numpy, wanted->numpy, wanted->numpy, wanted->numpy));
  const int drops_parts = is->dl_code == kDlComplex && wanted->dl_code != kDlComplex;  // complex to real
  return refuse(request,
                PyUnicode_FromFormat(
                    drops_parts ? "has elements of type %s, expected %s; take .real or .imag of them"
                                : "has elements of type %s, expected %s; convert it with .astype(\"%s\")",
                    is->numpy, wanted->numpy, wanted->numpy));
}
