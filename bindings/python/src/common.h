// What all files of the extension share: the module's state, its object structs, and helpers.
//
// The extension uses the limited C API of Python 3.11, so one binary serves 3.11 and every later version. All
// types are heap types; there is no static object.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "halyard/halyard.h"

#define STATUS_CODE_COUNT 19

typedef struct deferred_list deferred_list;

typedef struct module_state {
  deferred_list* deferred;
  PyObject* error;                      // halyard.Error
  PyObject* errors[STATUS_CODE_COUNT];  // its subclass for each code; [0] is Error itself
  PyTypeObject* instance_type;
  PyTypeObject* device_type;
  PyTypeObject* program_type;
  PyTypeObject* trace_type;
  PyTypeObject* channels_type;
  PyTypeObject* context_type;
  PyTypeObject* function_type;
  PyTypeObject* call_type;
  PyTypeObject* waker_type;
  PyTypeObject* tensor_type;
  PyTypeObject* object_type;
  PyTypeObject* plain_array_type;  // of the array seen last, known to be no masked array; owned, or null
} module_state;

// One type from its spec, added to the module under its name. 0 or -1.
static inline int add_type(PyObject* module, PyType_Spec* spec, PyTypeObject** out) {
  *out = (PyTypeObject*)PyType_FromModuleAndSpec(module, spec, NULL);
  return *out ? PyModule_AddType(module, *out) : -1;
}

// The state of the module that made the object's type.
static inline module_state* state_of(PyObject* object) {
  return (module_state*)PyType_GetModuleState(Py_TYPE(object));
}

// ---- Objects. Each owns one reference of its handle.

typedef struct {
  PyObject_HEAD
  halyard_instance_t handle;
  PyObject* trace;  // a Trace that lives as long, or null
} InstanceObject;

typedef struct {
  PyObject_HEAD
  halyard_device_t handle;
} DeviceObject;

typedef struct {
  PyObject_HEAD
  halyard_module_t handle;
  halyard_instance_t instance;  // owned
} ProgramObject;

typedef struct {
  PyObject_HEAD
  halyard_trace_t handle;
} TraceObject;

typedef struct {
  PyObject_HEAD
  halyard_channels_t handle;
} ChannelsObject;

typedef struct {
  PyObject_HEAD
  halyard_context_t handle;
  halyard_device_t device;  // the first one, owned; null: a program without devices
  PyThread_type_lock lock;  // held by the call under way
  unsigned long owner;      // the thread that holds it, 0: none; guarded by the interpreter's lock
  PyObject* observers;      // what callbacks use: a tuple, or null
  struct warning_list* warnings;
  PyObject* arrays;  // paths of the files that parameters given as arrays are in: a tuple of str, or null
} ContextObject;

// What one argument of a function takes.
typedef struct {
  char kind;              // 'i', 'I', 'f', 'F', 'r'
  uint32_t element_type;  // of an element of 'r', of the declared type of the others; 0 where not known
  int rank;               // of 'r': -1 where not known
  int64_t* shape;         // -1: any size
  int list_depth;         // so many lists, one in another, of what the above says; 0: no list
  PyObject* name;         // str
} argument_t;

typedef struct {
  PyObject_HEAD
  halyard_function_t handle;
  ContextObject* context;  // owned
  PyObject* name;          // str
  PyObject* declaration;   // str
  argument_t* arguments;
  Py_ssize_t argument_count;  // without the fences of an async function
  Py_ssize_t result_count;
  int is_async;       // coarse fences: two more arguments
  int has_timeout;    // it declares an argument with the name `timeout`, so that calls take no limit by that
                      // name
  PyObject* prepare;  // structured arguments to flat ones: prepare(*args, **kwargs) gives a tuple; or null
  PyObject* finish;   // flat results to structured ones; or null
  // Calls that are not in use, for reuse: a warm call allocates no handle. Guarded by the interpreter's lock.
  halyard_call_t idle[4];
  int idle_count;
} FunctionObject;

typedef struct {
  PyObject_HEAD
  halyard_object_t handle;  // a buffer view
  halyard_view_info_t info;
  void* mapped;                   // the bytes of its elements, where they have been asked for
  size_t mapped_size;             // so many
  int is_mapped;                  // else `mapped` is a copy
  int is_read_only;               // the bytes must not be written to
  Py_ssize_t* shape_and_strides;  // for the buffer protocol, made when first asked for
} TensorObject;

typedef struct {
  PyObject_HEAD
  halyard_object_t handle;  // a list, a buffer, an object of a native module
} ObjectObject;

