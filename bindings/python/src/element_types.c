// Finds element types by their names in Halyard, numpy, the buffer protocol and DLPack.
#include <string.h>

#include "common.h"

// If types share a name, the name finds the first of them. Types that numpy lacks ("") are not found.
enum {
#define HALYARD_NUMERICAL_TYPE(name, value, prefix, dlpack, ...) kDlOf##name = kDl##dlpack,
#include "halyard/element_types.inc"
};
static const element_name_t kElements[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, ...) \
  {HALYARD_ELEMENT_##symbol, text, numpy, sizeof buffer > 1 ? buffer : NULL, kDlOf##numerical, bits},
#include "halyard/element_types.inc"
};
enum { kElementCount = sizeof kElements / sizeof *kElements };

static int is_known(const element_name_t* element) { return *element->numpy != 0; }

const element_name_t* element_by_type(uint32_t type) {
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[i].type == type && is_known(&kElements[i])) return &kElements[i];
  return NULL;
}

static int is_same(const char* a, const char* b) { return *a == *b && strcmp(a, b) == 0; }

const element_name_t* element_by_name(const char* name) {
  for (int i = 0; i < kElementCount; ++i)
    if (is_known(&kElements[i]) && (is_same(kElements[i].numpy, name) || is_same(kElements[i].text, name)))
      return &kElements[i];
  return NULL;
}

const element_name_t* element_by_format(const char* format, Py_ssize_t item_size, int* unit) {
  if (!format) format = "B";
  const int is_big_endian = *format == '>' || *format == '!';
  if (is_big_endian || *format == '<' || *format == '@' || *format == '=')
    ++format;  // all hosts of Halyard are little endian
  if (strcmp(format, "l") == 0) format = item_size == 8 ? "q" : "i";
  if (strcmp(format, "L") == 0) format = item_size == 8 ? "Q" : "I";
  if (strcmp(format, "c") == 0) format = "B";
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[i].bits == item_size * 8 && kElements[i].format &&
        strcmp(kElements[i].format, format) == 0) {
      const int parts = kElements[i].dl_code == kDlComplex ? 2 : 1;
      *unit = is_big_endian ? (int)item_size / parts : 1;
      return &kElements[i];
    }
  return NULL;
}

const element_name_t* element_by_dlpack(uint8_t code, uint8_t bits) {
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[i].dl_code == code && kElements[i].bits == bits && is_known(&kElements[i]))
      return &kElements[i];
  return NULL;
}

// The upper bytes of integer types. Programs compute with signless integers.
enum { kSignless = 0x10, kSigned = 0x11, kUnsigned = 0x12 };

int same_integers(uint32_t expected, uint32_t found) {
  const uint32_t a = expected >> 24, b = found >> 24;
  return (expected & 0xFF) == (found & 0xFF) && a >= kSignless && a <= kUnsigned && b >= kSignless &&
         b <= kUnsigned;
}

int same_element(uint32_t expected, uint32_t found) {
  if (expected == found) return 1;
  return same_integers(expected, found) && (expected >> 24 == kSignless || found >> 24 == kSignless);
}

uint32_t with_sign(uint32_t type) {
  return type >> 24 == kSignless ? (uint32_t)kSigned << 24 | (type & 0xFFFFFF) : type;
}

// Adds one entry and releases the value.
static int put(PyObject* dict, const char* key, PyObject* value) {
  const int result = value ? PyDict_SetItemString(dict, key, value) : -1;
  Py_XDECREF(value);
  return result;
}

static int put_number(PyObject* dict, long number, const char* name) {
  PyObject* key = PyLong_FromLong(number);
  PyObject* value = key ? PyUnicode_FromString(name) : NULL;
  const int result = value ? PyDict_SetItem(dict, key, value) : -1;
  Py_XDECREF(value);
  Py_XDECREF(key);
  return result;
}

// For this package's Python modules: _element_numbers by the texts of declarations; _numerical_types by the
// prefixes of types of any width; _safetensors, the names of that format by numpy's names; _numpy_names,
// numpy's names by numbers.
static int add_tables(PyObject* module) {
  PyObject *numbers = PyDict_New(), *numerical = PyDict_New(), *safe = PyDict_New();
  PyObject* names = PyDict_New();
  int result = numbers && numerical && safe && names ? 0 : -1;
#define HALYARD_NUMERICAL_TYPE(name, value, prefix, ...) \
  if (result == 0 && *prefix) result = put(numerical, prefix, PyLong_FromLong(value));
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, npy, safetensors, ...) \
  if (result == 0 && *declared) result = put(numbers, declared, PyLong_FromLong(HALYARD_ELEMENT_##symbol)); \
  if (result == 0 && *safetensors) result = put(safe, numpy, PyUnicode_FromString(safetensors));            \
  if (result == 0 && *numpy) result = put_number(names, HALYARD_ELEMENT_##symbol, numpy);
#include "halyard/element_types.inc"
  if (result == 0) result = PyModule_AddObjectRef(module, "_element_numbers", numbers);
  if (result == 0) result = PyModule_AddObjectRef(module, "_numerical_types", numerical);
  if (result == 0) result = PyModule_AddObjectRef(module, "_safetensors", safe);
  if (result == 0) result = PyModule_AddObjectRef(module, "_numpy_names", names);
  Py_XDECREF(names);
  Py_XDECREF(numbers);
  Py_XDECREF(numerical);
  Py_XDECREF(safe);
  return result;
}

int add_element_types(PyObject* module, module_state* state) {
  (void)state;
  PyObject* names = PyDict_New();
  for (int i = 0; names && i < kElementCount; ++i) {
    if (!is_known(&kElements[i])) continue;
    PyObject* pair = Py_BuildValue("(sI)", kElements[i].numpy, (unsigned)kElements[i].bits);
    if (put(names, kElements[i].text, pair) < 0) Py_CLEAR(names);
  }
  if (!names) return -1;
  const int result = PyModule_AddObjectRef(module, "element_types", names);
  Py_DECREF(names);
  return result < 0 ? result : add_tables(module);
}
