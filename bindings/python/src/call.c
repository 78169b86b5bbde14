// Function: an export, and blocking calls of it.
#include <string.h>

#include "common.h"
#include "halyard/fence.h"

enum { kFewValues = 16 };  // values of a call on the stack; more are allocated

// ---- Arguments

static int scalar_error(FunctionObject* function, const argument_t* argument, const char* expected,
                        PyObject* value) {
  PyErr_Format(PyExc_TypeError, "%U(): argument '%U' must be %s, not %R", function->name, argument->name,
               expected, Py_TYPE(value));
  return -1;
}

static int range_error(FunctionObject* function, const argument_t* argument, PyObject* value,
                       const char* type, int bits) {
  PyErr_Format(PyExc_OverflowError, "%U(): argument '%U' is %S, which does not fit %s of %d bit%s",
               function->name, argument->name, value, type, bits, bits == 1 ? "" : "s");
  return -1;
}

static int convert_integer(FunctionObject* function, const argument_t* argument, PyObject* value, int bits,
                           halyard_value_t* out) {
  // The declared type may be smaller than the kind that contains it: i8, ui16, i1.
  const uint32_t class = argument->element_type >> 24;
  const int declared = class == 0x13 ? 1 : class >= 0x10 && class <= 0x12 ? argument->element_type & 0xFF : 0;
  const int needed = declared > 0 && declared < bits ? declared : bits;
  const integer_sign sign = class == 0x11   ? INTEGER_SIGNED
                            : class == 0x12 ? INTEGER_UNSIGNED
                                            : INTEGER_ANY_SIGN;
  int64_t number = 0;
  switch (integer_of(value, needed, sign, &number)) {
    case NUMBER_OF_OTHER_TYPE:
      return scalar_error(function, argument, "an int", value);
    case NUMBER_OUT_OF_RANGE:
      return range_error(function, argument, value, "an integer", needed);
    case NUMBER_FITS:
      break;
  }
  out->kind = bits == 32 ? HALYARD_VALUE_I32 : HALYARD_VALUE_I64;
  if (bits == 32) {
    out->i32 = (int32_t)number;
  } else {
    out->i64 = number;
  }
  return 0;
}

static int convert_float(FunctionObject* function, const argument_t* argument, PyObject* value, int bits,
                         halyard_value_t* out) {
  double number = 0;
  switch (float_of(value, bits, &number)) {
    case NUMBER_OF_OTHER_TYPE:
      return scalar_error(function, argument, "a float", value);
    case NUMBER_OUT_OF_RANGE:
      return range_error(function, argument, value, "a float", bits);
    case NUMBER_FITS:
      break;
  }
  out->kind = bits == 32 ? HALYARD_VALUE_F32 : HALYARD_VALUE_F64;
  if (bits == 32) {
    out->f32 = (float)number;
  } else {
    out->f64 = number;
  }
  return 0;
}

static int convert_reference(FunctionObject* function, const argument_t* argument, PyObject* value,
                             halyard_value_t* out) {
  module_state* state = state_of((PyObject*)function);
  if (value == Py_None) {
    if (argument->element_type || argument->rank >= 0)  // declared as a tensor
      return scalar_error(function, argument, "an array or a tensor", value);
    out->kind = HALYARD_VALUE_NULL;
    return 0;
  }
  out->kind = HALYARD_VALUE_OBJECT;
  if (Py_TYPE(value) == state->object_type) {
    out->object = ((ObjectObject*)value)->handle;
    halyard_retain(out->object);
    return 0;
  }
  const view_request_t request = {.state = state,
                                  .device = function->context->device,
                                  .element_type = argument->element_type,
                                  .rank = argument->rank,
                                  .shape = argument->shape,
                                  .function_name = function->name,
                                  .argument_name = argument->name};
  return make_view(&request, value, &out->object);
}

static int convert_argument(FunctionObject* function, const argument_t* argument, PyObject* value,
                            halyard_value_t* out);

