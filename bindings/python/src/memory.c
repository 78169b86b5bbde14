// Memory between Python and programs: shared wherever the device can use it in place.
#include "halyard/memory.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

int map_tensor(TensorObject* self) {
  if (self->mapped) return 0;
  module_state* state = state_of((PyObject*)self);
  size_t size = 0;
  halyard_status_t status =
      halyard_view_map(self->handle, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &self->mapped, &size);
  if (halyard_status_code(status) == HALYARD_PERMISSION_DENIED) {
    halyard_status_release(status);
    status = halyard_view_map(self->handle, HALYARD_VIEW_READ, &self->mapped, &size);
    self->is_read_only = 1;
  }
  if (!status) {
    self->is_mapped = 1;
    if (!self->mapped) self->mapped = self;  // no bytes: any address will do
    return 0;
  }
  if (halyard_status_code(status) != HALYARD_PERMISSION_DENIED) return raise_status(state, status);
  // The host does not see the memory: a copy of it, which nobody writes to.
  halyard_status_release(status);
  size = (size_t)self->info.byte_length;
  void* bytes = PyMem_Malloc(size + 1);
  if (!bytes) {
    PyErr_NoMemory();
    return -1;
  }
  Py_BEGIN_ALLOW_THREADS
  status = halyard_view_read(self->handle, 0, bytes, size);
  Py_END_ALLOW_THREADS
  if (raise_status(state, status) < 0) {
    PyMem_Free(bytes);
    return -1;
  }
  self->mapped = bytes;
  return 0;
}

void unmap_tensor(TensorObject* self) {
  if (self->is_mapped) {
    halyard_view_unmap(self->handle);
  } else {
    PyMem_Free(self->mapped);
  }
}

// ---- Python's memory as views

// What a view keeps.
typedef struct {
  deferred_t deferred;  // first, so that one is the other
  deferred_list* list;
  Py_buffer buffer;
} kept_buffer;

static void free_buffer(deferred_t* item) {
  kept_buffer* kept = (kept_buffer*)item;
  PyBuffer_Release(&kept->buffer);
  forget_deferred(kept->list);
  free(kept);
}

// The view is gone: on any thread, maybe one of a device, and maybe after the interpreter has ended.
static void release_buffer(void* user) {
  kept_buffer* kept = user;
  defer(kept->list, &kept->deferred);
}

// Where sharing costs more than copying.
enum { kSmall = 4096 };

int view_of_buffer(const view_request_t* request, uint32_t element_type, const int64_t* shape, int rank,
                   Py_buffer* bytes, halyard_object_t* out) {
  const size_t size = (size_t)bytes->len;
  int result;
  if (!PyBuffer_IsContiguous(bytes, 'C')) {
    void* dense = PyMem_Malloc(size + 1);
    if (!dense) PyErr_NoMemory();
    result = dense ? PyBuffer_ToContiguous(dense, bytes, bytes->len, 'C') : -1;
    if (result == 0)
      result = raise_status(request->state, halyard_view_create(request->device, element_type, shape,
                                                                (size_t)rank, dense, size, out));
    PyMem_Free(dense);
  } else if (size < kSmall) {
    result = raise_status(request->state, halyard_view_create(request->device, element_type, shape,
                                                              (size_t)rank, bytes->buf, size, out));
  } else {
    deferred_list* list = request->state->deferred;
    kept_buffer* kept = malloc(sizeof *kept);
    if (!kept) {
      PyErr_NoMemory();
      result = -1;
    } else {
      *kept = (kept_buffer){.deferred.run = free_buffer, .list = list, .buffer = *bytes};
      expect_deferred(list);
      const uint32_t flags = bytes->readonly ? HALYARD_IMPORT_READ_ONLY : 0u;
      result = raise_status(
          request->state, halyard_view_import(request->device, element_type, shape, (size_t)rank, bytes->buf,
                                              size, flags, release_buffer, kept, NULL, out));
      run_deferred(list);  // of a buffer that was copied
      if (result == 0) return 0;
      forget_deferred(list);
      free(kept);
    }
  }
  PyBuffer_Release(bytes);
  return result;
}

// ---- DLPack

// What a capsule's consumer leaves to its deleter: the capsule of a tensor that nobody took frees it.
// Deleters of Halyard's need no interpreter.
static void free_versioned(PyObject* capsule) {
  struct DLManagedTensorVersioned* tensor = PyCapsule_IsValid(capsule, "dltensor_versioned")
                                                ? PyCapsule_GetPointer(capsule, "dltensor_versioned")
                                                : NULL;
  if (tensor) halyard_dlpack_release(tensor);
}

