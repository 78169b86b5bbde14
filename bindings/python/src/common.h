// Shared by all files of the extension: the module's state, its object structs, and helpers.
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
  PyObject* errors[STATUS_CODE_COUNT];  // its subclass for each code; [0] is Error
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
  PyTypeObject* plain_array_type;  // type of the last array, which is known not to be masked; owned, or null
} module_state;

// Creates a type from its spec and adds it to the module under its name. 0 or -1.
static inline int add_type(PyObject* module, PyType_Spec* spec, PyTypeObject** out) {
  *out = (PyTypeObject*)PyType_FromModuleAndSpec(module, spec, NULL);
  return *out ? PyModule_AddType(module, *out) : -1;
}

// The state of the module that created the object's type.
static inline module_state* state_of(PyObject* object) {
  return (module_state*)PyType_GetModuleState(Py_TYPE(object));
}

// ---- Objects. Each owns one reference to its handle.

typedef struct {
  PyObject_HEAD
  halyard_instance_t handle;
  PyObject* trace;  // a Trace, kept alive; or null
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
  halyard_context_t handle;  // null: closed
  halyard_device_t device;   // the first one, owned; null: a program without devices
  PyThread_type_lock lock;   // held by the call under way
  // Guarded by the interpreter's lock, like all fields below.
  unsigned long owner;           // the thread that runs the call under way; 0: none, or the call waits
  unsigned long loop;            // the thread of the event loop that drives that call; 0: a blocking call
  struct context_turn* waiting;  // calls of event loops that wait for their turn, in order
  PyObject* observers;           // objects that callbacks use: a tuple, or null
  struct warning_list* warnings;
  PyObject* arrays;  // paths of the files for parameters that were passed as arrays: a tuple of str, or null
} ContextObject;

// The declaration of one argument of a function.
typedef struct {
  char kind;              // 'i', 'I', 'f', 'F', 'r'
  uint32_t element_type;  // of the elements of 'r', or the declared type of other kinds; 0: unknown
  int rank;               // of 'r'; -1: unknown
  int64_t* shape;         // -1: any size
  int list_depth;         // levels of nested lists of the type above; 0: no list
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
  int is_async;       // coarse fences: two additional arguments
  int has_timeout;    // it declares an argument `timeout`, so `timeout=` is not a time limit
  int has_out;        // it declares an argument `out`, so `out=` is not a place for results
  PyObject* about;    // its halyard._signature.Signature, or null
  PyObject* prepare;  // structured to flat arguments: prepare(*args, **kwargs) returns a tuple; or null
  PyObject* finish;   // flat results to structured ones; or null
  // Unused calls for reuse, so that a warm call allocates no handle. Guarded by the interpreter's lock.
  halyard_call_t idle[4];
  int idle_count;
} FunctionObject;

typedef struct {
  PyObject_HEAD
  halyard_object_t handle;  // a buffer view
  halyard_view_info_t info;
  void* mapped;                   // the bytes of its elements, once requested
  size_t mapped_size;             // bytes
  int is_mapped;                  // otherwise `mapped` is a copy
  int is_read_only;               // the bytes must not be written to
  Py_ssize_t* shape_and_strides;  // for the buffer protocol, created on first use
} TensorObject;

typedef struct {
  PyObject_HEAD
  halyard_object_t handle;  // a list, a buffer, an object of a native module
} ObjectObject;

// ---- deferred.c
typedef struct deferred_t deferred_t;
struct deferred_t {
  void (*run)(deferred_t* item);  // with the interpreter's lock; frees the item, calls forget_deferred
  deferred_t* next;
};
deferred_list* make_deferred_list(void);
void release_deferred_list(deferred_list* list);
// Called when the interpreter shuts down.
void close_deferred(deferred_list* list);
// An item keeps the list alive from expect_deferred to forget_deferred.
void expect_deferred(deferred_list* list);
void forget_deferred(deferred_list* list);
// Calls `run` soon, on a thread with the interpreter's lock. Thread-safe, with or without that lock.
void defer(deferred_list* list, deferred_t* item);
// Runs the deferred items. Requires the interpreter's lock.
void run_deferred(deferred_list* list);
// Takes the interpreter's lock on a thread that runs a program. -1: the interpreter is shutting down.
int enter_interpreter(deferred_list* list, PyGILState_STATE* gil);
void leave_interpreter(deferred_list* list, PyGILState_STATE gil);

