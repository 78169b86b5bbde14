// Context: linked programs and their state.
#include <string.h>

#include "common.h"

// The borrowed handles of a sequence of objects of one type, in an array that the caller frees. 0, or -1.
static int handles_of(PyObject* sequence, PyTypeObject* type, const char* what, PyObject** keep, void*** out,
                      size_t* count) {
  PyObject* list = PySequence_List(sequence);
  if (!list) return -1;
  const Py_ssize_t size = PyList_Size(list);
  void** handles = PyMem_Malloc(sizeof *handles * (size_t)(size + 1));
  if (!handles) {
    Py_DECREF(list);
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = PyList_GetItem(list, i);
    if (Py_TYPE(item) != type) {
      PyErr_Format(PyExc_TypeError, "%s must be a list of %R, but item %zd is %R", what, type, i,
                   Py_TYPE(item));
      PyMem_Free(handles);
      Py_DECREF(list);
      return -1;
    }
    // All these types have the handle at the same offset.
    handles[i] = ((DeviceObject*)item)->handle;
  }
  *keep = list;
  *out = handles;
  *count = (size_t)size;
  return 0;
}

_Static_assert(offsetof(DeviceObject, handle) == offsetof(ProgramObject, handle), "handles_of reads both");

static int parameter_files(PyObject* sequence, PyObject** keep, halyard_parameter_file_t** out,
                           size_t* count) {
  PyObject* list = PySequence_List(sequence);
  if (!list) return -1;
  const Py_ssize_t size = PyList_Size(list);
  halyard_parameter_file_t* files = PyMem_Malloc(sizeof *files * (size_t)(size + 1));
  PyObject* paths = files ? PyList_New(0) : NULL;
  if (!files) PyErr_NoMemory();
  for (Py_ssize_t i = 0; paths && i < size; ++i) {
    PyObject* path = NULL;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sO&", &files[i].scope, PyUnicode_FSConverter, &path) ||
        PyList_Append(paths, path) < 0) {
      Py_CLEAR(paths);
    } else {
      files[i].path = PyBytes_AsString(path);
    }
    Py_XDECREF(path);
  }
  PyObject* both = paths ? PyTuple_Pack(2, list, paths) : NULL;
  Py_DECREF(list);
  Py_XDECREF(paths);
  if (!both) {
    PyMem_Free(files);
    return -1;
  }
  *keep = both;
  *out = files;
  *count = (size_t)size;
  return 0;
}

