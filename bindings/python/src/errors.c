// Converts statuses to exceptions and back.
#include <string.h>

#include "common.h"

// The name of the class for each code, and the class of Python that it also derives from.
typedef struct {
  const char* name;
  const char* also;
} error_class_t;

static const error_class_t kClasses[STATUS_CODE_COUNT] = {
    {"Error", "RuntimeError"},
    {"CancelledError", NULL},
    {"UnknownError", NULL},
    {"InvalidArgumentError", "ValueError"},
    {"DeadlineExceededError", "TimeoutError"},
    {"NotFoundError", "LookupError"},
    {"AlreadyExistsError", NULL},
    {"PermissionDeniedError", "PermissionError"},
    {"ResourceExhaustedError", "MemoryError"},
    {"FailedPreconditionError", NULL},
    {"AbortedError", NULL},
    {"OutOfRangeError", "IndexError"},
    {"UnimplementedError", "NotImplementedError"},
    {"InternalError", NULL},
    {"UnavailableError", NULL},
    {"DataLossError", NULL},
    {"UnauthenticatedError", NULL},
    {"DeferredError", NULL},
    {"IncompatibleError", NULL},
};

static PyObject* builtin(const char* name) {
  PyObject* builtins = PyImport_ImportModule("builtins");
  if (!builtins) return NULL;
  PyObject* found = PyObject_GetAttrString(builtins, name);
  Py_DECREF(builtins);
  return found;
}

// Creates the class of one code. Python's classes with another layout (OSError and its subclasses) cannot be
// combined with RuntimeError. So Error derives from Exception, and the other classes derive from Error and
// from Python's class.
static PyObject* make_class(const char* name, PyObject* error, const char* also) {
  char full[64] = "halyard.";
  strncat(full, name, sizeof full - strlen(full) - 1);
  PyObject* bases = NULL;
  if (!error) {
    PyObject* base = builtin("Exception");
    if (!base) return NULL;
    bases = PyTuple_Pack(1, base);
    Py_DECREF(base);
  } else if (also) {
    PyObject* other = builtin(also);
    if (!other) return NULL;
    bases = PyTuple_Pack(2, error, other);
    Py_DECREF(other);
  } else {
    bases = PyTuple_Pack(1, error);
  }
  if (!bases) return NULL;
  PyObject* made = PyErr_NewExceptionWithDoc(
      full,
      error
          ? "A failure with this status code. See Error."
          : "A failure.\n\n"
            "code: the status code, as a number; name: its name (\"NOT_FOUND\");\n"
            "message: what was expected and found; trace: the steps that it passed, including the program's "
            "stack.",
      bases, NULL);
  Py_DECREF(bases);
  return made;
}

// `message` and `trace`, which raise_with has stored in the instance's dict. For an exception that Python
// code created, the message is its text, and it has no trace.
static PyObject* from_dict(PyObject* exception, const char* name) {
  PyObject* dict = PyObject_GenericGetDict(exception, NULL);
  PyObject* found = dict ? PyDict_GetItemString(dict, name) : NULL;
  Py_XINCREF(found);
  Py_XDECREF(dict);
  return found;
}

static PyObject* error_message(PyObject* exception, void* unused) {
  (void)unused;
  PyObject* found = from_dict(exception, "message");
  return found || PyErr_Occurred() ? found : PyObject_Str(exception);
}

static PyObject* error_trace(PyObject* exception, void* unused) {
  (void)unused;
  PyObject* found = from_dict(exception, "trace");
  return found || PyErr_Occurred() ? found : PyList_New(0);
}

// Stores `message` or `trace` in the instance's dict. Takes ownership of the value.
static int set_field(PyObject* exception, const char* name, PyObject* value) {
  PyObject* dict = value ? PyObject_GenericGetDict(exception, NULL) : NULL;
  const int result = dict ? PyDict_SetItemString(dict, name, value) : -1;
  Py_XDECREF(dict);
  Py_XDECREF(value);
  return result;
}

// For pickle and copy, which set the entries of the dict.
static int set_error_field(PyObject* exception, PyObject* value, void* name) {
  if (!value) {
    PyErr_Format(PyExc_AttributeError, "'%s' of a failure cannot be deleted", (const char*)name);
    return -1;
  }
  Py_INCREF(value);
  return set_field(exception, name, value);
}

static PyGetSetDef error_fields[] = {
    {"message", error_message, set_error_field, "What was expected and found.", (void*)"message"},
    {"trace", error_trace, set_error_field,
     "The steps that the failure passed, including the program's stack: a list of str.", (void*)"trace"}};