// A list of values of the same kind.
static int convert_list(FunctionObject* function, const argument_t* argument, PyObject* value,
                        halyard_value_t* out) {
  if (!PyList_Check(value) && !PyTuple_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%U(): argument '%U' must be a list, not %R", function->name,
                 argument->name, Py_TYPE(value));
    return -1;
  }
  module_state* state = state_of((PyObject*)function);
  argument_t inner = *argument;
  --inner.list_depth;
  out->kind = HALYARD_VALUE_OBJECT;
  if (raise_status(state, halyard_list_create(HALYARD_VALUE_NULL, &out->object)) < 0) return -1;
  int failed = 0;
  for (Py_ssize_t i = 0; !failed && i < PySequence_Size(value); ++i) {
    PyObject* item = PySequence_GetItem(value, i);
    halyard_value_t element = {.kind = HALYARD_VALUE_NULL};
    failed = !item || convert_argument(function, &inner, item, &element) < 0 ||
             append_to_list(state, out->object, &element) < 0;
    Py_XDECREF(item);
  }
  if (failed) halyard_release(out->object);
  return failed ? -1 : 0;
}

static int convert_argument(FunctionObject* function, const argument_t* argument, PyObject* value,
                            halyard_value_t* out) {
  if (argument->list_depth > 0) return convert_list(function, argument, value, out);
  switch (argument->kind) {
    case 'i':
      return convert_integer(function, argument, value, 32, out);
    case 'I':
      return convert_integer(function, argument, value, 64, out);
    case 'f':
      return convert_float(function, argument, value, 32, out);
    case 'F':
      return convert_float(function, argument, value, 64, out);
    default:
      return convert_reference(function, argument, value, out);
  }
}

void release_values(halyard_value_t* values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i)
    if (values[i].kind == HALYARD_VALUE_OBJECT) halyard_release(values[i].object);
}

int convert_arguments(FunctionObject* function, PyObject* arguments, halyard_value_t* values) {
  const Py_ssize_t given = PyTuple_Size(arguments);
  if (given != function->argument_count) {
    PyErr_Format(PyExc_TypeError, "%U() takes %zd argument%s but %zd %s given: %U", function->name,
                 function->argument_count, function->argument_count == 1 ? "" : "s", given,
                 given == 1 ? "was" : "were", function->declaration);
    return -1;
  }
  for (Py_ssize_t i = 0; i < given; ++i) {
    values[i].kind = HALYARD_VALUE_NULL;
    values[i].reserved = 0;
    values[i].i64 = 0;
    if (convert_argument(function, &function->arguments[i], PyTuple_GetItem(arguments, i), &values[i]) < 0) {
      release_values(values, i);
      return -1;
    }
  }
  return 0;
}

// A new tuple of the positional and keyword arguments, in the order of the declaration.
static PyObject* in_order(FunctionObject* function, PyObject* arguments, PyObject* keywords) {
  const Py_ssize_t positional = PyTuple_Size(arguments);
  PyObject* all = PyTuple_New(function->argument_count);
  if (!all) return NULL;
  Py_ssize_t used = 0;
  for (Py_ssize_t i = 0; i < function->argument_count; ++i) {
    PyObject* name = function->arguments[i].name;
    PyObject* named = PyDict_GetItemWithError(keywords, name);
    if (!named && PyErr_Occurred()) goto failed;
    if (i < positional && named) {
      PyErr_Format(PyExc_TypeError, "%U() got argument '%U' twice: by position and by name", function->name,
                   name);
      goto failed;
    }
    PyObject* value = i < positional ? PyTuple_GetItem(arguments, i) : named;
    if (!value) {
      PyErr_Format(PyExc_TypeError, "%U() lacks argument '%U': %U", function->name, name,
                   function->declaration);
      goto failed;
    }
    used += named != NULL;
    Py_INCREF(value);
    PyTuple_SetItem(all, i, value);
  }
  if (used != PyDict_Size(keywords) || positional > function->argument_count) {
    PyErr_Format(PyExc_TypeError, "%U() got unknown or too many arguments; expected %U", function->name,
                 function->declaration);
    goto failed;
  }
  return all;
failed:
  Py_DECREF(all);
  return NULL;
}

