// Creates tensors from Python's values: numbers, nested lists and arrays.
#include <string.h>

#include "common.h"

// ---- Nested lists

enum { kMaxRank = 32 };

// The shape of the list, determined from its first elements.
static int literal_shape(PyObject* value, int64_t* shape, int* rank) {
  *rank = 0;
  PyObject* at = Py_NewRef(value);
  while (PyList_Check(at) || PyTuple_Check(at)) {
    const Py_ssize_t size = PySequence_Size(at);
    if (*rank == kMaxRank) {
      Py_DECREF(at);
      PyErr_SetString(PyExc_ValueError, "lists are nested more than 32 deep");
      return -1;
    }
    shape[(*rank)++] = size;
    if (size == 0) break;
    PyObject* inner = PySequence_GetItem(at, 0);
    Py_DECREF(at);
    at = inner;
    if (!at) return -1;
  }
  Py_DECREF(at);
  return 0;
}

// Appends the elements in order to `flat`. Every list must have the shape's size.
static int flatten(const view_request_t* request, PyObject* value, const int64_t* shape, int rank,
                   PyObject* flat) {
  const int is_list = PyList_Check(value) || PyTuple_Check(value);
  if (is_list != (rank > 0) || (is_list && PySequence_Size(value) != shape[0]))
    return refuse(request, PyUnicode_FromString("is a list with rows of different length or depth"));
  if (rank == 0) return PyList_Append(flat, value);
  for (int64_t i = 0; i < shape[0]; ++i) {
    PyObject* item = PySequence_GetItem(value, (Py_ssize_t)i);
    const int failed = !item || flatten(request, item, shape + 1, rank - 1, flat) < 0;
    Py_XDECREF(item);
    if (failed) return -1;
  }
  return 0;
}

// The element type for numbers without a declared type: numpy's choice, but floats are f32, like in models.
static uint32_t guess_element(PyObject* flat) {
  uint32_t type = HALYARD_ELEMENT_BOOL;
  for (Py_ssize_t i = 0; i < PyList_Size(flat); ++i) {
    PyObject* item = PyList_GetItem(flat, i);
    if (is_truth_value(item)) continue;
    int64_t whole;
    double number;
    if (PyFloat_Check(item) ||
        (!PyLong_Check(item) && integer_of(item, 64, INTEGER_SIGNED, &whole) == NUMBER_OF_OTHER_TYPE &&
         float_of(item, 64, &number) != NUMBER_OF_OTHER_TYPE))
      return HALYARD_ELEMENT_F32;
    type = HALYARD_ELEMENT_I64;
  }
  return PyList_Size(flat) == 0 ? HALYARD_ELEMENT_F32 : type;
}

// The nearest IEEE 754 binary16, ties to even.
static uint16_t half_of(double number) {
  PyObject* packed = NULL;
  PyObject* module = PyImport_ImportModule("struct");
  if (module) packed = PyObject_CallMethod(module, "pack", "sd", "<e", number);
  Py_XDECREF(module);
  uint16_t bits = 0;
  if (packed) memcpy(&bits, PyBytes_AsString(packed), 2);
  Py_XDECREF(packed);
  return bits;
}

static integer_sign sign_of(const view_request_t* request, uint32_t type) {
  const uint32_t class = type >> 24;
  if (class == 0x12) return INTEGER_UNSIGNED;
  return class == 0x11 || request->is_signed ? INTEGER_SIGNED : INTEGER_ANY_SIGN;
}

static int refuse_element(const view_request_t* request, const element_name_t* element, PyObject* item,
                          number_fault fault) {
  if (fault == NUMBER_OUT_OF_RANGE)
    return refuse(request,
                  PyUnicode_FromFormat("has the element %S, which does not fit %s", item, element->numpy));
  PyObject* place = place_of(request);
  if (place)
    PyErr_Format(PyExc_TypeError, "%U has the element %R of %R, which is not a number for %s", place, item,
                 Py_TYPE(item), element->numpy);
  Py_XDECREF(place);
  return -1;
}