static int set_attribute(PyObject* object, const char* name, PyObject* value) {  // consumes the value
  const int result = value ? PyObject_SetAttrString(object, name, value) : -1;
  Py_XDECREF(value);
  return result;
}

static int add_fields(PyObject* error) {
  for (size_t i = 0; i < sizeof error_fields / sizeof *error_fields; ++i) {
    PyObject* field = PyDescr_NewGetSet((PyTypeObject*)error, &error_fields[i]);
    if (set_attribute(error, error_fields[i].name, field) < 0) return -1;
  }
  return 0;
}

// The class has its code, so that Python code can raise it too: halyard.NotFoundError("no such key").
static int add_code(PyObject* error, halyard_status_code_t code) {
  if (set_attribute(error, "code", PyLong_FromLong(code)) < 0) return -1;
  return set_attribute(error, "name", PyUnicode_FromString(halyard_status_code_name(code)));
}

int add_errors(PyObject* module, module_state* state) {
  state->error = make_class("Error", NULL, NULL);
  if (!state->error || add_fields(state->error) < 0 || add_code(state->error, HALYARD_UNKNOWN) < 0) return -1;
  for (int code = 0; code < STATUS_CODE_COUNT; ++code) {
    if (code == 0) {
      Py_INCREF(state->error);
      state->errors[0] = state->error;
    } else {
      state->errors[code] = make_class(kClasses[code].name, state->error, kClasses[code].also);
      if (!state->errors[code] || add_code(state->errors[code], code) < 0) return -1;
    }
    if (PyModule_AddObjectRef(module, kClasses[code].name, state->errors[code]) < 0) return -1;
  }
  return 0;
}

static int set_text(PyObject* object, const char* name, const char* text, Py_ssize_t size) {
  return set_field(object, name, PyUnicode_DecodeUTF8(text, size, "replace"));
}

// Adds the notes of the status, one for each step on its way. The status's text is "CODE; message; note;
// note...", and the message is known. Tracebacks print notes that were passed to add_note.
static int add_steps(module_state* state, PyObject* exception, const char* text, const char* message) {
  const char* at = strstr(text, message);
  at = at && *message ? at + strlen(message) : NULL;
  const int is_ours = PyObject_IsInstance(exception, state->error) == 1;
  // An exception that passes several calls keeps the steps of the inner ones.
  PyObject* trace = is_ours ? from_dict(exception, "trace") : PyList_New(0);
  if (!trace && !PyErr_Occurred()) trace = PyList_New(0);
  int failed = !trace;
  while (!failed && at && strncmp(at, "; ", 2) == 0) {
    at += 2;
    const char* end = strstr(at, "; ");
    PyObject* note = PyUnicode_DecodeUTF8(at, end ? end - at : (Py_ssize_t)strlen(at), "replace");
    PyObject* added = note ? PyObject_CallMethod(exception, "add_note", "O", note) : NULL;
    failed = !added || PyList_Append(trace, note) < 0;
    Py_XDECREF(added);
    Py_XDECREF(note);
    at = end;
  }
  if (!failed && is_ours) return set_field(exception, "trace", trace);
  Py_XDECREF(trace);
  return failed ? -1 : 0;
}

// The exception of a Python function that a program called, kept while its status passes through the program,
// on the same thread: (exception, message of the status).
static const char kRaised[] = "halyard.raised";

static void keep_raised(PyObject* exception, PyObject* message) {
  PyObject* thread = PyThreadState_GetDict();
  PyObject* pair = thread && exception && message ? PyTuple_Pack(2, exception, message) : NULL;
  if (pair) PyDict_SetItemString(thread, kRaised, pair);
  Py_XDECREF(pair);
  PyErr_Clear();
}

// Takes the kept exception, if this message is its status's. Null: there is none.
static PyObject* take_raised(const char* message) {
  PyObject* thread = PyThreadState_GetDict();
  PyObject* pair = thread ? PyDict_GetItemString(thread, kRaised) : NULL;
  if (!pair) return NULL;
  const char* kept = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(pair, 1), NULL);
  PyObject* exception = kept && strcmp(kept, message) == 0 ? Py_NewRef(PyTuple_GetItem(pair, 0)) : NULL;
  if (PyDict_DelItemString(thread, kRaised) < 0 || !kept) PyErr_Clear();
  return exception;
}

