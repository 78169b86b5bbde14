// Tensor: a buffer view of a program, as a Python object.
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "halyard/memory.h"

enum { kMaxRank = 128 };  // of a view

// ---- Creation

PyObject* wrap_tensor(module_state* state, halyard_object_t view) {
  TensorObject* self = PyObject_New(TensorObject, state->tensor_type);
  if (!self) {
    halyard_release(view);
    return NULL;
  }
  self->handle = view;
  self->mapped = NULL;
  self->mapped_size = 0;
  self->is_mapped = 0;
  self->is_read_only = 0;
  self->shape_and_strides = NULL;
  self->info = (halyard_view_info_t){.struct_size = sizeof self->info};
  if (raise_status(state, halyard_view_info(view, &self->info)) < 0) Py_CLEAR(self);
  return (PyObject*)self;
}

static void tensor_free(PyObject* object) {
  TensorObject* self = (TensorObject*)object;
  PyTypeObject* type = Py_TYPE(object);
  if (self->mapped) unmap_tensor(self);
  halyard_release(self->handle);
  run_deferred(state_of(object)->deferred);
  PyMem_Free(self->shape_and_strides);
  PyObject_Free(self);
  Py_DECREF(type);
}

// ---- Properties

static PyObject* tensor_shape(PyObject* self, void* unused) {
  (void)unused;
  const halyard_view_info_t* info = &((TensorObject*)self)->info;
  return shape_tuple(info->shape, info->rank);
}

static PyObject* tensor_dtype(PyObject* self, void* unused) {
  (void)unused;
  const uint32_t type = ((TensorObject*)self)->info.element_type;
  const element_name_t* element = element_by_type(type);
  if (element) return PyUnicode_FromString(element->numpy);
  char* text = halyard_element_type_text(type);
  PyObject* result = PyUnicode_FromString(text ? text : "unknown");
  halyard_free(text);
  return result;
}

static PyObject* tensor_element_type(PyObject* self, void* unused) {
  (void)unused;
  char* text = halyard_element_type_text(((TensorObject*)self)->info.element_type);
  PyObject* result = PyUnicode_FromString(text ? text : "");
  halyard_free(text);
  return result;
}

static PyObject* tensor_device(PyObject* self, void* unused) {
  (void)unused;
  module_state* state = state_of(self);
  halyard_device_t device = NULL;
  if (raise_status(state, halyard_view_device(((TensorObject*)self)->handle, &device)) < 0) return NULL;
  return wrap_device(state, device);
}

static PyObject* tensor_nbytes(PyObject* self, void* unused) {
  (void)unused;
  uint64_t bytes = 0;
  if (raise_status(state_of(self), halyard_view_byte_count(((TensorObject*)self)->handle, &bytes)) < 0)
    return NULL;
  return PyLong_FromUnsignedLongLong(bytes);
}

static PyObject* tensor_ndim(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(((TensorObject*)self)->info.rank);
}

// The product of the sizes, which may have any number of bits, because the program chooses the sizes. A new
// reference.
static PyObject* element_count(const halyard_view_info_t* info) {
  PyObject* count = PyLong_FromLong(1);
  for (uint32_t i = 0; count && i < info->rank; ++i) {
    PyObject* size = PyLong_FromLongLong(info->shape[i]);
    PyObject* product = size ? PyNumber_Multiply(count, size) : NULL;
    Py_XDECREF(size);
    Py_DECREF(count);
    count = product;
  }
  return count;
}

static PyObject* tensor_size(PyObject* self, void* unused) {
  (void)unused;
  return element_count(&((TensorObject*)self)->info);
}

static PyObject* tensor_repr(PyObject* self) {
  char* text = NULL;
  if (raise_status(state_of(self), halyard_view_text(((TensorObject*)self)->handle, 64, &text)) < 0)
    return NULL;
  PyObject* result = PyUnicode_FromFormat("<halyard.Tensor %s>", text);
  halyard_free(text);
  return result;
}