PyObject* bind_arguments(FunctionObject* function, PyObject* arguments, PyObject* keywords) {
  if (function->prepare) {
    PyObject* flat = PyObject_Call(function->prepare, arguments, keywords);
    if (flat && !PyTuple_Check(flat)) {
      Py_DECREF(flat);
      return PyErr_Format(PyExc_TypeError, "prepare must return a tuple");
    }
    return flat;
  }
  if (keywords && PyDict_Size(keywords) > 0) return in_order(function, arguments, keywords);
  return Py_NewRef(arguments);
}

PyObject* finish_result(FunctionObject* function, PyObject* result) {
  if (!result || !function->finish) return result;
  PyObject* finished = PyObject_CallFunctionObjArgs(function->finish, result, NULL);
  Py_DECREF(result);
  return finished;
}

// ---- Results

static PyObject* convert_nested(module_state* state, nesting_t* nesting, halyard_value_t* value);

static PyObject* wrap_list(module_state* state, nesting_t* nesting, halyard_object_t handle) {
  size_t size = 0;
  if (raise_status(state, halyard_list_size(handle, &size)) < 0 || enter_list(state, nesting, size) < 0)
    return NULL;
  PyObject* list = PyList_New((Py_ssize_t)size);
  for (size_t i = 0; list && i < size; ++i) {
    halyard_value_t value = {0};
    PyObject* item = NULL;
    if (raise_status(state, halyard_list_get(handle, i, &value)) == 0)
      item = convert_nested(state, nesting, &value);
    if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
  }
  leave_list(nesting);
  return list;
}

static PyObject* wrap_object(module_state* state, nesting_t* nesting, halyard_object_t handle) {
  const char* type = halyard_object_type(handle);
  if (strcmp(type, "hal.buffer_view") == 0) return wrap_tensor(state, handle);
  if (strcmp(type, "vm.list") == 0) {
    PyObject* list = wrap_list(state, nesting, handle);
    halyard_release(handle);
    return list;
  }
  ObjectObject* object = PyObject_New(ObjectObject, state->object_type);
  if (!object) {
    halyard_release(handle);
    return NULL;
  }
  object->handle = handle;
  return (PyObject*)object;
}

static PyObject* convert_nested(module_state* state, nesting_t* nesting, halyard_value_t* value) {
  switch (value->kind) {
    case HALYARD_VALUE_I8:
    case HALYARD_VALUE_I16:
    case HALYARD_VALUE_I32:
      return PyLong_FromLong(value->i32);
    case HALYARD_VALUE_I64:
      return PyLong_FromLongLong(value->i64);
    case HALYARD_VALUE_F32:
      return PyFloat_FromDouble(value->f32);
    case HALYARD_VALUE_F64:
      return PyFloat_FromDouble(value->f64);
    case HALYARD_VALUE_OBJECT:
      return wrap_object(state, nesting, value->object);
    default:
      Py_RETURN_NONE;
  }
}

PyObject* convert_value(module_state* state, halyard_value_t* value) {
  nesting_t nesting = {0};
  return convert_nested(state, &nesting, value);
}

PyObject* convert_results(module_state* state, halyard_value_t* values, Py_ssize_t count) {
  if (count == 0) Py_RETURN_NONE;
  if (count == 1) return convert_value(state, values);
  PyObject* all = PyTuple_New(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = all ? convert_value(state, &values[i]) : NULL;
    if (!item) {
      release_values(values + i + (all ? 1 : 0), count - i - (all ? 1 : 0));
      Py_XDECREF(all);
      return NULL;
    }
    PyTuple_SetItem(all, i, item);
  }
  return all;
}

