// Functions in Python that programs import: a native module of callables.
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "halyard/module.h"

// Destroyed with the module.
typedef struct {
  deferred_t deferred;  // first, so that their addresses are equal
  deferred_list* list;
  module_state* state;
  PyObject* extension;      // keeps `state` valid
  PyObject* callables;      // list, in the order of the exports
  halyard_device_t device;  // for arrays that the callables return; owned; null: memory of the host
} native_user;

static halyard_status_t out_of_memory(module_state* state) {
  PyErr_NoMemory();
  return status_of_exception(state);
}

static void check_result(uint32_t index, PyObject* item, const char* type, number_fault fault) {
  if (fault == NUMBER_OF_OTHER_TYPE)
    PyErr_Format(PyExc_TypeError, "result %u must be a number for %s, not %R", index, type, Py_TYPE(item));
  if (fault == NUMBER_OUT_OF_RANGE)
    PyErr_Format(PyExc_OverflowError, "result %u is %S, which does not fit %s", index, item, type);
}

// Converts the callable's results to the values that the program expects.
static int take_results(const native_user* self, PyObject* returned, halyard_module_call_t* call) {
  const uint32_t count = call->result_count;
  if (count == 0) return 0;
  PyObject* all = count == 1 ? PyTuple_Pack(1, returned) : PySequence_Tuple(returned);
  if (!all) return -1;
  if (PyTuple_Size(all) != (Py_ssize_t)count) {
    PyErr_Format(PyExc_ValueError, "the function returned %zd values, but its convention has %u results",
                 PyTuple_Size(all), count);
    Py_DECREF(all);
    return -1;
  }
  int failed = 0;
  for (uint32_t i = 0; !failed && i < count; ++i) {
    PyObject* item = PyTuple_GetItem(all, (Py_ssize_t)i);
    halyard_value_t* out = &call->results[i];
    int64_t whole = 0;
    double number = 0;
    const int is_long = out->kind == HALYARD_VALUE_I64 || out->kind == HALYARD_VALUE_F64;
    switch (out->kind) {
      case HALYARD_VALUE_I32:
      case HALYARD_VALUE_I64:
        check_result(i, item, is_long ? "an i64" : "an i32",
                     integer_of(item, is_long ? 64 : 32, INTEGER_ANY_SIGN, &whole));
        if (is_long) {
          out->i64 = whole;
        } else {
          out->i32 = (int32_t)whole;
        }
        break;
      case HALYARD_VALUE_F32:
      case HALYARD_VALUE_F64:
        check_result(i, item, is_long ? "an f64" : "an f32", float_of(item, is_long ? 64 : 32, &number));
        if (is_long) {
          out->f64 = number;
        } else {
          out->f32 = (float)number;
        }
        break;
      default:
        object_of_value(self->state, self->device, item, &out->object);
    }
    failed = PyErr_Occurred() != NULL;
    if (failed) {
      for (uint32_t k = 0; k < i; ++k)
        if (call->results[k].kind == HALYARD_VALUE_OBJECT || call->results[k].kind == HALYARD_VALUE_NULL)
          halyard_release(call->results[k].object);
    }
  }
  Py_DECREF(all);
  return failed ? -1 : 0;
}

static halyard_status_t call_python(void* user, halyard_module_call_t* call) {
  native_user* self = user;
  PyGILState_STATE gil;
  if (enter_interpreter(self->list, &gil) < 0)
    return halyard_status_create(HALYARD_CANCELLED, "the Python interpreter is shutting down");
  halyard_status_t status = NULL;
  PyObject* arguments = PyTuple_New((Py_ssize_t)call->argument_count);
  for (uint32_t i = 0; arguments && i < call->argument_count; ++i) {
    halyard_value_t value = call->arguments[i];
    if (value.kind == HALYARD_VALUE_OBJECT)
      halyard_retain(value.object);  // borrowed; convert_value takes ownership
    PyObject* item = convert_value(self->state, &value);
    if (item) {
      PyTuple_SetItem(arguments, (Py_ssize_t)i, item);
    } else {
      Py_CLEAR(arguments);
    }
  }
  if (!arguments) {
    status = PyErr_Occurred() ? status_of_exception(self->state) : out_of_memory(self->state);
  } else {
    PyObject* callable = PyList_GetItem(self->callables, (Py_ssize_t)call->export_index);
    PyObject* returned = PyObject_Call(callable, arguments, NULL);
    if (!returned || take_results(self, returned, call) < 0) status = status_of_exception(self->state);
    Py_XDECREF(returned);
    Py_DECREF(arguments);
  }
  leave_interpreter(self->list, gil);
  return status;
}