// ---- The buffer protocol: numpy.asarray(tensor), memoryview(tensor)

static int tensor_get_buffer(PyObject* object, Py_buffer* view, int flags) {
  TensorObject* self = (TensorObject*)object;
  const element_name_t* element = element_by_type(self->info.element_type);
  if (!element || !element->format) {
    char* text = halyard_element_type_text(self->info.element_type);
    PyErr_Format(PyExc_BufferError, "elements of type %s do not exist in the buffer protocol; use numpy()",
                 text ? text : "?");
    halyard_free(text);
    return -1;
  }
  if (map_tensor(self) < 0) return -1;
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && self->is_read_only) {
    PyErr_SetString(PyExc_BufferError, "the memory of this tensor is read-only");
    return -1;
  }
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && self->info.rank > 1) {
    PyErr_SetString(PyExc_BufferError, "tensors are row-major; request a C-contiguous buffer");
    return -1;
  }
  const Py_ssize_t rank = (Py_ssize_t)self->info.rank;
  if (!self->shape_and_strides) {
    self->shape_and_strides = PyMem_Malloc(sizeof *self->shape_and_strides * (size_t)(2 * rank + 1));
    if (!self->shape_and_strides) {
      PyErr_NoMemory();
      return -1;
    }
    const Py_ssize_t size = element->bits / 8;
    Py_ssize_t stride = size;
    for (Py_ssize_t i = rank; i-- > 0;) {
      self->shape_and_strides[i] = (Py_ssize_t)self->info.shape[i];
      self->shape_and_strides[rank + i] = stride;
      // Only dimensions next to a 0 can overflow, and then the strides are not used.
      const Py_ssize_t steps = self->info.shape[i] > 0 ? (Py_ssize_t)self->info.shape[i] : 1;
      stride = stride <= PTRDIFF_MAX / steps ? stride * steps : size;
    }
  }
  view->obj = Py_NewRef(object);
  view->buf = self->mapped;
  view->len = (Py_ssize_t)self->mapped_size;
  view->itemsize = element->bits / 8;
  view->readonly = self->is_read_only;
  view->ndim = (int)rank;
  view->format = flags & PyBUF_FORMAT ? (char*)element->format : NULL;
  view->shape = flags & PyBUF_ND ? self->shape_and_strides : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->shape_and_strides + rank : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  return 0;
}

// ---- Values

static PyObject* tensor_tobytes(PyObject* object, PyObject* unused) {
  (void)unused;
  TensorObject* self = (TensorObject*)object;
  uint64_t size = 0;
  if (raise_status(state_of(object), halyard_view_byte_count(self->handle, &size)) < 0) return NULL;
  PyObject* bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (!bytes) return NULL;
  char* target = PyBytes_AsString(bytes);
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_view_read(self->handle, 0, target, (size_t)size);
  Py_END_ALLOW_THREADS
  if (raise_status(state_of(object), status) < 0) Py_CLEAR(bytes);
  return bytes;
}

// The result of a function of halyard._tensor, which uses numpy. Takes ownership of the arguments.
static PyObject* by_helper(const char* name, PyObject* arguments) {
  PyObject* module = arguments ? PyImport_ImportModule("halyard._tensor") : NULL;
  PyObject* function = module ? PyObject_GetAttrString(module, name) : NULL;
  PyObject* result = function ? PyObject_CallObject(function, arguments) : NULL;
  Py_XDECREF(function);
  Py_XDECREF(module);
  Py_XDECREF(arguments);
  return result;
}

