// Shares memory between Python and programs if the device can use it in place.
#include "halyard/memory.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

int map_tensor(TensorObject* self) {
  if (self->mapped) return 0;
  module_state* state = state_of((PyObject*)self);
  halyard_status_t status = halyard_view_map(self->handle, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE,
                                             &self->mapped, &self->mapped_size);
  if (halyard_status_code(status) == HALYARD_PERMISSION_DENIED) {
    halyard_status_release(status);
    status = halyard_view_map(self->handle, HALYARD_VIEW_READ, &self->mapped, &self->mapped_size);
    self->is_read_only = 1;
  }
  if (!status) {
    self->is_mapped = 1;
    if (!self->mapped) self->mapped = self;  // without bytes, any address is valid
    return 0;
  }
  if (halyard_status_code(status) != HALYARD_PERMISSION_DENIED) return raise_status(state, status);
  // The memory is not host-visible, so the host gets a read-only copy.
  halyard_status_release(status);
  uint64_t count = 0;
  if (raise_status(state, halyard_view_byte_count(self->handle, &count)) < 0) return -1;
  const size_t size = (size_t)count;
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
  if (self->mapped) {  // another thread was faster
    PyMem_Free(bytes);
    return 0;
  }
  self->mapped = bytes;
  self->mapped_size = size;
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

// The buffer that a view keeps.
typedef struct {
  deferred_t deferred;  // first, so that their addresses are equal
  deferred_list* list;
  Py_buffer buffer;
} kept_buffer;

static void free_buffer(deferred_t* item) {
  kept_buffer* kept = (kept_buffer*)item;
  PyBuffer_Release(&kept->buffer);
  forget_deferred(kept->list);
  free(kept);
}

// Called when the view is destroyed: on any thread, maybe a device's, maybe after the interpreter has ended.
static void release_buffer(void* user) {
  kept_buffer* kept = user;
  defer(kept->list, &kept->deferred);
}

// Sharing fewer bytes costs more than copying.
enum { kSmall = 4096 };

// Reverses the bytes of each `unit`.
static void swap_bytes(char* bytes, size_t size, size_t unit) {
  for (char* at = bytes; at + unit <= bytes + size; at += unit)
    for (size_t i = 0; i < unit / 2; ++i) {
      const char other = at[i];
      at[i] = at[unit - 1 - i];
      at[unit - 1 - i] = other;
    }
}

int view_of_buffer(const view_request_t* request, uint32_t element_type, const int64_t* shape, int rank,
                   int unit, Py_buffer* bytes, halyard_object_t* out) {
  const size_t size = (size_t)bytes->len;
  int result;
  if (unit > 1 || !PyBuffer_IsContiguous(bytes, 'C')) {
    char* dense = PyMem_Malloc(size + 1);
    if (!dense) PyErr_NoMemory();
    result = dense ? PyBuffer_ToContiguous(dense, bytes, bytes->len, 'C') : -1;
    if (result == 0 && unit > 1) swap_bytes(dense, size, (size_t)unit);
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
      run_deferred(list);  // releases a buffer that was copied
      if (result == 0) return 0;
      forget_deferred(list);
      free(kept);
    }
  }
  PyBuffer_Release(bytes);
  return result;
}
