// Memory between Python and programs.
#include <string.h>

#include "common.h"

int map_tensor(TensorObject* self) {
  if (self->mapped) return 0;
  const size_t size = (size_t)self->info.byte_length;
  void* bytes = PyMem_Malloc(size + 1);
  if (!bytes) {
    PyErr_NoMemory();
    return -1;
  }
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_view_read(self->handle, 0, bytes, size);
  Py_END_ALLOW_THREADS
  if (raise_status(state_of((PyObject*)self), status) < 0) {
    PyMem_Free(bytes);
    return -1;
  }
  self->mapped = bytes;
  return 0;
}

void unmap_tensor(TensorObject* self) { PyMem_Free(self->mapped); }

int view_of_buffer(const view_request_t* request, uint32_t element_type, const int64_t* shape, int rank, Py_buffer* bytes,
                   halyard_object_t* out) {
  void* dense = NULL;
  const void* data = bytes->buf;
  if (!PyBuffer_IsContiguous(bytes, 'C')) {
    dense = PyMem_Malloc((size_t)bytes->len + 1);
    if (!dense) PyErr_NoMemory();
    if (!dense || PyBuffer_ToContiguous(dense, bytes, bytes->len, 'C') < 0) {
      PyMem_Free(dense);
      PyBuffer_Release(bytes);
      return -1;
    }
    data = dense;
  }
  const int result = raise_status(request->state, halyard_view_create(request->device, element_type, shape, (size_t)rank,
                                                                      data, (size_t)bytes->len, out));
  PyMem_Free(dense);
  PyBuffer_Release(bytes);
  return result;
}

int view_of_dlpack(const view_request_t* request, PyObject* value, halyard_object_t* out) {
  (void)request; (void)value; (void)out;
  PyErr_SetString(PyExc_BufferError, "TODO dlpack");
  return -1;
}
PyObject* tensor_to_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords) {
  (void)self; (void)arguments; (void)keywords;
  PyErr_SetString(PyExc_BufferError, "TODO dlpack");
  return NULL;
}
PyObject* tensor_dlpack_device(PyObject* self, PyObject* unused) {
  (void)self; (void)unused;
  return Py_BuildValue("(ii)", 1, 0);
}