// ---- deferred.c
typedef struct deferred_t deferred_t;
struct deferred_t {
  void (*run)(deferred_t* item);  // with the interpreter's lock; frees the item and calls forget_deferred
  deferred_t* next;
};
deferred_list* make_deferred_list(void);
void release_deferred_list(deferred_list* list);
// The interpreter shuts down.
void close_deferred(deferred_list* list);
// An item keeps the list from expect_deferred to forget_deferred.
void expect_deferred(deferred_list* list);
void forget_deferred(deferred_list* list);
// On any thread, with or without the interpreter's lock: `run` is called soon, on a thread that has it.
void defer(deferred_list* list, deferred_t* item);
// With the interpreter's lock: does what was deferred.
void run_deferred(deferred_list* list);
// The interpreter's lock for a thread that runs a program. -1: the interpreter is shutting down.
int enter_interpreter(deferred_list* list, PyGILState_STATE* gil);
void leave_interpreter(deferred_list* list, PyGILState_STATE gil);

// ---- errors.c
int add_errors(PyObject* module, module_state* state);
// Raises the exception for the status, which is taken over. Returns -1, or does nothing and returns 0 for
// null.
int raise_status(module_state* state, halyard_status_t status);
// A status for the Python exception that is set, which is cleared: "ValueError: text".
halyard_status_t status_of_exception(module_state* state);

// ---- element_types.c
// DLPack's type codes.
enum dl_code {
#define HALYARD_DLPACK_CODE(name, code) kDl##name = code,
#include "halyard/element_types.inc"
};
typedef struct element_name {
  uint32_t type;
  const char* text;    // "f32"
  const char* numpy;   // "float32"
  const char* format;  // of the buffer protocol; null: it has none
  uint8_t dl_code;     // DLPack's type code
  uint8_t bits;
} element_name_t;
const element_name_t* element_by_type(uint32_t type);     // null: unknown
const element_name_t* element_by_name(const char* name);  // numpy's or Halyard's name
// *unit: 1; of data in the other byte order, the size of what is to be swapped, in bytes.
const element_name_t* element_by_format(const char* format, Py_ssize_t item_size, int* unit);
const element_name_t* element_by_dlpack(uint8_t code, uint8_t bits);
// Whether data of one type may be passed where the other is asked for: signed and signless integers are
// alike.
int same_element(uint32_t expected, uint32_t found);

// ---- instance.c
PyObject* wrap_device(module_state* state, halyard_device_t device);  // takes the device over

// ---- tensor.c
PyObject* wrap_tensor(module_state* state, halyard_object_t view);  // takes the view over

// ---- view_request.c
// What a view of an argument must be.
typedef struct view_request {
  module_state* state;
  halyard_device_t device;  // null: memory of the host
  uint32_t element_type;    // 0: what the data is
  int rank;                 // -1: any
  const int64_t* shape;     // -1: any size
  PyObject* function_name;  // for errors; may be null
  PyObject* argument_name;
  int is_signed;  // integers are meant with a sign, though the type has none
} view_request_t;
// "main(): argument 'x'", for errors; a new reference.
PyObject* place_of(const view_request_t* request);
// Raises InvalidArgumentError with "PLACE text"; takes the text over (null: an exception is set). Returns -1.
int refuse(const view_request_t* request, PyObject* text);
PyObject* shape_tuple(const int64_t* shape, size_t rank);
// 0, or -1 with an exception set.
int check_shape(const view_request_t* request, const int64_t* shape, int rank);
int check_element(const view_request_t* request, uint32_t found);

// ---- memory.c
// The tensor's bytes where the host can read them, in self->mapped. 0, or -1 with an exception set.
int map_tensor(TensorObject* self);
void unmap_tensor(TensorObject* self);
// A view of what is in the buffer, shared where the device can, else copied; copied with the bytes of each
// `unit` turned round, where that is more than 1. Takes the buffer over, also on failure.
int view_of_buffer(const view_request_t* request, uint32_t element_type, const int64_t* shape, int rank,
                   int unit, Py_buffer* bytes, halyard_object_t* out);

// ---- numbers.c: no exception is set
typedef enum { NUMBER_FITS, NUMBER_OF_OTHER_TYPE, NUMBER_OUT_OF_RANGE } number_fault;
typedef enum { INTEGER_ANY_SIGN, INTEGER_SIGNED, INTEGER_UNSIGNED } integer_sign;
int is_truth_value(PyObject* value);  // True, False, and numpy's
// An integer of so many bits. With any sign, from -2^(bits - 1) to 2^bits - 1. One bit: 0 and 1.
number_fault integer_of(PyObject* value, int bits, integer_sign sign, int64_t* out);
// A float that, rounded to so many bits (16, 32, 64), is no infinity unless it is one.
number_fault float_of(PyObject* value, int bits, double* out);

