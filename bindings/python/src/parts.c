// Parts of tensors and other shapes of them, over the same memory: tensor[0], tensor[1:3], tensor.reshape(2,
// 3).
#include "common.h"
#include "halyard/memory.h"

enum { kMaxRank = 32 };

static PyObject* part(TensorObject* self, uint64_t offset, const int64_t* shape, size_t rank) {
  module_state* state = state_of((PyObject*)self);
  halyard_object_t view = NULL;
  if (raise_status(state,
                   halyard_view_part(self->handle, offset, self->info.element_type, shape, rank, &view)) < 0)
    return NULL;
  return wrap_tensor(state, view);
}

// The part that was selected so far: the elements from `offset` on, with the last `rank` dimensions of the
// tensor.
typedef struct {
  uint64_t offset;  // in elements
  const int64_t* shape;
  uint32_t rank;
} selection_t;

static uint64_t row_of(const selection_t* selection) {  // elements in one item of the first dimension
  uint64_t count = 1;
  for (uint32_t i = 1; i < selection->rank; ++i) count *= (uint64_t)selection->shape[i];
  return count;
}

static int is_index(PyObject* key) { return PyIndex_Check(key) && !PyBool_Check(key); }

// Selects an item of the first dimension. 0, or -1 with an exception set.
static int select_item(const TensorObject* self, selection_t* selection, Py_ssize_t index) {
  const Py_ssize_t size = selection->rank > 0 ? (Py_ssize_t)selection->shape[0] : 0;
  if (index < -size || index >= size) {
    PyErr_Format(PyExc_IndexError, "index %zd is out of range for dimension %u of size %zd", index,
                 self->info.rank - selection->rank, size);
    return -1;
  }
  selection->offset += (uint64_t)(index < 0 ? index + size : index) * row_of(selection);
  ++selection->shape;
  --selection->rank;
  return 0;
}

// The selection as a tensor, or as a number if it has no dimensions.
static PyObject* selected(TensorObject* self, const selection_t* selection) {
  const element_name_t* element = known_element(self);
  if (!element) return NULL;
  const uint64_t offset = selection->offset * (element->bits / 8u);
  if (selection->rank > 0) return part(self, offset, selection->shape, selection->rank);
  unsigned char bytes[16];
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_view_read(self->handle, offset, bytes, element->bits / 8u);
  Py_END_ALLOW_THREADS
  return raise_status(state_of((PyObject*)self), status) < 0 ? NULL : element_value(element, bytes);
}

static PyObject* selected_slice(TensorObject* self, const selection_t* from, Py_ssize_t start,
                                Py_ssize_t size) {
  int64_t shape[kMaxRank];
  for (uint32_t i = 0; i < from->rank; ++i) shape[i] = from->shape[i];
  shape[0] = size;
  const uint64_t skipped = size > 0 ? (uint64_t)start * row_of(from) : 0;
  const selection_t selection = {.offset = from->offset + skipped, .shape = shape, .rank = from->rank};
  return selected(self, &selection);
}

// A selection that is not one range of memory is a copy, which numpy makes.
static PyObject* through_numpy(PyObject* self, PyObject* key) {
  PyObject* module = PyImport_ImportModule("halyard._tensor");
  PyObject* result = module ? PyObject_CallMethod(module, "select", "OO", self, key) : NULL;
  Py_XDECREF(module);
  return result;
}

static int check_rank(const TensorObject* self) {
  if (self->info.rank > 0 && self->info.rank <= kMaxRank) return 0;
  PyErr_Format(PyExc_TypeError, "a tensor of rank %u has no items", self->info.rank);
  return -1;
}

PyObject* tensor_item_at(PyObject* object, Py_ssize_t index) {
  TensorObject* self = (TensorObject*)object;
  if (check_rank(self) < 0) return NULL;
  selection_t selection = {.shape = self->info.shape, .rank = self->info.rank};
  return select_item(self, &selection, index) < 0 ? NULL : selected(self, &selection);
}

// Numbers, and then at most one slice without a step, select a range of memory.
PyObject* tensor_subscript(PyObject* object, PyObject* key) {
  TensorObject* self = (TensorObject*)object;
  const int is_tuple = PyTuple_Check(key);
  const Py_ssize_t count = is_tuple ? PyTuple_Size(key) : 1;
  if (count > (Py_ssize_t)self->info.rank || self->info.rank > kMaxRank) return through_numpy(object, key);
  selection_t selection = {.shape = self->info.shape, .rank = self->info.rank};
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* one = is_tuple ? PyTuple_GetItem(key, i) : key;
    if (PySlice_Check(one) && i + 1 == count) {
      Py_ssize_t start, stop, step;
      if (PySlice_Unpack(one, &start, &stop, &step) < 0) return NULL;
      const Py_ssize_t size = PySlice_AdjustIndices((Py_ssize_t)selection.shape[0], &start, &stop, step);
      return step == 1 ? selected_slice(self, &selection, start, size) : through_numpy(object, key);
    }
    if (!is_index(one)) return through_numpy(object, key);
    const Py_ssize_t index = PyNumber_AsSsize_t(one, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) {
      if (PyErr_ExceptionMatches(PyExc_IndexError)) return NULL;
      PyErr_Clear();  // an array of several numbers
      return through_numpy(object, key);
    }
    if (select_item(self, &selection, index) < 0) return NULL;
  }
  return selected(self, &selection);
}

// The sizes of reshape: numbers, or a sequence of them. Returns the rank, or -1 with an exception set.
static int read_shape(PyObject* arguments, int64_t* shape) {
  PyObject* sizes = arguments;
  if (PyTuple_Size(arguments) == 1 && !PyIndex_Check(PyTuple_GetItem(arguments, 0)))
    sizes = PyTuple_GetItem(arguments, 0);
  const Py_ssize_t rank = PySequence_Size(sizes);
  if (rank < 0) return -1;
  if (rank > kMaxRank) {
    PyErr_Format(PyExc_ValueError, "reshape() takes at most %d dimensions, not %zd", (int)kMaxRank, rank);
    return -1;
  }
  for (Py_ssize_t i = 0; i < rank; ++i) {
    PyObject* size = PySequence_GetItem(sizes, i);
    shape[i] = size ? PyNumber_AsSsize_t(size, PyExc_OverflowError) : -1;
    Py_XDECREF(size);
    if (PyErr_Occurred()) return -1;
  }
  return (int)rank;
}

PyObject* tensor_reshape(PyObject* object, PyObject* arguments) {
  TensorObject* self = (TensorObject*)object;
  int64_t shape[kMaxRank];
  const int rank = read_shape(arguments, shape);
  if (rank < 0) return NULL;
  int64_t count = 1, known = 1;
  int open = -1, is_wrong = 0;
  for (uint32_t i = 0; i < self->info.rank; ++i) count *= self->info.shape[i];
  for (int i = 0; i < rank; ++i) {
    if (shape[i] == -1 && open < 0) {
      open = i;
    } else {
      is_wrong |= shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known);
    }
  }
  if (!is_wrong && open >= 0 && known > 0) {
    shape[open] = count / known;
    known *= shape[open];
  }
  if (is_wrong || known != count || (open >= 0 && shape[open] < 0)) {
    PyObject* has = shape_tuple(self->info.shape, self->info.rank);
    if (has) PyErr_Format(PyExc_ValueError, "a tensor of shape %R cannot be reshaped to %R", has, arguments);
    Py_XDECREF(has);
    return NULL;
  }
  return part(self, 0, shape, (size_t)rank);
}
