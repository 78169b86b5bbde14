// Element types by their names in Halyard, numpy, the buffer protocol and DLPack.
#include <string.h>

#include "common.h"

// DLPack's type codes.
enum {
  kDlInt = 0,
  kDlUInt = 1,
  kDlFloat = 2,
  kDlBfloat = 4,
  kDlComplex = 5,
  kDlBool = 6,
  kDlFloat8E4M3FN = 10,
  kDlFloat8E4M3FNUZ = 11,
  kDlFloat8E5M2 = 12,
  kDlFloat8E5M2FNUZ = 13,
  kDlFloat8E8M0FNU = 14,
  kDlNone = 255
};

// Of types that share a name, the first is the one that the name gives.
static const element_name_t kElements[] = {
    {0x21000020, "f32", "float32", "f", kDlFloat, 32},
    {0x10000020, "i32", "int32", "i", kDlInt, 32},
    {0x10000040, "i64", "int64", "q", kDlInt, 64},
    {0x21000040, "f64", "float64", "d", kDlFloat, 64},
    {0x21000010, "f16", "float16", "e", kDlFloat, 16},
    {0x22000010, "bf16", "bfloat16", NULL, kDlBfloat, 16},
    {0x13000008, "i1", "bool", "?", kDlBool, 8},
    {0x10000008, "i8", "int8", "b", kDlInt, 8},
    {0x10000010, "i16", "int16", "h", kDlInt, 16},
    {0x12000008, "ui8", "uint8", "B", kDlUInt, 8},
    {0x12000010, "ui16", "uint16", "H", kDlUInt, 16},
    {0x12000020, "ui32", "uint32", "I", kDlUInt, 32},
    {0x12000040, "ui64", "uint64", "Q", kDlUInt, 64},
    {0x11000008, "si8", "int8", "b", kDlInt, 8},
    {0x11000010, "si16", "int16", "h", kDlInt, 16},
    {0x11000020, "si32", "int32", "i", kDlInt, 32},
    {0x11000040, "si64", "int64", "q", kDlInt, 64},
    {0x23000040, "cf64", "complex64", "Zf", kDlComplex, 64},
    {0x23000080, "cf128", "complex128", "Zd", kDlComplex, 128},
    {0x24000008, "f8E5M2", "float8_e5m2", NULL, kDlFloat8E5M2, 8},
    {0x25000008, "f8E4M3FN", "float8_e4m3fn", NULL, kDlFloat8E4M3FN, 8},
    {0x26000008, "f8E5M2FNUZ", "float8_e5m2fnuz", NULL, kDlFloat8E5M2FNUZ, 8},
    {0x27000008, "f8E4M3FNUZ", "float8_e4m3fnuz", NULL, kDlFloat8E4M3FNUZ, 8},
    {0x28000008, "f8E8M0FNU", "float8_e8m0fnu", NULL, kDlFloat8E8M0FNU, 8},
};
enum { kElementCount = sizeof kElements / sizeof *kElements };

const element_name_t* element_by_type(uint32_t type) {
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[i].type == type) return &kElements[i];
  return NULL;
}

const element_name_t* element_by_name(const char* name) {
  for (int i = 0; i < kElementCount; ++i)
    if (strcmp(kElements[i].numpy, name) == 0 || strcmp(kElements[i].text, name) == 0) return &kElements[i];
  return NULL;
}

const element_name_t* element_by_format(const char* format, Py_ssize_t item_size, int* unit) {
  if (!format) format = "B";
  const int is_big_endian = *format == '>' || *format == '!';
  if (is_big_endian || *format == '<' || *format == '@' || *format == '=')
    ++format;  // hosts of Halyard are little endian
  if (strcmp(format, "l") == 0) format = item_size == 8 ? "q" : "i";
  if (strcmp(format, "L") == 0) format = item_size == 8 ? "Q" : "I";
  if (strcmp(format, "c") == 0) format = "B";
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[i].format && strcmp(kElements[i].format, format) == 0 &&
        kElements[i].bits == item_size * 8) {
      const int parts = kElements[i].dl_code == kDlComplex ? 2 : 1;
      *unit = is_big_endian ? (int)item_size / parts : 1;
      return &kElements[i];
    }
  return NULL;
}

const element_name_t* element_by_dlpack(uint8_t code, uint8_t bits) {
  for (int i = 0; i < kElementCount; ++i)
    if (kElements[i].dl_code == code && kElements[i].bits == bits) return &kElements[i];
  return NULL;
}

int same_element(uint32_t expected, uint32_t found) {
  if (expected == found) return 1;
  // Programs compute with signless integers: 0x10 is any, 0x11 signed, 0x12 unsigned.
  const uint32_t a = expected >> 24, b = found >> 24;
  return (expected & 0xFF) == (found & 0xFF) && a >= 0x10 && a <= 0x12 && b >= 0x10 && b <= 0x12;
}

int add_element_types(PyObject* module, module_state* state) {
  (void)state;
  PyObject* names = PyDict_New();
  for (int i = 0; names && i < kElementCount; ++i) {
    PyObject* pair = Py_BuildValue("(sI)", kElements[i].numpy, (unsigned)kElements[i].bits);
    if (!pair || PyDict_SetItemString(names, kElements[i].text, pair) < 0) Py_CLEAR(names);
    Py_XDECREF(pair);
  }
  if (!names) return -1;
  const int result = PyModule_AddObjectRef(module, "element_types", names);
  Py_DECREF(names);
  return result;
}