int holds_list(const halyard_value_t* values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i)
    if (values[i].kind == HALYARD_VALUE_OBJECT &&
        strcmp(halyard_object_type(values[i].object), "vm.list") == 0)
      return 1;
  return 0;
}

PyObject* warn_and_convert(FunctionObject* function, halyard_value_t* results, int is_converted,
                           PyObject* result) {
  if (is_converted && !result) return NULL;
  module_state* state = state_of((PyObject*)function);
  if (raise_warnings(state, function->context, 1) < 0) {
    if (!is_converted) release_values(results, function->result_count);
    Py_XDECREF(result);
    return NULL;
  }
  return is_converted ? result : convert_results(state, results, function->result_count);
}

// ---- Calls

static halyard_call_t take_call(FunctionObject* function) {
  if (function->idle_count > 0) return function->idle[--function->idle_count];
  halyard_call_t call = NULL;
  if (raise_status(state_of((PyObject*)function), halyard_call_create(function->context->handle, &call)) < 0)
    return NULL;
  return call;
}

static void give_back_call(FunctionObject* function, halyard_call_t call) {
  if (function->idle_count < (int)(sizeof function->idle / sizeof *function->idle)) {
    function->idle[function->idle_count++] = call;
  } else {
    halyard_release(call);
  }
}

int make_signal_fence(FunctionObject* function, halyard_value_t* out) {
  *out = (halyard_value_t){.kind = HALYARD_VALUE_OBJECT};
  return raise_status(state_of((PyObject*)function),
                      halyard_fence_create(function->context->device, &out->object));
}

// The fences of an async function for a blocking call: none to wait for, and one that this call awaits.
static int add_fences(FunctionObject* function, halyard_value_t* values) {
  values[function->argument_count] = (halyard_value_t){.kind = HALYARD_VALUE_NULL};
  return make_signal_fence(function, &values[function->argument_count + 1]);
}

int look_at_fence(halyard_object_t fence, int64_t deadline, halyard_status_t* status) {
  enum { kLook = 50 };  // milliseconds
  const uint32_t left = milliseconds_until(deadline);
  *status = halyard_fence_wait(fence, left < kLook ? left : kLook);
  if (left <= kLook || halyard_status_code(*status) != HALYARD_DEADLINE_EXCEEDED) return 1;
  halyard_status_release(*status);
  uint32_t is_reached = 0;  // the status may be the fence's own
  *status = halyard_fence_query(fence, &is_reached);
  return *status || is_reached;
}

// Waits for the fence of an async function. Ctrl-C cancels the call's work, which need not reach or fail the
// fence, so the main thread also looks for Ctrl-C.
static halyard_status_t wait_for_fence(halyard_object_t fence, int64_t deadline) {
  if (!interrupt_watches()) return halyard_fence_wait(fence, milliseconds_until(deadline));
  halyard_status_t status;
  while (!look_at_fence(fence, deadline, &status))
    if (interrupt_seen()) return halyard_status_create(HALYARD_CANCELLED, "Ctrl-C ended the call");
  return status;
}

// Called without the interpreter's lock.
static halyard_status_t run_call(FunctionObject* function, halyard_call_t call, int64_t deadline,
                                 halyard_value_t* arguments, Py_ssize_t argument_count,
                                 halyard_value_t* results) {
  if (deadline != INT64_MAX) {
    halyard_status_t refused = halyard_call_set_deadline(call, deadline);
    if (refused) return refused;
  }
  halyard_status_t status = halyard_call_invoke(call, function->handle, arguments, (size_t)argument_count,
                                                results, (size_t)function->result_count);
  // Removes the deadline if the call could not begin, because it would apply to the next call.
  if (status && deadline != INT64_MAX) halyard_status_release(halyard_call_set_deadline(call, INT64_MAX));
  if (status || !function->is_async) return status;
  status = wait_for_fence(arguments[argument_count - 1].object, deadline);
  if (status) {
    release_values(results, function->result_count);
    halyard_call_cancel(call);  // stops the device's work for the call
  }
  return status;
}

