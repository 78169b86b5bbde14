// Channels: the rank of this process, or of a thread, in a program of several ranks.
#include "halyard/channels.h"

#include <string.h>

#include "common.h"

static PyObject* wrap_channels(PyTypeObject* type, halyard_channels_t handle) {
  ChannelsObject* self = PyObject_New(ChannelsObject, type);
  if (self) {
    self->handle = handle;
  } else {
    halyard_release(handle);
  }
  return (PyObject*)self;
}

static PyObject* channels_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"library", "rank", "rank_count", NULL};
  PyObject* library = NULL;
  halyard_channels_options_t options = {.struct_size = sizeof options, .rank = -1, .rank_count = -1};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O&$ii:Channels", names, PyUnicode_FSConverter,
                                   &library, &options.rank, &options.rank_count))
    return NULL;
  options.library = library ? PyBytes_AsString(library) : NULL;
  halyard_channels_t handle = NULL;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_channels_create(&options, &handle);
  Py_END_ALLOW_THREADS
  Py_XDECREF(library);
  return raise_status(PyType_GetModuleState(type), status) < 0 ? NULL : wrap_channels(type, handle);
}

static void channels_free(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  halyard_release(((ChannelsObject*)object)->handle);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyObject* channels_local(PyObject* type, PyObject* count) {
  const unsigned long ranks = PyLong_AsUnsignedLong(count);
  if (PyErr_Occurred()) return NULL;
  if (ranks > UINT16_MAX)
    return PyErr_Format(PyExc_ValueError, "expected at most 65535 ranks, found %lu", ranks);
  halyard_channels_t* handles = PyMem_Calloc(ranks + 1, sizeof *handles);
  if (!handles) return PyErr_NoMemory();
  PyObject* list = NULL;
  if (raise_status(PyType_GetModuleState((PyTypeObject*)type),
                   halyard_channels_create_local((uint32_t)ranks, handles)) == 0)
    list = PyList_New((Py_ssize_t)ranks);
  for (unsigned long i = 0; i < ranks; ++i) {
    PyObject* item = list ? wrap_channels((PyTypeObject*)type, handles[i]) : NULL;
    if (!list) halyard_release(handles[i]);
    if (list && (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)) Py_CLEAR(list);
  }
  PyMem_Free(handles);
  return list;
}

static PyObject* channels_world(PyObject* object, PyObject* unused) {
  (void)unused;
  halyard_channels_world_t world = {.struct_size = sizeof world};
  if (raise_status(state_of(object), halyard_channels_world(((ChannelsObject*)object)->handle, &world)) < 0)
    return NULL;
  return Py_BuildValue("{sIsIsIsIss}", "rank", world.rank, "count", world.count, "local_rank",
                       world.local_rank, "local_count", world.local_count, "description", world.description);
}

static PyObject* channels_import(PyObject* object, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"id", "handle", "kind", NULL};
  const char *id, *kind = "MPI_Comm";
  unsigned long long communicator;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sK|s:import_communicator", names, &id, &communicator,
                                   &kind))
    return NULL;
  halyard_channels_t handle = ((ChannelsObject*)object)->handle;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS  // waits for the other ranks
  status = halyard_channels_import(handle, id, kind, communicator);
  Py_END_ALLOW_THREADS
  if (raise_status(state_of(object), status) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject* channels_set_timeout(PyObject* object, PyObject* given) {
  double seconds = 0;
  if (given != Py_None) seconds = PyFloat_AsDouble(given);
  if (PyErr_Occurred()) return NULL;
  if (!(seconds >= 0 && seconds < 1e9))
    return PyErr_Format(PyExc_ValueError, "expected seconds from 0 (no limit) to 1e9, found %R", given);
  if (raise_status(state_of(object), halyard_channels_set_timeout(((ChannelsObject*)object)->handle,
                                                                  (uint64_t)(seconds * 1e9))) < 0)
    return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef channels_methods[] = {
    {"local", channels_local, METH_O | METH_CLASS,
     "local(count)\n--\n\nReturns a list of Channels, the ranks of a world within this process. Each is for "
     "a model that a separate thread calls."},
    {"world", channels_world, METH_NOARGS,
     "world()\n--\n\nReturns a dict: rank, count, local_rank, local_count, description."},
    {"import_communicator", (PyCFunction)(void (*)(void))channels_import, METH_VARARGS | METH_KEYWORDS,
     "import_communicator(id, handle, kind='MPI_Comm')\n--\n\nRegisters a communicator, so that programs can "
     "use it by this id. For mpi4py, the handle is MPI._handleof(comm).\nAll ranks of the communicator must "
     "call this; the communicator may be freed afterwards."},
    {"set_timeout", channels_set_timeout, METH_O,
     "set_timeout(seconds)\n--\n\nLimits how long collectives wait for other ranks; None or 0: no limit."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot channels_slots[] = {
    {Py_tp_doc,
     "Channels(library=None, *, rank=-1, rank_count=-1)\n--\n\n"
     "This process as a rank of the job that a launcher (mpirun) has started; without a launcher, the only "
     "rank.\nFor load(..., channels=...)."},
    {Py_tp_new, channels_new},
    {Py_tp_dealloc, channels_free},
    {Py_tp_methods, channels_methods},
    {0, NULL}};
static PyType_Spec channels_spec = {"halyard.Channels", sizeof(ChannelsObject), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, channels_slots};

int add_channels_types(PyObject* module, module_state* state) {
  return add_type(module, &channels_spec, &state->channels_type);
}
