// Program: a loaded module (the name Module is Python's own).
#include <string.h>

#include "common.h"

static PyObject* text(halyard_text_t given) {
  return PyUnicode_DecodeUTF8(given.data ? given.data : "", (Py_ssize_t)given.size, "replace");
}

static PyObject* program_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"instance", "source", "verify", "preload", "native", NULL};
  module_state* state = PyType_GetModuleState(type);
  InstanceObject* instance;
  PyObject* source;
  int verify = 0, preload = 0, native = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O|$ppp:Program", names, state->instance_type,
                                   &instance, &source, &verify, &preload, &native))
    return NULL;
  uint32_t flags = (verify ? HALYARD_MODULE_VERIFY_EAGERLY : 0u) | (preload ? HALYARD_MODULE_PRELOAD : 0u);
  if (native) flags |= HALYARD_MODULE_NATIVE;
  halyard_module_t handle = NULL;
  halyard_status_t status;
  PyObject* path = NULL;
  if (PyUnicode_Check(source) || PyObject_HasAttrString(source, "__fspath__")) {
    if (!PyUnicode_FSConverter(source, &path)) return NULL;
    const char* name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    status = halyard_module_load_file(instance->handle, name, flags, &handle);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
  } else {
    Py_buffer bytes;
    if (PyObject_GetBuffer(source, &bytes, PyBUF_SIMPLE) < 0) {
      PyErr_Format(PyExc_TypeError, "a module must be a path or bytes, not %R", Py_TYPE(source));
      return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = halyard_module_load_memory(instance->handle, bytes.buf, (size_t)bytes.len, flags, &handle);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&bytes);
  }
  if (raise_status(state, status) < 0) return NULL;
  ProgramObject* self = PyObject_New(ProgramObject, type);
  if (!self) {
    halyard_release(handle);
    return NULL;
  }
  self->handle = handle;
  self->instance = instance->handle;
  halyard_retain(self->instance);
  return (PyObject*)self;
}

static void program_free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  halyard_release(((ProgramObject*)self)->handle);
  run_deferred(state_of(self)->deferred);
  halyard_release(((ProgramObject*)self)->instance);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject* program_info(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_module_info_t info = {.struct_size = sizeof info};
  if (raise_status(state_of(self), halyard_module_info(((ProgramObject*)self)->handle, &info)) < 0)
    return NULL;
  return Py_BuildValue("{sNsIsIsIsO}", "name", text(info.name), "version", info.version, "bytecode_version",
                       info.bytecode_version, "function_count", info.function_count, "needs_devices",
                       info.needs_devices ? Py_True : Py_False);
}

static const char* const kAttributes[] = {"iree.abi", "iree.abi.declaration", "iree.abi.model",
                                          "iree.benchmark", NULL};

static PyObject* program_function(PyObject* self, PyObject* argument) {
  uint64_t index = 0;
  if (unsigned_of(argument, "index", UINT32_MAX, &index) < 0) return NULL;
  halyard_module_t handle = ((ProgramObject*)self)->handle;
  halyard_function_description_t about = {.struct_size = sizeof about};
  if (raise_status(state_of(self), halyard_module_function(handle, (uint32_t)index, &about)) < 0) return NULL;
  PyObject* attributes = PyDict_New();
  for (const char* const* key = kAttributes; attributes && *key; ++key) {
    halyard_text_t value = {NULL, 0};
    halyard_status_t status = halyard_module_function_attribute(handle, (uint32_t)index, *key, &value);
    if (status) halyard_status_release(status);
    PyObject* found = value.data ? text(value) : NULL;
    if (value.data && (!found || PyDict_SetItemString(attributes, *key, found) < 0)) Py_CLEAR(attributes);
    Py_XDECREF(found);
  }
  if (!attributes) return NULL;
  return Py_BuildValue("{sNsNsNsIsIsOsN}", "name", text(about.name), "convention", text(about.convention),
                       "declaration", text(about.declaration), "argument_count", about.argument_count,
                       "result_count", about.result_count, "is_async", about.is_async ? Py_True : Py_False,
                       "attributes", attributes);
}

static PyObject* program_warnings(PyObject* self, PyObject* unused) {
  (void)unused;
  char* found = NULL;
  size_t size = 0;
  if (raise_status(state_of(self), halyard_module_warnings(((ProgramObject*)self)->handle, &found, &size)) <
      0)
    return NULL;
  PyObject* result = PyUnicode_DecodeUTF8(found, (Py_ssize_t)size, "replace");
  halyard_free(found);
  return result;
}

static PyObject* program_prepare(PyObject* self, PyObject* unused) {
  (void)unused;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_module_prepare(((ProgramObject*)self)->handle, HALYARD_PREPARE_DECODE);
  Py_END_ALLOW_THREADS
  if (raise_status(state_of(self), status) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef program_methods[] = {
    {"info", program_info, METH_NOARGS, "Returns name, versions and counts as a dict."},
    {"function", program_function, METH_O, "function(index)\n--\n\nReturns a dict that describes an export."},
    {"warnings", program_warnings, METH_NOARGS,
     "Returns reasons why results may be wrong, one sentence a line."},
    {"prepare", program_prepare, METH_NOARGS,
     "Verifies and decodes all functions now, not at their first call."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot program_slots[] = {
    {Py_tp_doc,
     "Program(instance, source, *, verify=False, preload=False, native=False)\n--\n\nA module, loaded from a "
     "path (.vmfb, .vmasm) or from bytes. halyard.load loads modules and prepares them for calls."},
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_free},
    {Py_tp_methods, program_methods},
    {0, NULL}};
static PyType_Spec program_spec = {"halyard.Program", sizeof(ProgramObject), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, program_slots};

int add_program_types(PyObject* module, module_state* state) {
  return add_type(module, &program_spec, &state->program_type);
}
