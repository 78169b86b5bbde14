// The extension module itself: halyard._halyard.
#include "common.h"

static PyObject* at_exit(PyObject* module, PyObject* unused) {
  (void)unused;
  close_deferred(((module_state*)PyModule_GetState(module))->deferred);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"_close", at_exit, METH_NOARGS,
     "Called when the interpreter shuts down: waits until no device thread needs it."},
    {NULL, NULL, 0, NULL}};

static int close_at_exit(PyObject* module) {
  PyObject* function = PyObject_GetAttrString(module, "_close");
  PyObject* exits = function ? PyImport_ImportModule("atexit") : NULL;
  PyObject* done = exits ? PyObject_CallMethod(exits, "register", "O", function) : NULL;
  const int result = done ? 0 : -1;
  Py_XDECREF(done);
  Py_XDECREF(exits);
  Py_XDECREF(function);
  return result;
}

static int execute(PyObject* module) {
  module_state* state = PyModule_GetState(module);
  if (!(state->deferred = make_deferred_list())) {
    PyErr_NoMemory();
    return -1;
  }
  if (close_at_exit(module) < 0 || add_errors(module, state) < 0 || add_element_types(module, state) < 0 ||
      add_instance_types(module, state) < 0 || add_program_types(module, state) < 0 ||
      add_channels_types(module, state) < 0 || add_context_types(module, state) < 0 ||
      add_call_types(module, state) < 0 || add_tensor_types(module, state) < 0 ||
      add_async_types(module, state) < 0 || add_text_functions(module) < 0)
    return -1;
  const int is_main = PyInterpreterState_GetID(PyInterpreterState_Get()) == 0;
  if (PyModule_AddIntConstant(module, "_is_main_interpreter", is_main) < 0) return -1;
  return PyModule_AddStringConstant(module, "version", halyard_version());
}

// Every object of the state, for the garbage collector.
#define FOR_EACH_OBJECT(DO) \
  DO(error)                 \
  DO(instance_type)         \
  DO(device_type)           \
  DO(program_type)          \
  DO(trace_type)            \
  DO(channels_type)         \
  DO(context_type)          \
  DO(function_type)         \
  DO(call_type)             \
  DO(waker_type)            \
  DO(tensor_type)           \
  DO(object_type)           \
  DO(plain_array_type)

static int traverse(PyObject* module, visitproc visit, void* arg) {
  module_state* state = PyModule_GetState(module);
#define VISIT(field) Py_VISIT(state->field);
  FOR_EACH_OBJECT(VISIT)
  for (int i = 0; i < STATUS_CODE_COUNT; ++i) Py_VISIT(state->errors[i]);
  return 0;
}

static int clear(PyObject* module) {
  module_state* state = PyModule_GetState(module);
#define CLEAR(field) Py_CLEAR(state->field);
  FOR_EACH_OBJECT(CLEAR)
  for (int i = 0; i < STATUS_CODE_COUNT; ++i) Py_CLEAR(state->errors[i]);
  return 0;
}

static void free_module(void* module) {
  clear(module);
  module_state* state = PyModule_GetState(module);
  release_deferred_list(state->deferred);
  state->deferred = NULL;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                 .m_name = "halyard._halyard",
                                 .m_doc = "Halyard's C ABI as Python types. Use the package halyard.",
                                 .m_size = sizeof(module_state),
                                 .m_methods = methods,
                                 .m_slots = slots,
                                 .m_traverse = traverse,
                                 .m_clear = clear,
                                 .m_free = free_module};

PyMODINIT_FUNC PyInit__halyard(void) { return PyModuleDef_Init(&definition); }