static PyObject* context_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"instance",  "programs",    "devices",     "parameters",   "max_memory",
                          "max_stack", "max_time_ns", "lead_device", "capture_path", "preload",
                          "channels",  "arrays",      NULL};
  module_state* state = PyType_GetModuleState(type);
  InstanceObject* instance;
  PyObject *programs, *devices, *parameters, *capture = NULL, *channels = Py_None, *arrays = NULL;
  PyObject *max_memory = NULL, *max_stack = NULL, *max_time = NULL, *lead = NULL;
  int preload = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!OOO|$OOOOO&pOO!:Context", names,
                                   state->instance_type, &instance, &programs, &devices, &parameters,
                                   &max_memory, &max_stack, &max_time, &lead, PyUnicode_FSConverter, &capture,
                                   &preload, &channels, &PyTuple_Type, &arrays))
    return NULL;
  halyard_context_options_t options = {.struct_size = sizeof options};
  uint64_t lead_device = 0;
  if (unsigned_of(max_memory, "max_memory", UINT64_MAX, &options.max_memory) < 0 ||
      unsigned_of(max_stack, "max_stack", UINT64_MAX, &options.max_stack) < 0 ||
      unsigned_of(max_time, "max_time_ns", UINT64_MAX, &options.max_time_ns) < 0 ||
      unsigned_of(lead, "lead_device", UINT32_MAX, &lead_device) < 0) {
    Py_XDECREF(capture);
    return NULL;
  }
  if (channels != Py_None && Py_TYPE(channels) != state->channels_type) {
    Py_XDECREF(capture);
    return PyErr_Format(PyExc_TypeError, "channels must be a halyard.Channels or None, not %R",
                        Py_TYPE(channels));
  }
  if (channels != Py_None) options.channels = ((ChannelsObject*)channels)->handle;
  options.lead_device = (uint32_t)lead_device;
  options.flags = preload ? HALYARD_CONTEXT_PRELOAD_PARAMETERS : 0u;
  options.capture_path = capture ? PyBytes_AsString(capture) : NULL;
  PyObject *keep_programs = NULL, *keep_devices = NULL, *keep_files = NULL;
  void **program_handles = NULL, **device_handles = NULL;
  halyard_parameter_file_t* files = NULL;
  ContextObject* self = NULL;
  if (handles_of(programs, state->program_type, "programs", &keep_programs, &program_handles,
                 &options.module_count) == 0 &&
      handles_of(devices, state->device_type, "devices", &keep_devices, &device_handles,
                 &options.device_count) == 0 &&
      parameter_files(parameters, &keep_files, &files, &options.parameter_count) == 0) {
    options.modules = (const halyard_module_t*)program_handles;
    options.devices = (const halyard_device_t*)device_handles;
    options.parameters = files;
    warning_list* warnings = make_warning_list();
    options.warning = keep_warning;
    options.warning_user = warnings;
    halyard_context_t handle = NULL;
    halyard_status_t status = NULL;
    if (warnings) {
      Py_BEGIN_ALLOW_THREADS
      status = halyard_context_create(instance->handle, &options, &handle);
      Py_END_ALLOW_THREADS
    } else {
      PyErr_NoMemory();
    }
    if (raise_status(state, status) == 0 && handle) self = PyObject_New(ContextObject, type);
    if (self) {
      self->handle = handle;
      self->warnings = warnings;
      self->arrays = arrays ? Py_NewRef(arrays) : NULL;
      self->device = options.device_count ? (halyard_device_t)device_handles[0] : NULL;
      halyard_retain(self->device);
      self->lock = PyThread_allocate_lock();
      self->owner = self->loop = 0;
      self->waiting = NULL;
      self->observers = NULL;
      // Level 4 is the caller of halyard.load, which creates the Model, which creates this object.
      if (raise_warnings(state, self, 4) < 0) {
        Py_DECREF((PyObject*)self);
        self = NULL;
      }
    } else {
      halyard_release(handle);
      free_warning_list(warnings);
    }
  }
  PyMem_Free(program_handles);
  PyMem_Free(device_handles);
  PyMem_Free(files);
  Py_XDECREF(keep_programs);
  Py_XDECREF(keep_devices);
  Py_XDECREF(keep_files);
  Py_XDECREF(capture);
  return (PyObject*)self;
}

static void context_free(PyObject* object) {
  ContextObject* self = (ContextObject*)object;
  PyTypeObject* type = Py_TYPE(object);
  halyard_context_t handle = self->handle;
  // The last release may wait for work whose callbacks need the interpreter.
  Py_BEGIN_ALLOW_THREADS
  halyard_release(handle);
  Py_END_ALLOW_THREADS
  run_deferred(state_of(object)->deferred);
  halyard_release(self->device);
  if (self->lock) PyThread_free_lock(self->lock);
  Py_XDECREF(self->observers);
  Py_XDECREF(self->arrays);
  free_warning_list(self->warnings);
  PyObject_Free(self);
  Py_DECREF(type);
}

// Raises an error if a call of this thread would wait for a call of this thread.
static int refuse_reentry(module_state* state, int is_refused) {
  if (!is_refused) return 0;
  return raise_status(
      state, halyard_status_create(
                 HALYARD_FAILED_PRECONDITION,
                 "this thread already runs another call of this model; await that call first, or load the "
                 "model again for concurrent calls"));
}

