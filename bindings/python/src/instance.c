// Instance, Device and Trace.
#include "common.h"

static void release_object(PyObject* self, void* handle) {
  PyTypeObject* type = Py_TYPE(self);
  halyard_release(handle);
  PyObject_Free(self);
  Py_DECREF(type);
}

// ---- Trace

static PyObject* trace_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"path", NULL};
  PyObject* path = NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O&:Trace", names, PyUnicode_FSConverter, &path))
    return NULL;
  halyard_trace_t trace = NULL;
  module_state* state = PyType_GetModuleState(type);
  halyard_status_t status = halyard_trace_create(path ? PyBytes_AsString(path) : NULL, &trace);
  Py_XDECREF(path);
  if (raise_status(state, status) < 0) return NULL;
  TraceObject* self = PyObject_New(TraceObject, type);
  if (!self) {
    halyard_release(trace);
    return NULL;
  }
  self->handle = trace;
  return (PyObject*)self;
}

static void trace_free(PyObject* self) { release_object(self, ((TraceObject*)self)->handle); }

static PyObject* trace_finish(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_trace_finish(((TraceObject*)self)->handle);
  Py_END_ALLOW_THREADS
  if (raise_status(state_of(self), status) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject* trace_totals(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_trace_totals_t totals = {.struct_size = sizeof totals};
  if (raise_status(state_of(self), halyard_trace_totals(((TraceObject*)self)->handle, &totals)) < 0)
    return NULL;
  return Py_BuildValue("{sKsKsKsKsKsKsK}", "events", totals.events, "phase_ns", totals.phase_ns, "machine_ns",
                       totals.machine_ns, "import_ns", totals.import_ns, "queue_ns", totals.queue_ns,
                       "device_ns", totals.device_ns, "wait_ns", totals.wait_ns);
}

static PyObject* trace_enter(PyObject* self, PyObject* unused) {
  (void)unused;
  return Py_NewRef(self);
}

static PyObject* trace_exit(PyObject* self, PyObject* arguments) { return trace_finish(self, arguments); }

static PyMethodDef trace_methods[] = {
    {"__enter__", trace_enter, METH_NOARGS, "Returns the trace."},
    {"__exit__", trace_exit, METH_VARARGS, "Calls finish()."},
    {"finish", trace_finish, METH_NOARGS, "Writes all buffered events to the file. More events may follow."},
    {"totals", trace_totals, METH_NOARGS, "Returns a dict of nanoseconds by category of event."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot trace_slots[] = {
    {Py_tp_doc,
     "Trace(path=None)\n--\n\nA timeline of all devices and models of the instances "
     "that use it. With a path,\nwrites a file for ui.perfetto.dev; without "
     "one, only totals() returns data."},
    {Py_tp_new, trace_new},
    {Py_tp_dealloc, trace_free},
    {Py_tp_methods, trace_methods},
    {0, NULL}};
static PyType_Spec trace_spec = {"halyard.Trace", sizeof(TraceObject), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, trace_slots};

// ---- Instance

// The texts of a sequence as a C array, which is valid as long as `*keep`.
static int text_array(PyObject* sequence, PyObject** keep, const char*** out, size_t* count) {
  *out = NULL;
  *count = 0;
  *keep = NULL;
  if (!sequence || sequence == Py_None) return 0;
  PyObject* list = PySequence_List(sequence);
  if (!list) return -1;
  const Py_ssize_t size = PyList_Size(list);
  const char** texts = PyMem_Malloc(sizeof *texts * (size_t)(size + 1));
  if (!texts) {
    Py_DECREF(list);
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* bytes = NULL;
    if (!PyUnicode_FSConverter(PyList_GetItem(list, i), &bytes) || PyList_SetItem(list, i, bytes) < 0) {
      PyMem_Free(texts);
      Py_DECREF(list);
      return -1;
    }
    texts[i] = PyBytes_AsString(bytes);
  }
  *keep = list;
  *out = texts;
  *count = (size_t)size;
  return 0;
}

static PyObject* instance_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"driver_folders", "driver_libraries", "trace",
                          "environment",    "count_objects",    NULL};
  PyObject *folders = NULL, *libraries = NULL, *trace = NULL;
  int environment = 1, count_objects = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOpp:Instance", names, &folders, &libraries,
                                   &trace, &environment, &count_objects))
    return NULL;
  module_state* state = PyType_GetModuleState(type);
  if (trace == Py_None) trace = NULL;
  if (trace && Py_TYPE(trace) != state->trace_type)
    return PyErr_Format(PyExc_TypeError, "trace must be a halyard.Trace or None, not %R", Py_TYPE(trace));
  halyard_instance_options_t options = {.struct_size = sizeof options};
  if (!environment) options.flags |= HALYARD_INSTANCE_NO_ENVIRONMENT;
  if (count_objects) options.flags |= HALYARD_INSTANCE_COUNT_OBJECTS;
  if (trace) options.trace = ((TraceObject*)trace)->handle;
  PyObject *keep_folders = NULL, *keep_libraries = NULL;
  const char **folder_array = NULL, **library_array = NULL;
  InstanceObject* self = NULL;
  if (text_array(folders, &keep_folders, &folder_array, &options.driver_folder_count) == 0 &&
      text_array(libraries, &keep_libraries, &library_array, &options.driver_library_count) == 0) {
    options.driver_folders = folder_array;
    options.driver_libraries = library_array;
    halyard_instance_t handle = NULL;
    if (raise_status(state, halyard_instance_create(&options, &handle)) == 0) {
      self = PyObject_New(InstanceObject, type);
      if (self) {
        self->handle = handle;
        self->trace = trace;
        Py_XINCREF(trace);
      } else {
        halyard_release(handle);
      }
    }
  }
  PyMem_Free(folder_array);
  PyMem_Free(library_array);
  Py_XDECREF(keep_folders);
  Py_XDECREF(keep_libraries);
  return (PyObject*)self;
}