// An element type by its name, or as numpy's users give it. Null: an exception is set.
static const element_name_t* element_of(PyObject* dtype, char* name, size_t size) {
  PyObject* text =
      PyUnicode_Check(dtype) ? Py_NewRef(dtype) : by_helper("dtype_name", Py_BuildValue("(O)", dtype));
  const char* utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  const element_name_t* element = utf8 ? element_by_name(utf8) : NULL;
  if (utf8) PyOS_snprintf(name, size, "%s", utf8);
  if (utf8 && !element)
    PyErr_Format(PyExc_ValueError, "'%s' is not an element type; see halyard.element_types", utf8);
  Py_XDECREF(text);
  return element;
}

// The same memory with elements of another type.
static PyObject* tensor_view(PyObject* object, PyObject* argument) {
  TensorObject* self = (TensorObject*)object;
  char name[32];
  const element_name_t* element = element_of(argument, name, sizeof name);
  const element_name_t* own = element_by_type(self->info.element_type);
  if (!element) return NULL;
  if (!own || own->bits != element->bits)
    return PyErr_Format(PyExc_ValueError,
                        "view() needs an element type of the same size; %s has %d bits, %s %d", name,
                        (int)element->bits, own ? own->numpy : "this", own ? (int)own->bits : 0);
  halyard_object_t view = NULL;
  module_state* state = state_of(object);
  if (raise_status(state, halyard_view_part(self->handle, 0, element->type, self->info.shape, self->info.rank,
                                            &view)) < 0)
    return NULL;
  return wrap_tensor(state, view);
}

// __array__(dtype=None, copy=None): numpy calls it if there is no buffer, for bfloat16 and the 8-bit floats.
static PyObject* tensor_array(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"dtype", "copy", NULL};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:__array__", names, &dtype, &copy)) return NULL;
  return by_helper("array", Py_BuildValue("(OOO)", self, dtype, copy));
}

static PyObject* tensor_numpy(PyObject* self, PyObject* unused) {
  (void)unused;
  return by_helper("numpy", Py_BuildValue("(O)", self));
}

static PyObject* tensor_tolist(PyObject* self, PyObject* unused) {
  (void)unused;
  return list_of_tensor((TensorObject*)self);
}

static int has_one_element(const halyard_view_info_t* info) {
  for (size_t i = 0; i < info->rank; ++i)
    if (info->shape[i] != 1) return 0;
  return 1;
}

// Raises a ValueError; the format's %S is the number of elements.
static void refuse_count(const halyard_view_info_t* info, const char* format) {
  PyObject* count = element_count(info);
  if (count) PyErr_Format(PyExc_ValueError, format, count);
  Py_XDECREF(count);
}

static PyObject* tensor_item(PyObject* object, PyObject* unused) {
  (void)unused;
  TensorObject* self = (TensorObject*)object;
  if (!has_one_element(&self->info)) {
    refuse_count(&self->info, "item() needs a tensor of one element; this one has %S");
    return NULL;
  }
  PyObject* value = tensor_tolist(object, NULL);
  while (value && PyList_Check(value)) {
    PyObject* inner = Py_NewRef(PyList_GetItem(value, 0));
    Py_DECREF(value);
    value = inner;
  }
  return value;
}

// Every code has a case, so that the compiler reports a new one.
static int has_negative_zero(enum dl_code code) {
  switch (code) {
    case kDlFloat:
    case kDlBfloat:
    case kDlComplex:
    case kDlFloat8E4M3FN:
    case kDlFloat8E5M2:
      return 1;
    case kDlInt:
    case kDlUInt:
    case kDlBool:
    case kDlFloat8E4M3FNUZ:
    case kDlFloat8E5M2FNUZ:
    case kDlFloat8E8M0FNU:
    case kDlNone:
      return 0;
  }
  return 0;
}

// Whether the element is not zero; true for NaN.
static int is_nonzero(const element_name_t* element, const unsigned char* bytes) {
  if (element->dl_code == kDlFloat8E8M0FNU) return 1;  // the type has no zero
  const int has_sign = has_negative_zero((enum dl_code)element->dl_code);
  const size_t size = element->bits / 8, part = element->dl_code == kDlComplex ? size / 2 : size;
  for (size_t i = 0; i < size; ++i) {
    const int is_sign = has_sign && i % part == part - 1;  // the highest byte of a number
    if (is_sign ? bytes[i] & 0x7F : bytes[i]) return 1;
  }
  return 0;
}