static PyObject* invoke(FunctionObject* function, int64_t deadline, halyard_value_t* arguments,
                        halyard_value_t* results) {
  module_state* state = state_of((PyObject*)function);
  const Py_ssize_t argument_count = function->argument_count + (function->is_async ? 2 : 0);
  PyObject* result = NULL;
  int is_converted = 0, is_interrupted = 0;
  halyard_call_t call = NULL;
  interrupt_call outer = {0};
  if (enter_context(state, function->context, deadline) == 0) {
    call = take_call(function);
    halyard_status_t status = NULL;
    if (call) {
      interrupt_prepare();
      Py_BEGIN_ALLOW_THREADS
      interrupt_begin(call, &outer);
      status = run_call(function, call, deadline, arguments, argument_count, results);
      is_interrupted = interrupt_end(&outer);
      Py_END_ALLOW_THREADS
      give_back_call(function, call);
      if (!status && holds_list(results, function->result_count)) {
        result = convert_results(state, results, function->result_count);
        is_converted = 1;
      }
    }
    leave_context(function->context);
    // Ctrl-C raises KeyboardInterrupt, after Python's handler of the signal, which may raise another
    // exception.
    if (is_interrupted && status && halyard_status_code(status) == HALYARD_CANCELLED) {
      if (PyErr_CheckSignals() < 0) {
        halyard_status_release(status);
      } else if (raise_status(state, status) < 0 &&
                 PyErr_ExceptionMatches(state->errors[HALYARD_CANCELLED])) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
      }
    } else if (call && raise_status(state, status) == 0) {
      result = warn_and_convert(function, results, is_converted, result);
    }
  }
  release_values(arguments, argument_count);
  run_deferred(state->deferred);
  return result;
}

static PyObject* function_call(PyObject* object, PyObject* arguments, PyObject* keywords) {
  FunctionObject* function = (FunctionObject*)object;
  halyard_value_t few[kFewValues];
  halyard_value_t* values = few;
  const Py_ssize_t needed = function->argument_count + 2 + function->result_count;
  if (needed > kFewValues && !(values = PyMem_Malloc(sizeof *values * (size_t)needed)))
    return PyErr_NoMemory();
  int64_t deadline;
  PyObject *others = NULL, *out = NULL, *ordered = NULL, *result = NULL;
  if (take_timeout(function, keywords, &others, &deadline) == 0 && take_out(function, &others, &out) == 0)
    ordered = bind_arguments(function, arguments, others);
  Py_XDECREF(others);
  if (ordered) {
    int failed = convert_arguments(function, ordered, values) < 0;
    if (!failed && function->is_async && add_fences(function, values) < 0) {
      release_values(values, function->argument_count);
      failed = 1;
    }
    if (!failed) result = invoke(function, deadline, values, values + function->argument_count + 2);
  }
  Py_XDECREF(ordered);
  if (values != few) PyMem_Free(values);
  result = write_out(function, result, out);
  Py_XDECREF(out);
  return finish_result(function, result);
}

static PyObject* function_bind(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return bind_arguments((FunctionObject*)self, arguments, keywords);
}

static PyObject* function_call_async(PyObject* self, PyObject* arguments, PyObject* keywords) {
  FunctionObject* function = (FunctionObject*)self;
  PyObject* module = PyImport_ImportModule("halyard._async");  // imports asyncio only if it is used
  int64_t deadline;
  PyObject *others = NULL, *out = NULL, *flat = NULL;
  if (module && take_timeout(function, keywords, &others, &deadline) == 0 &&
      take_out(function, &others, &out) == 0)
    flat = bind_arguments(function, arguments, others);
  PyObject* coroutine = flat ? PyObject_CallMethod(module, "call_async", "OOLO", self, flat,
                                                   (long long)deadline, out ? out : Py_None)
                             : NULL;
  Py_XDECREF(out);
  Py_XDECREF(flat);
  Py_XDECREF(others);
  Py_XDECREF(module);
  return coroutine;
}