// ---- errors.c
int add_errors(PyObject* module, module_state* state);
// Raises the exception for the status and takes ownership of it. Returns -1; for null, does nothing and
// returns 0.
int raise_status(module_state* state, halyard_status_t status);
// Converts the Python exception that is set to a status and clears it: "ValueError: text".
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
  const char* format;  // of the buffer protocol; null: none
  uint8_t dl_code;     // DLPack's type code
  uint8_t bits;
} element_name_t;
const element_name_t* element_by_type(uint32_t type);     // null: unknown
const element_name_t* element_by_name(const char* name);  // numpy's or Halyard's name
// *unit: 1; for data in the other byte order, the number of bytes to swap as a unit.
const element_name_t* element_by_format(const char* format, Py_ssize_t item_size, int* unit);
const element_name_t* element_by_dlpack(uint8_t code, uint8_t bits);
// Whether data of type `found` may be passed for `expected`: the sign of integers may differ if one is
// signless.
int same_element(uint32_t expected, uint32_t found);
int same_integers(uint32_t expected, uint32_t found);  // whether they differ at most in the sign of integers
// The signed type for a signless one; other types are unchanged. Arrays of Python have no signless integers,
// but their names and formats find the signless types.
uint32_t with_sign(uint32_t type);

// ---- instance.c
PyObject* wrap_device(module_state* state, halyard_device_t device);  // takes ownership of the device

// ---- tensor.c
PyObject* wrap_tensor(module_state* state, halyard_object_t view);  // takes ownership of the view

// ---- values.c
// The element type of a tensor whose elements have values in Python. Null: a TypeError is set.
const element_name_t* known_element(const TensorObject* tensor);
PyObject* element_value(const element_name_t* element, const unsigned char* bytes);
PyObject* list_of_tensor(TensorObject* tensor);

// ---- parts.c
PyObject* tensor_item_at(PyObject* self, Py_ssize_t index);
PyObject* tensor_subscript(PyObject* self, PyObject* key);
PyObject* tensor_reshape(PyObject* self, PyObject* arguments);

// ---- view_request.c
// The requirements for the view of an argument.
typedef struct view_request {
  module_state* state;
  halyard_device_t device;  // null: memory of the host
  uint32_t element_type;    // 0: the type of the data
  int rank;                 // -1: any
  const int64_t* shape;     // -1: any size
  PyObject* function_name;  // for errors; may be null
  PyObject* argument_name;  // without a function's name: what is checked; null: "the tensor"
  int is_signed;            // integers are signed, although the type is signless
} view_request_t;
// "main(): argument 'x'", for errors; a new reference.
PyObject* place_of(const view_request_t* request);
// Raises InvalidArgumentError with "PLACE text"; takes ownership of the text (null: an exception is set).
// Returns -1.
int refuse(const view_request_t* request, PyObject* text);
PyObject* shape_tuple(const int64_t* shape, size_t rank);
// Copies the elements to a writable array. The request only names the place. 0, or -1 with an exception set.
int copy_tensor(TensorObject* self, const view_request_t* request, PyObject* target);
// 0, or -1 with an exception set.
int check_shape(const view_request_t* request, const int64_t* shape, int rank);
int check_element(const view_request_t* request, uint32_t found);

