// The extension module itself: halyard._halyard.
#include "common.h"

int add_type(PyObject* module, PyType_Spec* spec, PyTypeObject** out) {
  *out = (PyTypeObject*)PyType_FromModuleAndSpec(module, spec, NULL);
  return *out ? PyModule_AddType(module, *out) : -1;
}

static int execute(PyObject* module) {
  module_state* state = PyModule_GetState(module);
  if (add_errors(module, state) < 0 || add_element_types(module, state) < 0 ||
      add_instance_types(module, state) < 0 || add_program_types(module, state) < 0 ||
      add_context_types(module, state) < 0 || add_call_types(module, state) < 0 ||
      add_tensor_types(module, state) < 0 || add_async_types(module, state) < 0 ||
      add_text_functions(module) < 0)
    return -1;
  return PyModule_AddStringConstant(module, "version", halyard_version());
}

// Every object of the state, for the garbage collector.
#define FOR_EACH_OBJECT(DO) \
  DO(error)                 \
  DO(instance_type)         \
  DO(device_type)           \
  DO(program_type)          \
  DO(trace_type)            \
  DO(context_type)          \
  DO(function_type)         \
  DO(call_type)             \
  DO(waker_type)            \
  DO(tensor_type)           \
  DO(object_type)

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

static void free_module(void* module) { clear(module); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                 .m_name = "halyard._halyard",
                                 .m_doc = "Halyard's C ABI as Python types. Use the package halyard.",
                                 .m_size = sizeof(module_state),
                                 .m_slots = slots,
                                 .m_traverse = traverse,
                                 .m_clear = clear,
                                 .m_free = free_module};

PyMODINIT_FUNC PyInit__halyard(void) { return PyModuleDef_Init(&definition); }