// ---- warnings.c
typedef struct warning_list warning_list;
warning_list* make_warning_list(void);  // null: no memory
void free_warning_list(warning_list* list);
void keep_warning(void* list, const halyard_warning_t* warning);  // any thread
// Gives what was kept to Python's module `warnings`. 0, or -1 with an exception set: a filter, or a warning
// about an array, makes it one.
int raise_warnings(module_state* state, ContextObject* context, int stack_level);

// ---- dlpack.c
// What the value offers, as a view; and a tensor as a capsule.
int view_of_dlpack(const view_request_t* request, PyObject* value, halyard_object_t* out);
PyObject* tensor_to_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_dlpack_device(PyObject* self, PyObject* unused);

// ---- literals.c
// A view of a number or of nested lists of numbers.
int view_of_literal(const view_request_t* request, PyObject* value, halyard_object_t* out);
// A view of what Python gives for an argument: arrays, tensors, nested lists, scalars. 0, or -1 with an
// exception set.
int make_view(const view_request_t* request, PyObject* value, halyard_object_t* out);

// ---- lists.c
// How much of lists within lists is converted, in either direction: they may contain themselves.
typedef struct {
  int depth;           // levels around what is converted now
  Py_ssize_t visited;  // elements so far
} nesting_t;
// Before a list of `size` elements is converted, and after it. 0, or -1 with an exception set and nothing to
// leave.
int enter_list(module_state* state, nesting_t* nesting, size_t size);
void leave_list(nesting_t* nesting);
// What Python gives where a program expects an object: None, tensors and all that makes one, other objects of
// programs, lists and tuples (as vm.list). 0, or -1 with an exception set.
int object_of_value(module_state* state, halyard_device_t device, PyObject* item, halyard_object_t* out);
// Takes over the element's object, also on failure.
int append_to_list(module_state* state, halyard_object_t list, halyard_value_t* element);

// ---- call.c
// Arguments as the function declares them; `values` has room. 0, or -1 with an exception set and nothing to
// release.
int convert_arguments(FunctionObject* function, PyObject* arguments, halyard_value_t* values);
void release_values(halyard_value_t* values, Py_ssize_t count);
// The arguments of a call in the order of the declaration: a new tuple.
PyObject* bind_arguments(FunctionObject* function, PyObject* arguments, PyObject* keywords);
// The result as the caller of the function sees it; takes it over.
PyObject* finish_result(FunctionObject* function, PyObject* result);
// Takes the values over, also on failure.
PyObject* convert_results(module_state* state, halyard_value_t* values, Py_ssize_t count);
// A program may keep a list that it has returned: the list is converted before another call can change it.
int holds_list(const halyard_value_t* values, Py_ssize_t count);
// The end of a call whose results are `result` (null: an exception is set) if they are converted already.
// Gives the program's warnings; null where one of them is an exception. The results are consumed.
PyObject* warn_and_convert(FunctionObject* function, halyard_value_t* results, int is_converted,
                           PyObject* result);
PyObject* convert_value(module_state* state, halyard_value_t* value);  // takes it over
// Takes the context's lock, by the deadline at the latest (as in take_timeout). 0, or -1: an exception is
// set.
int enter_context(module_state* state, ContextObject* context, int64_t deadline);
void leave_context(ContextObject* context);
// A fence for the signal argument of an async function: 0, or -1 with an exception set.
int make_signal_fence(FunctionObject* function, halyard_value_t* out);

// ---- timeout.c
// The deadline that `timeout=` of a call stands for, in nanoseconds of CLOCK_MONOTONIC; INT64_MAX: none.
// *keywords is a new reference to the other keyword arguments (null: none were given). 0, or -1: an exception
// is set.
int take_timeout(FunctionObject* function, PyObject* given, PyObject** keywords, int64_t* deadline);
// Milliseconds until the deadline, rounded up, for halyard_fence_wait.
uint32_t milliseconds_until(int64_t deadline);
// Raises DeadlineExceededError for a call whose deadline passed while it waited for `cause`. Returns -1.
int raise_deadline(module_state* state, const char* cause);

// ---- interrupt.c
// Ctrl-C cancels the call between these two, where it is made on the main thread.
void interrupt_begin(halyard_call_t call);
void interrupt_end(void);

// ---- types, made as the module is imported: 0 or -1
int add_element_types(PyObject* module, module_state* state);
int add_instance_types(PyObject* module, module_state* state);
int add_program_types(PyObject* module, module_state* state);
int add_channels_types(PyObject* module, module_state* state);
int add_context_types(PyObject* module, module_state* state);
int add_call_types(PyObject* module, module_state* state);
int add_tensor_types(PyObject* module, module_state* state);
int add_async_types(PyObject* module, module_state* state);
int add_text_functions(PyObject* module);
// native.c
PyObject* native_module(PyObject* module, PyObject* arguments);