static void free_unversioned(PyObject* capsule) {
  struct DLManagedTensor* tensor =
      PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
  if (tensor) halyard_dlpack_release_unversioned(tensor);
}

// __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
PyObject* tensor_to_dlpack(PyObject* object, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream, &version,
                                   &device, &copy))
    return NULL;
  module_state* state = state_of(object);
  if (stream != Py_None)  // streams order work of GPUs; this memory is the CPU's, and its work is done
    return PyErr_Format(PyExc_BufferError, "stream must be None: the tensor is in memory of the CPU");
  int type = 1, number = 0, major = 0, minor = 0;
  if (device != Py_None && !PyArg_ParseTuple(device, "ii:dl_device", &type, &number)) return NULL;
  if (type != 1)
    return PyErr_Format(PyExc_BufferError, "the tensor is in memory of the CPU (1), not of device type %d",
                        type);
  if (version != Py_None && !PyArg_ParseTuple(version, "ii:max_version", &major, &minor)) return NULL;
  const int must_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
  if (must_copy < 0) return NULL;
  const uint32_t flags = must_copy ? HALYARD_DLPACK_COPY : 0u;
  const halyard_object_t view = ((TensorObject*)object)->handle;
  if (major >= 1) {
    struct DLManagedTensorVersioned* tensor = NULL;
    if (raise_status(state, halyard_view_to_dlpack(view, flags, &tensor)) < 0) return NULL;
    PyObject* capsule = PyCapsule_New(tensor, "dltensor_versioned", free_versioned);
    if (!capsule) halyard_dlpack_release(tensor);
    return capsule;
  }
  struct DLManagedTensor* tensor = NULL;
  if (raise_status(state, halyard_view_to_dlpack_unversioned(view, flags, &tensor)) < 0) return NULL;
  PyObject* capsule = PyCapsule_New(tensor, "dltensor", free_unversioned);
  if (!capsule) halyard_dlpack_release_unversioned(tensor);
  return capsule;
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return Py_BuildValue("(ii)", 1, 0);
}

static PyObject* ask_for_capsule(PyObject* value) {
  PyObject* method = PyObject_GetAttrString(value, "__dlpack__");
  PyObject* none = method ? PyTuple_New(0) : NULL;
  PyObject* versions = none ? Py_BuildValue("{s(ii)}", "max_version", 1, 1) : NULL;
  PyObject* capsule = versions ? PyObject_Call(method, none, versions) : NULL;
  if (!capsule && versions && PyErr_ExceptionMatches(PyExc_TypeError)) {  // from before there were versions
    PyErr_Clear();
    capsule = PyObject_Call(method, none, NULL);
  }
  Py_XDECREF(versions);
  Py_XDECREF(none);
  Py_XDECREF(method);
  return capsule;
}

int view_of_dlpack(const view_request_t* request, PyObject* value, halyard_object_t* out) {
  PyObject* capsule = ask_for_capsule(value);
  if (!capsule) return -1;
  halyard_object_t view = NULL;
  int result = -1;
  // A tensor that was taken over is the view's from then on; the capsule says so by its name.
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    struct DLManagedTensorVersioned* tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    result = raise_status(request->state, halyard_view_from_dlpack(request->device, tensor, 0, NULL, &view));
    if (result == 0) PyCapsule_SetName(capsule, "used_dltensor_versioned");
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    struct DLManagedTensor* tensor = PyCapsule_GetPointer(capsule, "dltensor");
    result = raise_status(request->state,
                          halyard_view_from_dlpack_unversioned(request->device, tensor, 0, NULL, &view));
    if (result == 0) PyCapsule_SetName(capsule, "used_dltensor");
  } else {
    PyErr_Format(PyExc_BufferError, "__dlpack__ of %R gave no DLPack capsule", Py_TYPE(value));
  }
  Py_DECREF(capsule);
  if (result < 0) return -1;
  halyard_view_info_t info = {.struct_size = sizeof info};
  if (raise_status(request->state, halyard_view_info(view, &info)) < 0 ||
      check_element(request, info.element_type) < 0 || check_shape(request, info.shape, (int)info.rank) < 0) {
    halyard_release(view);
    return -1;
  }
  *out = view;
  return 0;
}