static int store(const view_request_t* request, const element_name_t* element, PyObject* item, char* at) {
  if (element->dl_code == kDlFloat) {
    double number = 0;
    const number_fault fault = float_of(item, element->bits, &number);
    if (fault != NUMBER_FITS) return refuse_element(request, element, item, fault);
    if (element->bits == 64) memcpy(at, &number, 8);
    if (element->bits == 32) memcpy(at, &(float){(float)number}, 4);
    if (element->bits == 16) {
      const uint16_t half = half_of(number);
      if (PyErr_Occurred()) return -1;
      memcpy(at, &half, 2);
    }
    return 0;
  }
  int64_t number = 0;
  const int bits = element->dl_code == kDlBool ? 1 : element->bits;
  const number_fault fault = integer_of(item, bits, sign_of(request, element->type), &number);
  if (fault != NUMBER_FITS) return refuse_element(request, element, item, fault);
  memcpy(at, &number, element->bits / 8);  // little endian
  return 0;
}

int view_of_literal(const view_request_t* given, PyObject* value, halyard_object_t* out) {
  // Without a declared type, 2^63 must not become a negative number.
  view_request_t meant = *given;
  meant.is_signed |= !given->element_type;
  const view_request_t* request = &meant;
  int64_t shape[kMaxRank];
  int rank = 0;
  if (literal_shape(value, shape, &rank) < 0 || check_shape(request, shape, rank) < 0) return -1;
  PyObject* flat = PyList_New(0);
  char* bytes = NULL;
  int result = -1;
  if (flat && flatten(request, value, shape, rank, flat) == 0) {
    const uint32_t type = request->element_type ? request->element_type : guess_element(flat);
    const element_name_t* element = element_by_type(type);
    const Py_ssize_t count = PyList_Size(flat);
    if (!element || (element->dl_code != kDlInt && element->dl_code != kDlUInt &&
                     element->dl_code != kDlFloat && element->dl_code != kDlBool)) {
      refuse(request,
             PyUnicode_FromFormat(
                 "cannot be created from Python's numbers, because its elements are %s; pass an array",
                 element ? element->numpy : "of an unknown type"));
    } else if (!(bytes = PyMem_Malloc((size_t)count * 8 + 8))) {
      PyErr_NoMemory();
    } else {
      const Py_ssize_t size = element->bits / 8;
      result = 0;
      for (Py_ssize_t i = 0; result == 0 && i < count; ++i)
        result = store(request, element, PyList_GetItem(flat, i), bytes + i * size);
      if (result == 0)
        result = raise_status(request->state, halyard_view_create(request->device, type, shape, (size_t)rank,
                                                                  bytes, (size_t)(count * size), out));
    }
  }
  PyMem_Free(bytes);
  Py_XDECREF(flat);
  return result;
}

// ---- Anything

static int is_number(PyObject* value) {
  return PyFloat_Check(value) || PyLong_Check(value) || PyList_Check(value) || PyTuple_Check(value);
}

// Creates a view of a buffer with elements of this type. Takes ownership of the buffer.
static int view_of_elements(const view_request_t* request, const element_name_t* element, int unit,
                            Py_buffer* buffer, halyard_object_t* out) {
  int64_t shape[kMaxRank];
  if (buffer->ndim > kMaxRank) {
    refuse(request, PyUnicode_FromFormat("has %d dimensions; expected at most %d", buffer->ndim, kMaxRank));
    PyBuffer_Release(buffer);
    return -1;
  }
  for (int i = 0; i < buffer->ndim; ++i) shape[i] = (int64_t)buffer->shape[i];
  if (check_element(request, with_sign(element->type)) < 0 || check_shape(request, shape, buffer->ndim) < 0) {
    PyBuffer_Release(buffer);
    return -1;
  }
  // Signless if the function declares that, because the bits are the same.
  const uint32_t type = request->element_type ? request->element_type : element->type;
  return view_of_buffer(request, type, shape, buffer->ndim, unit, buffer, out);
}

// Refuses masked arrays, because their memory also contains the masked numbers.
static int check_plain(const view_request_t* request, PyObject* value) {
  module_state* state = request->state;
  if (PyObject_HasAttrString((PyObject*)Py_TYPE(value), "harden_mask")) {
    PyObject* place = place_of(request);
    if (place)
      PyErr_Format(PyExc_TypeError, "%U is a masked array, but tensors have no mask; pass x.filled(value)",
                   place);
    Py_XDECREF(place);
    return -1;
  }
  PyTypeObject* last = state->plain_array_type;
  state->plain_array_type = (PyTypeObject*)Py_NewRef((PyObject*)Py_TYPE(value));
  Py_XDECREF((PyObject*)last);
  return 0;
}