static int tensor_bool(PyObject* object) {
  TensorObject* self = (TensorObject*)object;
  const element_name_t* element = element_by_type(self->info.element_type);
  if (!element) {
    PyErr_SetString(PyExc_TypeError, "elements of this type have no truth value");
    return -1;
  }
  if (!has_one_element(&self->info)) {
    refuse_count(&self->info,
                 "a tensor of %S elements is neither true nor false; use numpy.any(tensor) or "
                 "numpy.all(tensor)");
    return -1;
  }
  unsigned char bytes[16] = {0};
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_view_read(self->handle, 0, bytes, element->bits / 8);
  Py_END_ALLOW_THREADS
  return raise_status(state_of(object), status) < 0 ? -1 : is_nonzero(element, bytes);
}

// == and != like numpy's: they return an array of truth values.
static PyObject* tensor_compare(PyObject* self, PyObject* other, int how) {
  if (how != Py_EQ && how != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  return by_helper("compare", Py_BuildValue("(OOO)", self, other, how == Py_EQ ? Py_True : Py_False));
}

// The hash of the object, not of its numbers, because they may change.
static Py_hash_t tensor_hash(PyObject* self) {
  return (Py_hash_t)((uintptr_t)self >> 4);  // never -1, which means an error
}

static PyObject* tensor_float(PyObject* self) {
  PyObject* item = tensor_item(self, NULL);
  PyObject* number = item ? PyNumber_Float(item) : NULL;
  Py_XDECREF(item);
  return number;
}

static PyObject* tensor_int(PyObject* self) {
  PyObject* item = tensor_item(self, NULL);
  PyObject* number = item ? PyNumber_Long(item) : NULL;
  Py_XDECREF(item);
  return number;
}

static Py_ssize_t tensor_length(PyObject* object) {
  const halyard_view_info_t* info = &((TensorObject*)object)->info;
  if (info->rank > 0 && info->shape[0] >= 0) return (Py_ssize_t)info->shape[0];
  if (info->rank > 0) {
    PyErr_Format(PyExc_ValueError, "the first dimension of the tensor is %lld, so it has no length",
                 (long long)info->shape[0]);
  } else {
    PyErr_SetString(PyExc_TypeError, "a tensor of rank 0 has no length");
  }
  return -1;
}

// A view of a new buffer of the device with a copy of the view's bytes.
static halyard_status_t copy_to_device(halyard_device_t device, halyard_object_t view,
                                       halyard_object_t* out) {
  halyard_view_info_t info = {.struct_size = sizeof info};
  uint64_t size = 0;
  halyard_status_t status = halyard_view_info(view, &info);
  if (!status) status = halyard_view_byte_count(view, &size);
  if (status) return status;
  void* bytes = malloc((size_t)size + 1);
  if (!bytes) return halyard_status_create(HALYARD_RESOURCE_EXHAUSTED, "no memory for a copy of the tensor");
  status = halyard_view_read(view, 0, bytes, (size_t)size);
  if (!status)
    status = halyard_view_create(device, info.element_type, info.shape, info.rank, bytes, (size_t)size, out);
  free(bytes);
  return status;
}

// Replaces the view, which may be that of an existing tensor, by one in memory of the device, if it is
// elsewhere. 0, or -1 with an exception set.
static int move_to_device(const view_request_t* request, halyard_object_t* view) {
  if (!request->device) return 0;
  halyard_device_t device = NULL;
  if (raise_status(request->state, halyard_view_device(*view, &device)) < 0) return -1;
  const int is_there = device == request->device;
  halyard_release(device);
  if (is_there) return 0;
  halyard_object_t copy = NULL;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = copy_to_device(request->device, *view, &copy);
  Py_END_ALLOW_THREADS
  if (raise_status(request->state, status) < 0) return -1;
  halyard_release(*view);
  *view = copy;
  return 0;
}

// Replaces the view by one of the requested element type, which differs at most in the sign of integers.
static int set_element_type(const view_request_t* request, halyard_object_t* view) {
  halyard_view_info_t info = {.struct_size = sizeof info};
  if (raise_status(request->state, halyard_view_info(*view, &info)) < 0) return -1;
  if (!request->element_type || request->element_type == info.element_type) return 0;
  halyard_object_t other = NULL;
  if (raise_status(request->state,
                   halyard_view_part(*view, 0, request->element_type, info.shape, info.rank, &other)) < 0)
    return -1;
  halyard_release(*view);
  *view = other;
  return 0;
}

// Tensor(value, dtype=None, device=None)
static PyObject* tensor_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"value", "dtype", "device", NULL};
  module_state* state = PyType_GetModuleState(type);
  PyObject *value, *device = NULL, *dtype = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|OO:Tensor", names, &value, &dtype, &device))
    return NULL;
  view_request_t request = {.state = state, .rank = -1};
  if (device && device != Py_None) {
    if (Py_TYPE(device) != state->device_type)
      return PyErr_Format(PyExc_TypeError, "device must be a halyard.Device or None, not %R",
                          Py_TYPE(device));
    request.device = ((DeviceObject*)device)->handle;
  }
  if (dtype != Py_None) {
    char name[32];
    const element_name_t* element = element_of(dtype, name, sizeof name);
    if (!element) return NULL;
    request.element_type = element->type;
    request.is_signed = strncmp(name, "int", 3) == 0;  // "i8" has no sign
  }
  halyard_object_t view = NULL;
  if (make_view(&request, value, &view) < 0) return NULL;
  if (move_to_device(&request, &view) < 0 || set_element_type(&request, &view) < 0) {
    halyard_release(view);
    return NULL;
  }
  return wrap_tensor(state, view);
}

