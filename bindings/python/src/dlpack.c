// DLPack: exchanges tensors with PyTorch, JAX, numpy and others, in both directions.
#include <stdlib.h>

#include "common.h"
#include "halyard/memory.h"

// As in DLPack's header (version 1).
typedef struct {
  void* data;
  int32_t device_type, device_id, rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
  dl_tensor tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  dl_tensor tensor;
};

// A capsule's destructor frees a tensor that no consumer took. Halyard's deleters need no interpreter.
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

// Returns the capsule, or null with an exception set.
static PyObject* versioned_capsule(module_state* state, halyard_object_t view, uint32_t flags) {
  struct DLManagedTensorVersioned* tensor = NULL;
  if (raise_status(state, halyard_view_to_dlpack(view, flags, &tensor)) < 0) return NULL;
  PyObject* capsule = PyCapsule_New(tensor, "dltensor_versioned", free_versioned);
  if (!capsule) halyard_dlpack_release(tensor);
  return capsule;
}

static PyObject* unversioned_capsule(module_state* state, halyard_object_t view, uint32_t flags) {
  struct DLManagedTensor* tensor = NULL;
  if (raise_status(state, halyard_view_to_dlpack_unversioned(view, flags, &tensor)) < 0) return NULL;
  PyObject* capsule = PyCapsule_New(tensor, "dltensor", free_unversioned);
  if (!capsule) halyard_dlpack_release_unversioned(tensor);
  return capsule;
}

// Raises BufferError, which the protocol requires, with the message of the exception that is set.
static PyObject* as_buffer_error(void) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_Format(PyExc_BufferError, "the memory cannot be shared, but copy is False: %S",
               value ? value : Py_None);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return NULL;
}

// __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
PyObject* tensor_to_dlpack(PyObject* object, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream, &version,
                                   &device, &copy))
    return NULL;
  module_state* state = state_of(object);
  if (stream != Py_None)  // streams order work of GPUs, but this memory is CPU memory and its work is done
    return PyErr_Format(PyExc_BufferError, "stream must be None, because the tensor is in CPU memory");
  int type = 1, number = 0, major = 0, minor = 0;
  if (device != Py_None && !PyArg_ParseTuple(device, "ii:dl_device", &type, &number)) return NULL;
  if (type != 1)
    return PyErr_Format(PyExc_BufferError, "the tensor is in CPU memory (1), not in memory of device type %d",
                        type);
  if (version != Py_None && !PyArg_ParseTuple(version, "ii:max_version", &major, &minor)) return NULL;
  const int must_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
  if (must_copy < 0) return NULL;
  PyObject* (*make)(module_state*, halyard_object_t, uint32_t) =
      major >= 1 ? versioned_capsule : unversioned_capsule;
  const halyard_object_t view = ((TensorObject*)object)->handle;
  if (must_copy) return make(state, view, HALYARD_DLPACK_COPY);
  PyObject* capsule = make(state, view, 0);
  // The memory is not host-visible, or it is read-only and the struct cannot express that.
  if (!capsule && PyErr_ExceptionMatches(state->errors[HALYARD_PERMISSION_DENIED])) {
    if (copy != Py_None) return as_buffer_error();
    PyErr_Clear();
    capsule = make(state, view, HALYARD_DLPACK_COPY);
  }
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
  if (!capsule && versions && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer without `max_version`
    PyErr_Clear();
    capsule = PyObject_Call(method, none, NULL);
  }
  Py_XDECREF(versions);
  Py_XDECREF(none);
  Py_XDECREF(method);
  return capsule;
}

// A consumed tensor that a view uses. Its deleter may need the interpreter (numpy's takes its lock), so it is
// not called on the thread that destroys the view. The library gets a copy of the struct with this file's
// deleter.
typedef struct {
  deferred_t deferred;  // first, so that their addresses are equal
  deferred_list* list;
  struct DLManagedTensor* unversioned;  // one of the two is null
  struct DLManagedTensorVersioned* versioned;
  union {
    struct DLManagedTensor unversioned;
    struct DLManagedTensorVersioned versioned;
  } copy;
} kept_tensor;

static void free_kept(deferred_t* item) {
  kept_tensor* kept = (kept_tensor*)item;
  halyard_dlpack_release(kept->versioned);
  halyard_dlpack_release_unversioned(kept->unversioned);
  forget_deferred(kept->list);
  free(kept);
}

static void release_versioned(struct DLManagedTensorVersioned* copy) {
  kept_tensor* kept = copy->context;
  defer(kept->list, &kept->deferred);
}

static void release_unversioned(struct DLManagedTensor* copy) {
  kept_tensor* kept = copy->context;
  defer(kept->list, &kept->deferred);
}

static int take_tensor(const view_request_t* request, struct DLManagedTensorVersioned* versioned,
                       struct DLManagedTensor* unversioned, halyard_object_t* out) {
  deferred_list* list = request->state->deferred;
  kept_tensor* kept = malloc(sizeof *kept);
  if (!kept) {
    PyErr_NoMemory();
    return -1;
  }
  *kept = (kept_tensor){
      .deferred.run = free_kept, .list = list, .unversioned = unversioned, .versioned = versioned};
  expect_deferred(list);
  halyard_status_t status;
  if (versioned) {
    kept->copy.versioned = *versioned;
    kept->copy.versioned.context = kept;
    kept->copy.versioned.deleter = release_versioned;
    status = halyard_view_from_dlpack(request->device, &kept->copy.versioned, 0, NULL, out);
  } else {
    kept->copy.unversioned = *unversioned;
    kept->copy.unversioned.context = kept;
    kept->copy.unversioned.deleter = release_unversioned;
    status = halyard_view_from_dlpack_unversioned(request->device, &kept->copy.unversioned, 0, NULL, out);
  }
  if (status) {  // the capsule still owns the tensor
    forget_deferred(list);
    free(kept);
    return raise_status(request->state, status);
  }
  return 0;
}

int view_of_dlpack(const view_request_t* request, PyObject* value, halyard_object_t* out) {
  PyObject* capsule = ask_for_capsule(value);
  if (!capsule) return -1;
  halyard_object_t view = NULL;
  int result = -1;
  // The view now owns the tensor; the new name of the capsule marks that.
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    result = take_tensor(request, PyCapsule_GetPointer(capsule, "dltensor_versioned"), NULL, &view);
    if (result == 0) PyCapsule_SetName(capsule, "used_dltensor_versioned");
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    result = take_tensor(request, NULL, PyCapsule_GetPointer(capsule, "dltensor"), &view);
    if (result == 0) PyCapsule_SetName(capsule, "used_dltensor");
  } else {
    PyErr_Format(PyExc_BufferError, "__dlpack__ of %R did not return a DLPack capsule", Py_TYPE(value));
  }
  Py_DECREF(capsule);
  run_deferred(request->state->deferred);  // frees a tensor that was copied
  if (result < 0) return -1;
  halyard_view_info_t info = {.struct_size = sizeof info};
  if (raise_status(request->state, halyard_view_info(view, &info)) < 0 ||
      check_element(request, with_sign(info.element_type)) < 0 ||
      check_shape(request, info.shape, (int)info.rank) < 0) {
    halyard_release(view);
    return -1;
  }
  *out = view;
  return 0;
}