// ---- The type

// (name, kind, element type, shape or None[, depth of lists])
static int read_argument(PyObject* given, argument_t* argument) {
  PyObject *name, *shape;
  int kind;
  unsigned int element_type;
  if (!PyArg_ParseTuple(given, "UCIO|i", &name, &kind, &element_type, &shape, &argument->list_depth))
    return -1;
  argument->kind = (char)kind;
  argument->element_type = element_type;
  argument->rank = -1;
  if (shape != Py_None) {
    const Py_ssize_t rank = PySequence_Size(shape);
    if (rank < 0) return -1;
    argument->shape = PyMem_Malloc(sizeof *argument->shape * (size_t)(rank + 1));
    if (!argument->shape) {
      PyErr_NoMemory();
      return -1;
    }
    argument->rank = (int)rank;
    for (Py_ssize_t i = 0; i < rank; ++i) {
      PyObject* size = PySequence_GetItem(shape, i);
      argument->shape[i] = size ? PyLong_AsLongLong(size) : -1;
      Py_XDECREF(size);
      if (PyErr_Occurred()) return -1;
    }
  }
  Py_INCREF(name);
  argument->name = name;
  return 0;
}

// Releases the handles, which keep the context.
static void release_handles(FunctionObject* self) {
  while (self->idle_count > 0) halyard_release(self->idle[--self->idle_count]);
  halyard_release(self->handle);
  self->handle = NULL;
}

static PyObject* function_close(PyObject* self, PyObject* unused) {
  (void)unused;
  if (((FunctionObject*)self)->context->handle) {  // calls may be under way
    raise_status(state_of(self), halyard_status_create(HALYARD_FAILED_PRECONDITION,
                                                       "the model of the function is open; close the model"));
    return NULL;
  }
  release_handles((FunctionObject*)self);
  run_deferred(state_of(self)->deferred);
  Py_RETURN_NONE;
}

static void function_free(PyObject* object) {
  FunctionObject* self = (FunctionObject*)object;
  PyTypeObject* type = Py_TYPE(object);
  release_handles(self);
  for (Py_ssize_t i = 0; self->arguments && i < self->argument_count; ++i) {
    PyMem_Free(self->arguments[i].shape);
    Py_XDECREF(self->arguments[i].name);
  }
  PyMem_Free(self->arguments);
  Py_XDECREF(self->name);
  Py_XDECREF(self->declaration);
  Py_XDECREF(self->prepare);
  Py_XDECREF(self->finish);
  Py_XDECREF(self->about);
  Py_XDECREF((PyObject*)self->context);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject* function_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"context",  "module",      "name",    "arguments", "result_count",
                          "is_async", "declaration", "prepare", "finish",    "has_timeout",
                          "has_out",  "about",       NULL};
  module_state* state = PyType_GetModuleState(type);
  ContextObject* context;
  const char* module = NULL;
  PyObject *name, *described, *declaration = NULL, *prepare = NULL, *finish = NULL, *about = NULL;
  Py_ssize_t result_count;
  int is_async = 0, has_timeout = 0, has_out = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!zUO!n|$pUOOppO:Function", names,
                                   state->context_type, &context, &module, &name, &PyTuple_Type, &described,
                                   &result_count, &is_async, &declaration, &prepare, &finish, &has_timeout,
                                   &has_out, &about))
    return NULL;
  const char* utf8 = PyUnicode_AsUTF8AndSize(name, NULL);
  halyard_function_t handle = NULL;
  if (!utf8 || check_context(state, context) < 0 ||
      raise_status(state, halyard_context_find(context->handle, module, utf8, &handle)) < 0)
    return NULL;
  FunctionObject* self = PyObject_New(FunctionObject, type);
  if (!self) {
    halyard_release(handle);
    return NULL;
  }
  self->handle = handle;
  self->result_count = result_count;
  self->is_async = is_async;
  self->has_timeout = has_timeout;
  self->has_out = has_out;
  self->about = about && about != Py_None ? Py_NewRef(about) : NULL;
  self->idle_count = 0;
  self->argument_count = 0;
  self->context = context;
  Py_INCREF((PyObject*)context);
  self->name = name;
  Py_INCREF(name);
  self->declaration = declaration ? declaration : name;
  Py_INCREF(self->declaration);
  self->prepare = prepare && prepare != Py_None ? Py_NewRef(prepare) : NULL;
  self->finish = finish && finish != Py_None ? Py_NewRef(finish) : NULL;
  const Py_ssize_t count = PyTuple_Size(described);
  self->arguments = PyMem_Calloc((size_t)count + 1, sizeof *self->arguments);
  if (!self->arguments) PyErr_NoMemory();
  for (Py_ssize_t i = 0; self->arguments && i < count; ++i) {
    self->argument_count = i + 1;
    if (read_argument(PyTuple_GetItem(described, i), &self->arguments[i]) < 0) break;
  }
  if (PyErr_Occurred()) Py_CLEAR(self);
  return (PyObject*)self;
}