// Tensor.frombytes(data, dtype, shape), the inverse of tobytes; in memory of the host.
static PyObject* tensor_frombytes(PyObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"data", "dtype", "shape", NULL};
  module_state* state = PyType_GetModuleState((PyTypeObject*)type);
  PyObject *dtype, *sizes;
  Py_buffer data;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "y*OO!:frombytes", names, &data, &dtype,
                                   &PyTuple_Type, &sizes))
    return NULL;
  char name[32];
  const element_name_t* element = element_of(dtype, name, sizeof name);
  const Py_ssize_t rank = PyTuple_Size(sizes);
  int64_t* shape = element ? PyMem_Malloc(sizeof *shape * (size_t)(rank + 1)) : NULL;
  if (element && !shape) PyErr_NoMemory();
  for (Py_ssize_t i = 0; shape && i < rank && !PyErr_Occurred(); ++i)
    shape[i] = PyLong_AsLongLong(PyTuple_GetItem(sizes, i));
  halyard_object_t view = NULL;
  if (!PyErr_Occurred())
    raise_status(state, halyard_view_create(NULL, element->type, shape, (size_t)rank, data.buf,
                                            (size_t)data.len, &view));
  PyMem_Free(shape);
  PyBuffer_Release(&data);
  return view ? wrap_tensor(state, view) : NULL;
}

// For pickle and copy: (Tensor.frombytes, (bytes, element type, shape)).
static PyObject* tensor_reduce(PyObject* self, PyObject* unused) {
  if (!known_element((TensorObject*)self)) return NULL;
  PyObject* make = PyObject_GetAttrString((PyObject*)Py_TYPE(self), "frombytes");
  PyObject* bytes = make ? tensor_tobytes(self, unused) : NULL;
  if (!bytes) {
    Py_XDECREF(make);
    return NULL;
  }
  return Py_BuildValue("(N(NNN))", make, bytes, tensor_element_type(self, NULL), tensor_shape(self, NULL));
}