// ---- memory.c
// Sets self->mapped to the tensor's bytes, readable by the host. 0, or -1 with an exception set.
int map_tensor(TensorObject* self);
void unmap_tensor(TensorObject* self);
// A view of the buffer's contents, shared if the device can share them and `unit` is 1; otherwise a copy,
// with the bytes of each `unit` reversed. Takes ownership of the buffer, also on failure.
int view_of_buffer(const view_request_t* request, uint32_t element_type, const int64_t* shape, int rank,
                   int unit, Py_buffer* bytes, halyard_object_t* out);

// ---- numbers.c
// Sets *out to an integer from 0 to `most`; a null value leaves it unchanged. 0, or -1 with a ValueError or a
// TypeError set, whose text begins with `name`. The functions below set no exception.
int unsigned_of(PyObject* value, const char* name, uint64_t most, uint64_t* out);
typedef enum { NUMBER_FITS, NUMBER_OF_OTHER_TYPE, NUMBER_OUT_OF_RANGE } number_fault;
typedef enum { INTEGER_ANY_SIGN, INTEGER_SIGNED, INTEGER_UNSIGNED } integer_sign;
int is_truth_value(PyObject* value);  // True, False, and numpy's
// An integer of `bits` bits. With any sign, from -2^(bits - 1) to 2^bits - 1. One bit: 0 and 1.
number_fault integer_of(PyObject* value, int bits, integer_sign sign, int64_t* out);
// A float that, rounded to `bits` bits (16, 32, 64), is infinite only if it was infinite.
number_fault float_of(PyObject* value, int bits, double* out);

// ---- warnings.c
typedef struct warning_list warning_list;
warning_list* make_warning_list(void);  // null: no memory
void free_warning_list(warning_list* list);
void keep_warning(void* list, const halyard_warning_t* warning);  // any thread
// Passes the kept warnings to Python's module `warnings`. 0, or -1 with an exception set: a filter turned a
// warning into one, or a warning is about an array.
int raise_warnings(module_state* state, ContextObject* context, int stack_level);

// ---- dlpack.c
// A view of the value's DLPack tensor; and a tensor as a capsule.
int view_of_dlpack(const view_request_t* request, PyObject* value, halyard_object_t* out);
PyObject* tensor_to_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_dlpack_device(PyObject* self, PyObject* unused);

// ---- literals.c
// A view of a number or of nested lists of numbers.
int view_of_literal(const view_request_t* request, PyObject* value, halyard_object_t* out);
// A view of an argument that Python passed: array, tensor, nested list or scalar. 0, or -1 with an exception
// set.
int make_view(const view_request_t* request, PyObject* value, halyard_object_t* out);

// ---- lists.c
// The progress within nested lists, in either direction. It is limited, because a list may contain itself.
typedef struct {
  int depth;           // levels around the current list
  Py_ssize_t visited;  // elements so far
} nesting_t;
// Called before and after a list of `size` elements is converted. 0, or -1 with an exception set; then
// leave_list must not be called.
int enter_list(module_state* state, nesting_t* nesting, size_t size);
void leave_list(nesting_t* nesting);
// Converts a value to an object of a program: None, tensors and values that become tensors, other objects of
// programs, lists and tuples (as vm.list). 0, or -1 with an exception set.
int object_of_value(module_state* state, halyard_device_t device, PyObject* item, halyard_object_t* out);
// Takes ownership of the element's object, also on failure.
int append_to_list(module_state* state, halyard_object_t list, halyard_value_t* element);
// ---- call.c
// Converts arguments to the declared types; `values` must be large enough. 0, or -1 with an exception set and
// nothing to release.
int convert_arguments(FunctionObject* function, PyObject* arguments, halyard_value_t* values);
void release_values(halyard_value_t* values, Py_ssize_t count);
// A new tuple of the arguments of a call, in the order of the declaration.
PyObject* bind_arguments(FunctionObject* function, PyObject* arguments, PyObject* keywords);
// Converts the result to the form for the function's caller. Takes ownership of the result.
PyObject* finish_result(FunctionObject* function, PyObject* result);
// Takes ownership of the values, also on failure.
PyObject* convert_results(module_state* state, halyard_value_t* values, Py_ssize_t count);
// A program may keep a list that it has returned, so the list is converted before another call can change it.
int holds_list(const halyard_value_t* values, Py_ssize_t count);
// Ends a call. `result` is the converted results, if `is_converted`; null: an exception is set. Raises the
// program's warnings; returns null if one of them is an exception. Consumes the results.
PyObject* warn_and_convert(FunctionObject* function, halyard_value_t* results, int is_converted,
                           PyObject* result);
PyObject* convert_value(module_state* state, halyard_value_t* value);  // takes ownership of the value
// Takes the context's lock, until the deadline at the latest (see take_timeout). 0, or -1 with an exception
// set.
int enter_context(module_state* state, ContextObject* context, int64_t deadline);
void leave_context(ContextObject* context);
// Raises an error if the context is closed: 0 or -1.
int check_context(module_state* state, const ContextObject* context);
// The place of a call of an event loop in the context's queue. `come` is called when the call holds the lock,
// by the thread that leaves the context, with the interpreter's lock.
typedef struct context_turn context_turn;
struct context_turn {
  void (*come)(context_turn* turn);
  void* call;  // for `come`
  context_turn* next;
};
// Takes the context's lock or waits in its queue. 1: has the lock; 0: waits; -1: an exception is set.
int queue_for_context(module_state* state, ContextObject* context, context_turn* turn);
void leave_queue(ContextObject* context, context_turn* turn);
// Creates a fence for the signal argument of an async function. 0, or -1 with an exception set.
int make_signal_fence(FunctionObject* function, halyard_value_t* out);
// Waits a moment for the fence, without the interpreter's lock. 1: it is reached, it has failed, or the
// deadline has passed (*status). 0: the caller looks whether the wait must end, and calls again.
int look_at_fence(halyard_object_t fence, int64_t deadline, halyard_status_t* status);

// ---- timeout.c
// The deadline of a call's `timeout=`, in nanoseconds of CLOCK_MONOTONIC; INT64_MAX: none. *keywords is a new
// reference to the other keyword arguments (null: none). 0, or -1 with an exception set.
int take_timeout(FunctionObject* function, PyObject* given, PyObject** keywords, int64_t* deadline);
// Milliseconds until the deadline, rounded up, for halyard_fence_wait.
uint32_t milliseconds_until(int64_t deadline);
// Raises DeadlineExceededError for a call whose deadline passed while it waited for `cause`. Returns -1.
int raise_deadline(module_state* state, const char* cause);

// ---- out.c
// Takes the arrays for results from *keywords, which becomes another dict then. *out: a new reference, or
// null. 0, or -1 with an exception set.
int take_out(FunctionObject* function, PyObject** keywords, PyObject** out);
// Copies flat results to the arrays and returns these in their place. Takes ownership of the result. Null
// `out`: the result.
PyObject* write_out(FunctionObject* function, PyObject* result, PyObject* out);

// ---- interrupt.c
// Installs the handler of Ctrl-C, on the main thread. With the interpreter's lock, before interrupt_begin.
void interrupt_prepare(void);
typedef struct {
  halyard_call_t call;  // null: none
  uint64_t number;      // differs between all calls
  int is_cancelled;     // by Ctrl-C
} interrupt_call;
// Between these two, Ctrl-C cancels the call if it runs on the main thread. interrupt_end returns whether it
// has. *outer is the call whose Python function makes this call; Ctrl-C applies to it again afterwards.
void interrupt_begin(halyard_call_t call, interrupt_call* outer);
int interrupt_end(const interrupt_call* outer);
int interrupt_watches(void);  // whether this is the main thread
int interrupt_seen(void);     // whether Ctrl-C has cancelled its call

// ---- Types, created when the module is imported: 0 or -1
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