// For an array whose dtype has no format in the buffer protocol, but a known name: bfloat16.
static int view_of_named(const view_request_t* request, PyObject* value, halyard_object_t* out) {
  PyObject* dtype = PyObject_GetAttrString(value, "dtype");
  PyObject* name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  const element_name_t* element = text ? element_by_name(text) : NULL;
  PyErr_Clear();
  int result = -1;
  PyObject* plain = NULL;
  if (!element) {
    refuse(request, name ? PyUnicode_FromFormat("has elements of dtype %S, which tensors do not have", dtype)
                         : PyUnicode_FromFormat("is of %R, whose memory cannot be read", Py_TYPE(value)));
  } else if ((plain = PyObject_CallMethod(value, "view", "s", element->bits == 16 ? "uint16" : "uint8"))) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(plain, &buffer, PyBUF_RECORDS_RO) == 0)
      result = view_of_elements(request, element, 1, &buffer, out);
  }
  Py_XDECREF(plain);
  Py_XDECREF(name);
  Py_XDECREF(dtype);
  return result;
}

// Checks what the __array__ of the value returned. It may not be a value that has only __array__, because
// that may return another one, without end.
static int check_is_array(const view_request_t* request, PyObject* value, PyObject* returned) {
  if (PyObject_CheckBuffer(returned) || PyObject_HasAttrString(returned, "__dlpack__")) return 0;
  PyObject* place = place_of(request);
  if (place)
    PyErr_Format(
        PyExc_TypeError,
        "%U cannot be read: __array__ of %R must return an array (numpy, the buffer protocol or DLPack), "
        "not %R",
        place, Py_TYPE(value), Py_TYPE(returned));
  Py_XDECREF(place);
  return -1;
}

// A float that is also an array: numpy.float64 derives from float. Where no type is asked for, it keeps its
// own.
static int has_own_type(const view_request_t* request, PyObject* value) {
  return request->element_type == 0 && PyFloat_Check(value) && !PyFloat_CheckExact(value) &&
         PyObject_CheckBuffer(value);
}

int make_view(const view_request_t* request, PyObject* value, halyard_object_t* out) {
  if (Py_TYPE(value) == request->state->tensor_type) {
    const TensorObject* tensor = (TensorObject*)value;
    if (check_element(request, tensor->info.element_type) < 0 ||
        check_shape(request, tensor->info.shape, (int)tensor->info.rank) < 0)
      return -1;
    *out = tensor->handle;
    halyard_retain(*out);
    return 0;
  }
  if (is_number(value) && !has_own_type(request, value)) return view_of_literal(request, value, out);
  if (Py_TYPE(value) != request->state->plain_array_type && check_plain(request, value) < 0) return -1;
  if (PyObject_CheckBuffer(value)) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(value, &buffer, PyBUF_RECORDS_RO) < 0) {
      PyErr_Clear();  // elements without a format in the protocol: bfloat16 of ml_dtypes
      return view_of_named(request, value, out);
    }
    int unit = 1;
    const element_name_t* element = element_by_format(buffer.format, buffer.itemsize, &unit);
    if (!element) {
      refuse(request, PyUnicode_FromFormat("has elements of format '%s', which tensors do not have",
                                           buffer.format ? buffer.format : "B"));
      PyBuffer_Release(&buffer);
      return -1;
    }
    return view_of_elements(request, element, unit, &buffer, out);
  }
  if (PyObject_HasAttrString(value, "__dlpack__")) return view_of_dlpack(request, value, out);
  // numpy's scalars and similar values have a buffer and were handled above. Other values with __array__
  // provide an array.
  if (PyObject_HasAttrString(value, "__array__")) {
    PyObject* array = PyObject_CallMethod(value, "__array__", NULL);
    const int result =
        array && check_is_array(request, value, array) == 0 ? make_view(request, array, out) : -1;
    Py_XDECREF(array);
    return result;
  }
  PyObject* place = place_of(request);
  if (place)
    PyErr_Format(
        PyExc_TypeError,
        "%U must be an array (numpy, the buffer protocol or DLPack), a halyard.Tensor, a number or a list of "
        "numbers, not %R",
        place, Py_TYPE(value));
  Py_XDECREF(place);
  return -1;
}
