// Converts modules to text and back: assemble, disassemble, describe.
#include "common.h"

static module_state* module_state_of(PyObject* module) { return (module_state*)PyModule_GetState(module); }

static PyObject* assemble(PyObject* module, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"text", "bytecode_version", "file", NULL};
  const char *source, *file = NULL;
  Py_ssize_t size;
  PyObject* given_version = NULL;
  uint64_t version = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s#|$Oz:assemble", names, &source, &size,
                                   &given_version, &file) ||
      unsigned_of(given_version, "bytecode_version", UINT32_MAX, &version) < 0)
    return NULL;
  halyard_assemble_options_t options = {
      .struct_size = sizeof options, .bytecode_version = (uint32_t)version, .file = file};
  void* bytes = NULL;
  size_t length = 0;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_assemble(source, (size_t)size, &options, &bytes, &length);
  Py_END_ALLOW_THREADS
  if (raise_status(module_state_of(module), status) < 0) return NULL;
  PyObject* result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)length);
  halyard_free(bytes);
  return result;
}

// The text that a function of the C ABI has made of the data. Releases the data, takes ownership of the text.
static PyObject* text_about(PyObject* module, Py_buffer* data, halyard_status_t status, char* text,
                            size_t length) {
  PyBuffer_Release(data);
  if (raise_status(module_state_of(module), status) < 0) return NULL;
  PyObject* result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
  halyard_free(text);
  return result;
}

static PyObject* disassemble(PyObject* module, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"data", "offsets", NULL};
  Py_buffer data;
  int offsets = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "y*|$p:disassemble", names, &data, &offsets))
    return NULL;
  halyard_disassemble_options_t options = {.struct_size = sizeof options,
                                           .flags = offsets ? HALYARD_DISASSEMBLE_OFFSETS : 0u};
  char* text = NULL;
  size_t length = 0;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_disassemble(data.buf, (size_t)data.len, &options, &text, &length);
  Py_END_ALLOW_THREADS
  return text_about(module, &data, status, text, length);
}

static PyObject* describe(PyObject* module, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"data", "json", NULL};
  Py_buffer data;
  int json = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "y*|$p:describe", names, &data, &json)) return NULL;
  char* text = NULL;
  size_t length = 0;
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_module_describe(data.buf, (size_t)data.len,
                                   json ? HALYARD_DESCRIBE_JSON : HALYARD_DESCRIBE_TEXT, &text, &length);
  Py_END_ALLOW_THREADS
  return text_about(module, &data, status, text, length);
}

static PyMethodDef functions[] = {
    {"assemble", (PyCFunction)(void (*)(void))assemble, METH_VARARGS | METH_KEYWORDS,
     "assemble(text, *, bytecode_version=0, file=None)\n--\n\nConverts .vmasm text to the bytes of a "
     "module."},
    {"disassemble", (PyCFunction)(void (*)(void))disassemble, METH_VARARGS | METH_KEYWORDS,
     "disassemble(data, *, offsets=False)\n--\n\nConverts the bytes of a module to .vmasm text, which "
     "assemble accepts."},
    {"describe", (PyCFunction)(void (*)(void))describe, METH_VARARGS | METH_KEYWORDS,
     "describe(data, *, json=False)\n--\n\nDescribes a module: its compiler, its requirements, its functions "
     "and executables."},
    {"native_module", native_module, METH_VARARGS,
     "native_module(instance, name, functions, device=None)\n--\n\nCreates a Program of Python functions: "
     "{\"name\": (convention, callable)}."},
    {NULL, NULL, 0, NULL}};

int add_text_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }
