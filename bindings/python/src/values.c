// The elements of tensors as Python's numbers.
#include <math.h>
#include <string.h>

#include "common.h"

// A float of 16 or 8 bits. `nan`: the bits of NaN, without the sign; formats with infinities have a NaN for
// each other mantissa above it, too.
typedef struct {
  int code, bits, exponent, mantissa, bias;
  int has_infinity;
  uint32_t nan;
} small_float_t;

static const small_float_t kSmallFloats[] = {
    {kDlFloat, 16, 5, 10, 15, 1, 0x7C01},      {kDlBfloat, 16, 8, 7, 127, 1, 0x7F81},
    {kDlFloat8E5M2, 8, 5, 2, 15, 1, 0x7D},     {kDlFloat8E4M3FN, 8, 4, 3, 7, 0, 0x7F},
    {kDlFloat8E5M2FNUZ, 8, 5, 2, 16, 0, 0x80}, {kDlFloat8E4M3FNUZ, 8, 4, 3, 8, 0, 0x80},
    {kDlFloat8E8M0FNU, 8, 8, 0, 127, 0, 0xFF},
};

static const small_float_t* small_float_of(const element_name_t* element) {
  for (size_t i = 0; i < sizeof kSmallFloats / sizeof *kSmallFloats; ++i)
    if (kSmallFloats[i].code == element->dl_code && kSmallFloats[i].bits == element->bits)
      return &kSmallFloats[i];
  return NULL;
}

static double small_float_value(const small_float_t* format, uint32_t bits) {
  const int is_unsigned = format->exponent + format->mantissa == format->bits;
  const uint32_t sign = is_unsigned ? 0 : 1u << (format->bits - 1), magnitude = bits & ~sign;
  const uint32_t last = (1u << format->exponent) - 1;
  const uint32_t exponent = magnitude >> format->mantissa;
  const uint32_t fraction = magnitude & ((1u << format->mantissa) - 1);
  if (format->has_infinity ? magnitude >= format->nan : bits == format->nan || magnitude == format->nan)
    return NAN;
  double value;
  if (format->has_infinity && exponent == last) {
    value = INFINITY;
  } else if (exponent == 0 && format->mantissa > 0) {  // subnormal
    value = ldexp((double)fraction, 1 - format->bias - format->mantissa);
  } else {
    value =
        ldexp((double)(fraction | 1u << format->mantissa), (int)exponent - format->bias - format->mantissa);
  }
  return bits & sign ? -value : value;
}

static double float_value(const element_name_t* element, int bits, const unsigned char* bytes) {
  if (bits == 64) {
    double number;
    memcpy(&number, bytes, sizeof number);
    return number;
  }
  if (bits == 32) {
    float number;
    memcpy(&number, bytes, sizeof number);
    return number;
  }
  const small_float_t* format = small_float_of(element);
  return format ? small_float_value(format, bytes[0] | (bits == 16 ? (uint32_t)bytes[1] << 8 : 0)) : NAN;
}

static PyObject* integer_value(int is_signed, int bits, const unsigned char* bytes) {
  uint64_t number = 0;
  memcpy(&number, bytes, (size_t)bits / 8);  // little endian
  if (!is_signed) return PyLong_FromUnsignedLongLong(number);
  const uint64_t sign = (uint64_t)1 << (bits - 1);
  return PyLong_FromLongLong((int64_t)((number ^ sign) - sign));
}

PyObject* element_value(const element_name_t* element, const unsigned char* bytes) {
  const int half = element->bits / 2;
  switch (element->dl_code) {
    case kDlBool:
      return PyBool_FromLong(*bytes != 0);
    case kDlInt:
    case kDlUInt:
      return integer_value(element->dl_code == kDlInt, element->bits, bytes);
    case kDlComplex:
      return PyComplex_FromDoubles(float_value(element, half, bytes),
                                   float_value(element, half, bytes + half / 8));
    default:
      return PyFloat_FromDouble(float_value(element, element->bits, bytes));
  }
}

// Advances *bytes by the elements.
static PyObject* nested_list(const element_name_t* element, const int64_t* shape, uint32_t rank,
                             const unsigned char** bytes) {
  if (rank == 0) {
    PyObject* value = element_value(element, *bytes);
    *bytes += element->bits / 8;
    return value;
  }
  PyObject* list = PyList_New((Py_ssize_t)shape[0]);
  for (int64_t i = 0; list && i < shape[0]; ++i) {
    PyObject* item = nested_list(element, shape + 1, rank - 1, bytes);
    if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
  }
  return list;
}

const element_name_t* known_element(const TensorObject* tensor) {
  const element_name_t* element = element_by_type(tensor->info.element_type);
  if (!element) {
    char* text = halyard_element_type_text(tensor->info.element_type);
    PyErr_Format(PyExc_TypeError, "elements of type %s have no value in Python; use tobytes()",
                 text ? text : "?");
    halyard_free(text);
  }
  return element;
}

PyObject* list_of_tensor(TensorObject* tensor) {
  const element_name_t* element = known_element(tensor);
  if (!element || map_tensor(tensor) < 0) return NULL;
  const unsigned char* bytes = tensor->mapped;
  return nested_list(element, tensor->info.shape, tensor->info.rank, &bytes);
}