int copy_tensor(TensorObject* self, const view_request_t* request, PyObject* target) {
  const element_name_t* element = known_element(self);
  if (!element) return -1;
  view_request_t expected = *request;
  expected.state = state_of((PyObject*)self);
  expected.element_type = self->info.element_type;
  expected.rank = (int)self->info.rank;
  expected.shape = self->info.shape;
  Py_buffer buffer;
  if (!PyObject_CheckBuffer(target)) {
    PyObject* place = place_of(&expected);
    if (place) PyErr_Format(PyExc_TypeError, "%U must be a writable array, not %R", place, Py_TYPE(target));
    Py_XDECREF(place);
    return -1;
  }
  if (PyObject_GetBuffer(target, &buffer, PyBUF_RECORDS) < 0) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    PyErr_Clear();
    if (PyObject_GetBuffer(target, &buffer, PyBUF_RECORDS_RO) == 0) {
      PyBuffer_Release(&buffer);
      return refuse(&expected, PyUnicode_FromString("is read-only; expected a writable array"));
    }
    PyErr_Clear();  // elements without a format in the protocol
    PyObject* done = by_helper("copy_into", Py_BuildValue("(OO)", target, self));
    Py_XDECREF(done);
    return done ? 0 : -1;
  }
  const int is_tensor = Py_TYPE(target) == expected.state->tensor_type;
  int unit = 1, result = -1;
  const element_name_t* found = element_by_format(buffer.format, buffer.itemsize, &unit);
  int64_t shape[kMaxRank];
  for (int i = 0; i < buffer.ndim && i < kMaxRank; ++i) shape[i] = buffer.shape[i];
  if (buffer.ndim > kMaxRank) {
    refuse(&expected,
           PyUnicode_FromFormat("has %d dimensions; tensors have at most %d", buffer.ndim, kMaxRank));
  } else if (!found) {
    refuse(&expected,
           PyUnicode_FromFormat("has elements of format '%s', expected %s", buffer.format, element->numpy));
  } else if (check_element(&expected, is_tensor ? ((TensorObject*)target)->info.element_type
                                                : with_sign(found->type)) == 0 &&
             check_shape(&expected, shape, buffer.ndim) == 0) {
    if (unit == 1 && PyBuffer_IsContiguous(&buffer, 'C')) {
      halyard_status_t status;
      Py_BEGIN_ALLOW_THREADS
      status = halyard_view_read(self->handle, 0, buffer.buf, (size_t)buffer.len);
      Py_END_ALLOW_THREADS
      result = raise_status(expected.state, status);
    } else {
      PyObject* done = by_helper("copy_into", Py_BuildValue("(OO)", target, self));
      Py_XDECREF(done);
      result = done ? 0 : -1;
    }
  }
  PyBuffer_Release(&buffer);
  return result;
}