static void instance_free(PyObject* self) {
  PyObject* trace = ((InstanceObject*)self)->trace;
  release_object(self, ((InstanceObject*)self)->handle);
  Py_XDECREF(trace);
}

static PyObject* instance_drivers(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_search_t search = NULL;
  if (raise_status(state_of(self), halyard_instance_search(((InstanceObject*)self)->handle, &search)) < 0)
    return NULL;
  PyObject* list = PyList_New(0);
  static const char* const outcomes[] = {"accepted", "refused", "shadowed", "skipped"};
  for (size_t i = 0; list; ++i) {
    halyard_search_entry_t entry = {.struct_size = sizeof entry};
    halyard_status_t status = halyard_search_entry(search, i, &entry);
    if (status) {  // after the last one
      halyard_status_release(status);
      break;
    }
    PyObject* row =
        Py_BuildValue("{sssssssssssssO}", "path", entry.path, "outcome", outcomes[entry.outcome & 3],
                      "reason", entry.reason, "drivers", entry.drivers, "library", entry.library, "version",
                      entry.version, "is_folder", entry.is_folder ? Py_True : Py_False);
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  halyard_release(search);
  return list;
}

static PyObject* instance_devices(PyObject* self, PyObject* arguments) {
  const char* driver = NULL;
  if (!PyArg_ParseTuple(arguments, "|z:devices", &driver)) return NULL;
  halyard_device_entry_t* entries = NULL;
  size_t count = 0;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_instance_devices(((InstanceObject*)self)->handle, driver, &entries, &count);
  Py_END_ALLOW_THREADS
  if (raise_status(state_of(self), status) < 0) return NULL;
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; ++i) {
    PyObject* row = Py_BuildValue("(ss)", entries[i].uri, entries[i].name);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  halyard_free(entries);
  return list;
}

PyObject* wrap_device(module_state* state, halyard_device_t handle) {
  DeviceObject* device = PyObject_New(DeviceObject, state->device_type);
  if (device) {
    device->handle = handle;
  } else {
    halyard_release(handle);
  }
  return (PyObject*)device;
}

static PyObject* instance_open(PyObject* self, PyObject* arguments) {
  const char* uri;
  PyObject* settings = NULL;
  if (!PyArg_ParseTuple(arguments, "s|O!:open", &uri, &PyDict_Type, &settings)) return NULL;
  module_state* state = state_of(self);
  halyard_device_setting_t pairs[32];
  size_t count = 0;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (settings && PyDict_Next(settings, &at, &key, &value)) {
    if (count == 32) return PyErr_Format(PyExc_ValueError, "a device takes at most 32 settings");
    if (!PyUnicode_Check(key) || !PyUnicode_Check(value))
      return PyErr_Format(PyExc_TypeError, "setting %R of a device must be a str, not %R", key, value);
    pairs[count].key = PyUnicode_AsUTF8AndSize(key, NULL);
    pairs[count].value = pairs[count].key ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    if (!pairs[count++].value) return NULL;
  }
  halyard_device_t handle = NULL;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_device_open_with(((InstanceObject*)self)->handle, uri, pairs, count, &handle);
  Py_END_ALLOW_THREADS
  if (raise_status(state, status) < 0) return NULL;
  return wrap_device(state, handle);
}

static PyObject* object_counts(halyard_object_count_t* counts, size_t count) {
  PyObject* all = PyDict_New();
  for (size_t i = 0; all && i < count; ++i) {
    PyObject* live = PyLong_FromUnsignedLongLong(counts[i].live);
    if (!live || PyDict_SetItemString(all, counts[i].type, live) < 0) Py_CLEAR(all);
    Py_XDECREF(live);
  }
  halyard_free(counts);
  return all;
}

static PyObject* instance_objects(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_object_count_t* counts = NULL;
  size_t count = 0;
  if (raise_status(state_of(self),
                   halyard_instance_objects(((InstanceObject*)self)->handle, &counts, &count)) < 0)
    return NULL;
  return object_counts(counts, count);
}

static PyMethodDef instance_methods[] = {
    {"search", instance_drivers, METH_NOARGS,
     "Returns the log of the search for drivers: a dict for each folder and file, with its outcome and the "
     "reason. Runs no driver."},
    {"devices", instance_devices, METH_VARARGS,
     "devices(driver=None)\n--\n\n(URI, name) of each device of one driver, or of all drivers. Loads these "
     "drivers."},
    {"open", instance_open, METH_VARARGS,
     "open(uri, settings={})\n--\n\nOpens a device: \"local-task\", \"vulkan://0?validate=1\"."},
    {"objects", instance_objects, METH_NOARGS,
     "Counts the buffers and lists of programs that exist, by type; needs count_objects=True."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot instance_slots[] = {
    {Py_tp_doc,
     "Instance(*, driver_folders=(), driver_libraries=(), trace=None, environment=True, "
     "count_objects=False)\n--\n\n"
     "The search for drivers. Most programs need no Instance of their own: halyard.load uses a common one."},
    {Py_tp_new, instance_new},
    {Py_tp_dealloc, instance_free},
    {Py_tp_methods, instance_methods},
    {0, NULL}};
static PyType_Spec instance_spec = {"halyard.Instance", sizeof(InstanceObject), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, instance_slots};

// ---- Device

static void device_free(PyObject* self) { release_object(self, ((DeviceObject*)self)->handle); }

static PyObject* device_uri(PyObject* self, void* unused) {
  (void)unused;
  return PyUnicode_FromString(halyard_device_uri(((DeviceObject*)self)->handle));
}

static PyObject* device_repr(PyObject* self) {
  return PyUnicode_FromFormat("<halyard.Device %s>", halyard_device_uri(((DeviceObject*)self)->handle));
}

// Objects of the same device are equal: tensor.device == model.devices[0].
static PyObject* device_compare(PyObject* self, PyObject* other, int how) {
  if (Py_TYPE(self) != Py_TYPE(other) || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const int are_equal = ((DeviceObject*)self)->handle == ((DeviceObject*)other)->handle;
  return PyBool_FromLong(are_equal == (how == Py_EQ));
}

static Py_hash_t device_hash(PyObject* self) {
  return (Py_hash_t)((uintptr_t)((DeviceObject*)self)->handle >> 4);  // never -1, which means an error
}

static PyObject* device_describe(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_device_description_t about = {.struct_size = sizeof about};
  if (raise_status(state_of(self), halyard_device_describe(((DeviceObject*)self)->handle, &about)) < 0)
    return NULL;
  PyObject* capabilities = PyList_New(0);
  for (uint32_t bit = 0; capabilities && bit < 32; ++bit) {
    const char* name = about.capabilities >> bit & 1 ? halyard_capability_name(bit) : NULL;
    PyObject* text = name ? PyUnicode_FromString(name) : NULL;
    if (name && (!text || PyList_Append(capabilities, text) < 0)) Py_CLEAR(capabilities);
    Py_XDECREF(text);
  }
  if (!capabilities) return NULL;
  return Py_BuildValue("{sssssssIsKsKsKsN}", "driver", about.driver, "library", about.library, "version",
                       about.library_version, "queues", about.queue_count, "memory_alignment",
                       about.memory_alignment, "maximum_allocation", about.maximum_allocation,
                       "import_alignment", about.import_alignment, "capabilities", capabilities);
}

static PyObject* device_memory(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_memory_use_t use = {.struct_size = sizeof use};
  if (raise_status(state_of(self), halyard_device_memory(((DeviceObject*)self)->handle, &use)) < 0)
    return NULL;
  return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "host_live", use.host_live, "host_peak", use.host_peak,
                       "host_allocated", use.host_allocated, "host_freed", use.host_freed, "device_live",
                       use.device_live, "device_peak", use.device_peak, "device_allocated",
                       use.device_allocated, "device_freed", use.device_freed);
}

static PyObject* device_query(PyObject* self, PyObject* arguments) {
  const char *category, *key;
  if (!PyArg_ParseTuple(arguments, "ss:query", &category, &key)) return NULL;
  int32_t known = 0;
  int64_t value = 0;
  if (raise_status(state_of(self),
                   halyard_device_query(((DeviceObject*)self)->handle, category, key, &known, &value)) < 0)
    return NULL;
  if (!known) Py_RETURN_NONE;
  return PyLong_FromLongLong(value);
}

static PyObject* device_objects(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_object_count_t* counts = NULL;
  size_t count = 0;
  if (raise_status(state_of(self), halyard_device_objects(((DeviceObject*)self)->handle, &counts, &count)) <
      0)
    return NULL;
  return object_counts(counts, count);
}

static PyObject* device_trim(PyObject* self, PyObject* unused) {
  (void)unused;
  if (raise_status(state_of(self), halyard_device_trim(((DeviceObject*)self)->handle)) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef device_methods[] = {
    {"describe", device_describe, METH_NOARGS, "Returns the properties of the device as a dict."},
    {"memory", device_memory, METH_NOARGS,
     "Returns the bytes of its allocations as a dict, without imports."},
    {"query", device_query, METH_VARARGS,
     "query(category, key)\n--\n\nAsks the device, like hal.device.query in programs: an int, or None for an "
     "unknown key."},
    {"objects", device_objects, METH_NOARGS,
     "Counts the device's objects that exist, by type; the instance needs count_objects=True."},
    {"trim", device_trim, METH_NOARGS, "Frees memory that the device keeps for reuse."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef device_fields[] = {{"uri", device_uri, NULL, "\"local-task://\"", NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot device_slots[] = {{Py_tp_doc, "A device, opened by Instance.open or halyard.device."},
                                     {Py_tp_dealloc, device_free},
                                     {Py_tp_repr, device_repr},
                                     {Py_tp_richcompare, device_compare},
                                     {Py_tp_hash, device_hash},
                                     {Py_tp_methods, device_methods},
                                     {Py_tp_getset, device_fields},
                                     {0, NULL}};
static PyType_Spec device_spec = {
    "halyard.Device", sizeof(DeviceObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, device_slots};

int add_instance_types(PyObject* module, module_state* state) {
  return add_type(module, &trace_spec, &state->trace_type) < 0 ||
                 add_type(module, &instance_spec, &state->instance_type) < 0 ||
                 add_type(module, &device_spec, &state->device_type) < 0
             ? -1
             : 0;
}