static void free_user(deferred_t* item) {
  native_user* self = (native_user*)item;
  Py_DECREF(self->callables);
  Py_DECREF(self->extension);
  halyard_release(self->device);
  forget_deferred(self->list);
  free(self);
}

// Called when the module is destroyed, on any thread.
static void release_user(void* user) {
  native_user* self = user;
  defer(self->list, &self->deferred);
}

PyObject* native_module(PyObject* module, PyObject* arguments) {
  module_state* state = PyModule_GetState(module);
  InstanceObject* instance;
  const char* name;
  PyObject* functions;
  PyObject* device = Py_None;
  if (!PyArg_ParseTuple(arguments, "O!sO!|O:native_module", state->instance_type, &instance, &name,
                        &PyDict_Type, &functions, &device))
    return NULL;
  if (device != Py_None && Py_TYPE(device) != state->device_type)
    return PyErr_Format(PyExc_TypeError, "device must be a halyard.Device or None, not %R", Py_TYPE(device));
  const Py_ssize_t count = PyDict_Size(functions);
  halyard_module_export_t* exports = PyMem_Calloc((size_t)count + 1, sizeof *exports);
  native_user* user = calloc(1, sizeof *user);
  PyObject* callables = PyList_New(0);
  PyObject *key, *value, *result = NULL;
  Py_ssize_t at = 0, index = 0;
  int failed = !exports || !user || !callables;
  if (failed) PyErr_NoMemory();
  while (!failed && PyDict_Next(functions, &at, &key, &value)) {
    PyObject* callable;
    exports[index].name = PyUnicode_AsUTF8AndSize(key, NULL);
    failed = !exports[index].name || !PyTuple_Check(value) ||
             !PyArg_ParseTuple(value, "sO", &exports[index].convention, &callable) ||
             PyList_Append(callables, callable) < 0;
    if (failed && !PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "functions are {\"name\": (convention, callable)}");
    exports[index++].frame = call_python;
  }
  if (!failed) {
    user->deferred.run = free_user;
    user->list = state->deferred;
    expect_deferred(user->list);
    user->state = state;
    user->extension = Py_NewRef(module);
    user->callables = Py_NewRef(callables);
    if (device != Py_None) user->device = ((DeviceObject*)device)->handle;
    halyard_retain(user->device);
    const halyard_module_definition_t definition = {.struct_size = sizeof definition,
                                                    .abi_version = HALYARD_MODULE_ABI_V1,
                                                    .name = name,
                                                    .export_size = sizeof *exports,
                                                    .exports = exports,
                                                    .export_count = (uint64_t)count,
                                                    .user = user,
                                                    .release = release_user};
    halyard_module_t handle = NULL;
    if (raise_status(state, halyard_module_create_native(instance->handle, &definition, &handle)) < 0) {
      Py_DECREF(user->extension);
      Py_DECREF(user->callables);
      halyard_release(user->device);
      forget_deferred(user->list);
    } else {
      user = NULL;  // now owned by the module
      ProgramObject* program = PyObject_New(ProgramObject, state->program_type);
      if (program) {
        program->handle = handle;
        program->instance = instance->handle;
        halyard_retain(program->instance);
      } else {
        halyard_release(handle);
      }
      result = (PyObject*)program;
    }
  }
  free(user);
  PyMem_Free(exports);
  Py_XDECREF(callables);
  return result;
}