static PyObject* tensor_copy_to(PyObject* self, PyObject* target) {
  PyObject* name = PyUnicode_FromString("the target");
  const view_request_t request = {.argument_name = name};
  const int result = name ? copy_tensor((TensorObject*)self, &request, target) : -1;
  Py_XDECREF(name);
  return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef tensor_methods[] = {
    {"tobytes", tensor_tobytes, METH_NOARGS, "Returns a copy of the tensor's bytes."},
    {"frombytes", (PyCFunction)(void (*)(void))tensor_frombytes, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "frombytes(data, dtype, shape)\n--\n\nReturns a tensor in memory of the host with a copy of these "
     "bytes: "
     "Tensor.frombytes(t.tobytes(), t.dtype, t.shape)."},
    {"__reduce__", tensor_reduce, METH_NOARGS,
     "For pickle and copy; the new tensor is in memory of the host."},
    {"numpy", tensor_numpy, METH_NOARGS,
     "numpy()\n--\n\nReturns the tensor as a numpy array, which shares its memory if possible."},
    {"reshape", tensor_reshape, METH_VARARGS,
     "reshape(*shape)\n--\n\nReturns a tensor over the same memory, with another shape. One size may be -1."},
    {"copy_to", tensor_copy_to, METH_O,
     "copy_to(target)\n--\n\nCopies the elements to a writable array of the same type and shape."},
    {"tolist", tensor_tolist, METH_NOARGS, "Returns the elements as nested lists."},
    {"item", tensor_item, METH_NOARGS, "Returns the element of a tensor of one element."},
    {"view", tensor_view, METH_O,
     "view(dtype)\n--\n\nReturns a tensor over the same memory, with another element type of the same size: "
     "tensor.view(\"uint16\")."},
    {"__array__", (PyCFunction)(void (*)(void))tensor_array, METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None)\n--\n\nReturns the tensor as a numpy array, like halyard.numpy."},
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_to_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nReturns a DLPack "
     "capsule that shares the tensor's memory."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "Returns (device type, number), in DLPack's numbers."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef tensor_fields[] = {
    {"shape", tensor_shape, NULL, "The sizes of the dimensions, as a tuple.", NULL},
    {"dtype", tensor_dtype, NULL, "The element type by numpy's name: \"float32\".", NULL},
    {"element_type", tensor_element_type, NULL, "The element type by the name in programs: \"f32\".", NULL},
    {"device", tensor_device, NULL, "The Device that owns the memory.", NULL},
    {"nbytes", tensor_nbytes, NULL, "The size in bytes.", NULL},
    {"ndim", tensor_ndim, NULL, "The number of dimensions.", NULL},
    {"size", tensor_size, NULL, "The number of elements.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot tensor_slots[] = {
    {Py_tp_doc,
     "Tensor(value, dtype=None, device=None)\n--\n\nA tensor of a program: a result, or an argument that is "
     "created before the call.\nnumpy.asarray(tensor), torch.from_dlpack(tensor) and memoryview(tensor) "
     "share its memory if the host can access it."},
    {Py_tp_new, tensor_new},
    {Py_tp_dealloc, tensor_free},
    {Py_tp_repr, tensor_repr},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_fields},
    {Py_bf_getbuffer, tensor_get_buffer},
    {Py_nb_bool, tensor_bool},
    {Py_tp_richcompare, tensor_compare},
    {Py_tp_hash, tensor_hash},
    {Py_nb_float, tensor_float},
    {Py_nb_int, tensor_int},
    {Py_sq_length, tensor_length},
    {Py_sq_item, tensor_item_at},
    {Py_mp_length, tensor_length},
    {Py_mp_subscript, tensor_subscript},
    {0, NULL}};
static PyType_Spec tensor_spec = {"halyard.Tensor", sizeof(TensorObject), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, tensor_slots};

// ---- Opaque objects

static void object_free(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  halyard_release(((ObjectObject*)object)->handle);
  run_deferred(state_of(object)->deferred);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyObject* object_repr(PyObject* self) {
  return PyUnicode_FromFormat("<halyard.Object %s>", halyard_object_type(((ObjectObject*)self)->handle));
}

static PyType_Slot object_slots[] = {
    {Py_tp_doc,
     "An object of a program other than a tensor: a buffer, or an object of a "
     "native module. It can be passed to the program again."},
    {Py_tp_dealloc, object_free},
    {Py_tp_repr, object_repr},
    {0, NULL}};
static PyType_Spec object_spec = {
    "halyard.Object", sizeof(ObjectObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, object_slots};

int add_tensor_types(PyObject* module, module_state* state) {
  return add_type(module, &tensor_spec, &state->tensor_type) < 0 ||
                 add_type(module, &object_spec, &state->object_type) < 0
             ? -1
             : 0;
}