int check_context(module_state* state, const ContextObject* context) {
  if (context->handle) return 0;
  return raise_status(
      state, halyard_status_create(HALYARD_FAILED_PRECONDITION, "the model is closed; load it again"));
}

int enter_context(module_state* state, ContextObject* context, int64_t deadline) {
  const unsigned long self = PyThread_get_thread_ident();
  while (!PyThread_acquire_lock(context->lock, NOWAIT_LOCK)) {
    if (refuse_reentry(state, context->owner == self || context->loop == self) < 0) return -1;
    const PY_TIMEOUT_T wait = deadline == INT64_MAX ? -1 : (PY_TIMEOUT_T)milliseconds_until(deadline) * 1000;
    PyLockStatus acquired;
    Py_BEGIN_ALLOW_THREADS
    acquired = PyThread_acquire_lock_timed(context->lock, wait, 1);
    Py_END_ALLOW_THREADS
    if (acquired == PY_LOCK_ACQUIRED) break;
    if (acquired == PY_LOCK_FAILURE) return raise_deadline(state, "another call of this model");
    if (PyErr_CheckSignals() < 0) return -1;  // Ctrl-C
  }
  context->owner = self;
  context->loop = 0;
  if (check_context(state, context) == 0) return 0;
  leave_context(context);
  return -1;
}

int queue_for_context(module_state* state, ContextObject* context, context_turn* turn) {
  const unsigned long self = PyThread_get_thread_ident();
  if (PyThread_acquire_lock(context->lock, NOWAIT_LOCK)) {
    context->owner = 0;
    context->loop = self;
    return 1;
  }
  if (refuse_reentry(state, context->owner == self) < 0) return -1;
  context_turn** last = &context->waiting;
  while (*last) last = &(*last)->next;
  turn->next = NULL;
  *last = turn;
  return 0;
}

void leave_queue(ContextObject* context, context_turn* turn) {
  for (context_turn** at = &context->waiting; *at; at = &(*at)->next) {
    if (*at != turn) continue;
    *at = turn->next;
    return;
  }
}

// The first call of the queue gets the lock. Otherwise any thread may take it.
void leave_context(ContextObject* context) {
  context->owner = context->loop = 0;
  context_turn* first = context->waiting;
  if (first) {
    context->waiting = first->next;
    first->come(first);
  } else {
    PyThread_release_lock(context->lock);
  }
}

static PyObject* context_close(PyObject* object, PyObject* unused) {
  (void)unused;
  ContextObject* self = (ContextObject*)object;
  module_state* state = state_of(object);
  if (!self->handle) Py_RETURN_NONE;
  if (enter_context(state, self, INT64_MAX) < 0) return NULL;  // waits for the call under way
  halyard_context_t handle = self->handle;
  halyard_device_t device = self->device;
  self->handle = NULL;
  self->device = NULL;
  Py_BEGIN_ALLOW_THREADS
  halyard_release(handle);
  halyard_release(device);
  Py_END_ALLOW_THREADS
  run_deferred(state->deferred);
  leave_context(self);
  Py_RETURN_NONE;
}

static PyMethodDef context_methods[] = {
    {"close", context_close, METH_NOARGS,
     "Frees the programs' state, after the call under way. Later calls raise FailedPreconditionError."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot context_slots[] = {
    {Py_tp_doc,
     "Context(instance, programs, devices, parameters, *, max_memory=0, "
     "max_stack=0, max_time_ns=0, lead_device=0,\n"
     "        capture_path=None, preload=False, channels=None, arrays=())\n--\n\nLinked programs with their "
     "state. Calls run one at a time; other calls wait."},
    {Py_tp_new, context_new},
    {Py_tp_dealloc, context_free},
    {Py_tp_methods, context_methods},
    {0, NULL}};
static PyType_Spec context_spec = {"halyard.Context", sizeof(ContextObject), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, context_slots};

int add_context_types(PyObject* module, module_state* state) {
  return add_type(module, &context_spec, &state->context_type);
}