// Raises the exception again, with its traceback.
static int raise_again(module_state* state, PyObject* exception, halyard_status_t status) {
  char* whole = halyard_status_text(status);
  const int failed = whole && add_steps(state, exception, whole, halyard_status_message(status)) < 0;
  halyard_free(whole);
  if (!failed) {
    PyObject* type = Py_NewRef((PyObject*)Py_TYPE(exception));
    PyErr_Restore(type, exception, PyException_GetTraceback(exception));
  } else {
    Py_DECREF(exception);
  }
  return -1;
}

// Messages of the library name options of its C ABI. Python's names for those that its users can cause.
static const struct {
  const char *in_c, *in_python;
} kOptions[] = {{"HALYARD_MODULE_NATIVE", "native=True"},
                {"HALYARD_INSTANCE_COUNT_OBJECTS", "count_objects=True"}};

// A new text, or null with an exception set.
static PyObject* in_words_of_python(const char* message) {
  PyObject* text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
  for (size_t i = 0; text && i < sizeof kOptions / sizeof *kOptions; ++i) {
    if (!strstr(message, kOptions[i].in_c)) continue;
    PyObject* replaced = PyObject_CallMethod(text, "replace", "ss", kOptions[i].in_c, kOptions[i].in_python);
    Py_DECREF(text);
    text = replaced;
  }
  return text;
}

static int raise_with(module_state* state, halyard_status_t status) {
  const halyard_status_code_t code = halyard_status_code(status);
  const char* message = halyard_status_message(status);
  PyObject* raised = take_raised(message);
  if (raised) return raise_again(state, raised, status);
  PyObject* type = state->errors[code > 0 && code < STATUS_CODE_COUNT ? code : 2];
  const char* name = halyard_status_code_name(code);
  PyObject* words = in_words_of_python(message);
  PyObject* text = words ? PyUnicode_FromFormat("%s; %U", name, words) : NULL;
  PyObject* exception = text ? PyObject_CallFunctionObjArgs(type, text, NULL) : NULL;
  Py_XDECREF(text);
  if (!exception) {
    Py_XDECREF(words);
    return -1;
  }
  int failed = set_field(exception, "code", PyLong_FromLong(code)) < 0 ||
               set_text(exception, "name", name, (Py_ssize_t)strlen(name)) < 0 ||
               set_field(exception, "message", Py_NewRef(words)) < 0;
  Py_DECREF(words);
  char* whole = failed ? NULL : halyard_status_text(status);
  if (whole) {
    failed = add_steps(state, exception, whole, message) < 0;
    halyard_free(whole);
  }
  if (!failed) PyErr_SetObject(type, exception);
  Py_DECREF(exception);
  return -1;
}

int raise_status(module_state* state, halyard_status_t status) {
  if (!status) return 0;
  raise_with(state, status);
  halyard_status_release(status);
  return -1;
}

halyard_status_t status_of_exception(module_state* state) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  halyard_status_code_t code = HALYARD_UNKNOWN;
  const int is_ours = value && PyObject_IsInstance(value, state->error) == 1;
  if (is_ours) {
    PyObject* number = PyObject_GetAttrString(value, "code");
    const long given = number ? PyLong_AsLong(number) : 0;
    if (given > 0 && given < STATUS_CODE_COUNT) code = (halyard_status_code_t)given;
    Py_XDECREF(number);
    PyErr_Clear();
  } else if (type && PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt)) {
    code = HALYARD_CANCELLED;
  } else if (type && PyErr_GivenExceptionMatches(type, PyExc_MemoryError)) {
    code = HALYARD_RESOURCE_EXHAUSTED;
  }
  PyObject* name = type ? PyType_GetName((PyTypeObject*)type) : NULL;
  PyObject* message = is_ours ? PyObject_GetAttrString(value, "message") : NULL;
  PyErr_Clear();
  PyObject* text = message && PyUnicode_Check(message) ? Py_NewRef(message)
                   : name                              ? PyUnicode_FromFormat("%U: %S", name, value)
                                                       : NULL;
  Py_XDECREF(message);
  const char* utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (!utf8) {
    PyErr_Clear();
    Py_XDECREF(text);
    text = PyUnicode_FromString("a Python function raised an exception");
    utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : "";
  }
  halyard_status_t status = halyard_status_create(code, utf8);
  if (value && traceback) PyException_SetTraceback(value, traceback);
  keep_raised(value, text);
  Py_XDECREF(text);
  Py_XDECREF(name);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return status;
}
