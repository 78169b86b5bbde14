// Converts Python's numbers to numbers of programs, or fails. No value is truncated, and no finite value is
// rounded to infinity.
#include <math.h>
#include <string.h>

#include "common.h"

int unsigned_of(PyObject* value, const char* name, uint64_t most, uint64_t* out) {
  if (!value) return 0;
  PyObject* index = PyNumber_Index(value);
  if (!index) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", name, Py_TYPE(value));
    return -1;
  }
  const unsigned long long number = PyLong_AsUnsignedLongLong(index);
  const int is_outside = number == (unsigned long long)-1 && PyErr_Occurred();
  Py_DECREF(index);
  if (is_outside || number > most) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s must be from 0 to %llu, not %S", name, (unsigned long long)most,
                 value);
    return -1;
  }
  *out = number;
  return 0;
}

// The kind of a numpy scalar or array, from its dtype: 'f', 'c', 'M'. 0: none.
static char kind_of(PyObject* value) {
  PyObject* dtype = PyObject_GetAttrString(value, "dtype");
  PyObject* kind = dtype ? PyObject_GetAttrString(dtype, "kind") : NULL;
  const char* text = kind && PyUnicode_Check(kind) ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
  const char found = text ? *text : 0;
  PyErr_Clear();
  Py_XDECREF(kind);
  Py_XDECREF(dtype);
  return found;
}

int is_truth_value(PyObject* value) {
  if (PyBool_Check(value)) return 1;
  return !PyLong_Check(value) && !PyFloat_Check(value) && kind_of(value) == 'b';
}

number_fault integer_of(PyObject* value, int bits, integer_sign sign, int64_t* out) {
  if (!PyLong_Check(value) && is_truth_value(value)) {  // numpy's, which warns when used as an index
    const int is_true = PyObject_IsTrue(value);
    if (is_true >= 0) {
      *out = is_true;
      return NUMBER_FITS;
    }
    PyErr_Clear();
    return NUMBER_OF_OTHER_TYPE;
  }
  PyObject* index = PyNumber_Index(value);  // also numpy's integers, and bool
  if (!index) {
    PyErr_Clear();
    return NUMBER_OF_OTHER_TYPE;
  }
  int overflow = 0;
  int64_t number = PyLong_AsLongLongAndOverflow(index, &overflow);
  int is_unsigned = 0;
  if (overflow > 0 && bits == 64 && sign != INTEGER_SIGNED) {
    const unsigned long long whole = PyLong_AsUnsignedLongLong(index);
    is_unsigned = !PyErr_Occurred();
    PyErr_Clear();
    number = (int64_t)whole;
  }
  Py_DECREF(index);
  if (overflow && !is_unsigned) return NUMBER_OUT_OF_RANGE;
  if (sign == INTEGER_UNSIGNED && number < 0 && !is_unsigned) return NUMBER_OUT_OF_RANGE;
  if (bits == 1 && number != 0 && number != 1) return NUMBER_OUT_OF_RANGE;
  if (bits > 1 && bits < 64) {
    const int64_t half = (int64_t)1 << (bits - 1);
    if (number < -half || number >= (sign == INTEGER_SIGNED ? half : 2 * half)) return NUMBER_OUT_OF_RANGE;
  }
  *out = number;
  return NUMBER_FITS;
}

// Whether the value, which __float__ converts to this infinity, is a finite number: Decimal("1e400"),
// numpy.longdouble("1e400"). A value that cannot be compared with floats is what __float__ returns.
static int is_finite_value(PyObject* value, double infinity) {
  if (PyFloat_Check(value)) return 0;
  PyObject* number = PyFloat_FromDouble(infinity);
  const int is_finite = number ? PyObject_RichCompareBool(value, number, infinity > 0 ? Py_LT : Py_GT) : 0;
  Py_XDECREF(number);
  PyErr_Clear();
  return is_finite > 0;
}

number_fault float_of(PyObject* value, int bits, double* out) {
  if (!PyFloat_Check(value) && !PyLong_Check(value)) {
    if (PyUnicode_Check(value) || PyBytes_Check(value) || PyComplex_Check(value)) return NUMBER_OF_OTHER_TYPE;
    const char kind = kind_of(value);
    // The __float__ of these kinds loses their meaning.
    if (kind && strchr("cmMSUO", kind)) return NUMBER_OF_OTHER_TYPE;
  }
  const double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred()) {
    const int is_large = PyErr_ExceptionMatches(PyExc_OverflowError);
    PyErr_Clear();
    return is_large ? NUMBER_OUT_OF_RANGE : NUMBER_OF_OTHER_TYPE;
  }
  // Numbers half a last place above the largest number round to infinity.
  const double limit = bits == 16 ? 65520.0 : bits == 32 ? 0x1.ffffffp127 : INFINITY;
  if (isfinite(number) && fabs(number) >= limit) return NUMBER_OUT_OF_RANGE;
  if (isinf(number) && is_finite_value(value, number)) return NUMBER_OUT_OF_RANGE;
  *out = number;
  return NUMBER_FITS;
}