static PyObject* function_repr(PyObject* self) {
  return PyUnicode_FromFormat("<halyard.Function %U>", ((FunctionObject*)self)->declaration);
}

static PyObject* function_name(PyObject* self, void* unused) {
  (void)unused;
  return Py_NewRef(((FunctionObject*)self)->name);
}

static PyObject* function_declaration(PyObject* self, void* unused) {
  (void)unused;
  return Py_NewRef(((FunctionObject*)self)->declaration);
}

static PyObject* function_context(PyObject* self, void* unused) {
  (void)unused;
  return Py_NewRef((PyObject*)((FunctionObject*)self)->context);
}

// The attribute of this name of the function's description; None: the function has no description.
static PyObject* function_about(PyObject* self, void* name) {
  PyObject* about = ((FunctionObject*)self)->about;
  if (!about) Py_RETURN_NONE;
  return PyObject_GetAttrString(about, name);
}

static PyMethodDef function_methods[] = {
    {"close", function_close, METH_NOARGS, "Frees the function's memory, after its Context is closed."},
    {"bind", (PyCFunction)(void (*)(void))function_bind, METH_VARARGS | METH_KEYWORDS,
     "bind(*args, **kwargs)\n--\n\nReturns the arguments as a tuple, in the order of the declaration."},
    {"call_async", (PyCFunction)(void (*)(void))function_call_async, METH_VARARGS | METH_KEYWORDS,
     "call_async(*args, timeout=None, out=None, **kwargs)\n--\n\nCalls the function from asyncio: await it. "
     "What "
     "it computes on the host runs on a thread of its own; no thread waits for devices. Cancelling the task "
     "cancels the call.\n`timeout` limits it, in seconds from now, including waits for other calls of the "
     "model."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef function_fields[] = {
    {"context", function_context, NULL, "The Context to which the function belongs.", NULL},
    {"__name__", function_name, NULL, "The name of the export.", NULL},
    {"declaration", function_declaration, NULL,
     "The signature from the source, or else from the calling convention.", NULL},
    {"inputs", function_about, NULL, "The arguments, as a tuple of ValueInfo.", "inputs"},
    {"outputs", function_about, NULL, "The results, as a tuple of ValueInfo.", "outputs"},
    {"__signature__", function_about, NULL, NULL, "python_signature"},
    {"__doc__", function_about, NULL, NULL, "documentation"},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot function_slots[] = {{Py_tp_new, function_new},
                                       {Py_tp_dealloc, function_free},
                                       {Py_tp_call, function_call},
                                       {Py_tp_repr, function_repr},
                                       {Py_tp_methods, function_methods},
                                       {Py_tp_getset, function_fields},
                                       {0, NULL}};
static PyType_Spec function_spec = {"halyard.Function", sizeof(FunctionObject), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, function_slots};

int add_call_types(PyObject* module, module_state* state) {
  return add_type(module, &function_spec, &state->function_type);
}
