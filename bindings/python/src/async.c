// Calls in steps, for event loops: a waiting Call blocks no thread. The descriptor of a Waker becomes
// readable when one of its calls can continue.
//
// A call first takes its turn among the calls of the model (enter), on the thread of its event loop. Then
// each step (begin, resume) runs on a thread of its own, because it computes for as long as the program
// computes on the host.
//
// A wait ends on a thread of the device. That thread must not take the interpreter's lock, because the thread
// that holds the lock may be waiting for the device. So it only adds the call's number to a list and writes
// to the descriptor.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common.h"
#include "halyard/fence.h"

// Shared by a waker and its calls. Reference-counted, because a wait may end after either is destroyed.
typedef struct wake_list {
  pthread_mutex_t mutex;
  int references;  // guarded by the mutex
  int descriptor;  // an eventfd
  uint64_t* ready;
  size_t count, capacity;
  int lost;  // a number was lost, because memory ran out: check every call
} wake_list;

// The hook's reference to the list, for one call.
typedef struct {
  wake_list* list;
  uint64_t number;
} wake_entry;

typedef struct {
  PyObject_HEAD
  wake_list* list;
} WakerObject;

typedef struct {
  PyObject_HEAD
  halyard_call_t handle;
  FunctionObject* function;
  wake_entry entry;
  halyard_value_t* values;  // arguments, until the call is done
  Py_ssize_t value_count;
  uint32_t state;
  int64_t deadline;  // nanoseconds of CLOCK_MONOTONIC, or INT64_MAX
  int is_begun;      // begun, and its results have not been taken
  int awaits_fence;  // of an async function: the program has returned, its work continues
  context_turn turn;
  unsigned long loop;  // the thread of the event loop
  int is_queued;       // waits for its turn
  int holds_lock;      // holds the context's lock
  int is_running;      // a step runs, or results() waits
  int is_cancelled;    // by cancel()
  int is_closed;
} CallObject;

static wake_list* retain_list(wake_list* list) {
  pthread_mutex_lock(&list->mutex);
  ++list->references;
  pthread_mutex_unlock(&list->mutex);
  return list;
}

static void release_list(wake_list* list) {
  if (!list) return;
  pthread_mutex_lock(&list->mutex);
  const int left = --list->references;
  pthread_mutex_unlock(&list->mutex);
  if (left > 0) return;
  close(list->descriptor);
  pthread_mutex_destroy(&list->mutex);
  free(list->ready);
  free(list);
}

// Called on any thread, without the interpreter's lock.
static void wake(wake_list* list, uint64_t number) {
  pthread_mutex_lock(&list->mutex);
  if (list->count == list->capacity) {
    const size_t capacity = list->capacity ? list->capacity * 2 : 16;
    uint64_t* ready = realloc(list->ready, capacity * sizeof *ready);
    if (ready) {
      list->ready = ready;
      list->capacity = capacity;
    }
  }
  if (list->count < list->capacity) {
    list->ready[list->count++] = number;
  } else {
    list->lost = 1;
  }
  pthread_mutex_unlock(&list->mutex);
  const uint64_t one = 1;
  while (write(list->descriptor, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

static void on_ready(void* user) {
  const wake_entry* entry = user;
  wake(entry->list, entry->number);
}

// The fence owns the entry and may outlive the call.
static void on_fence(void* user, halyard_status_t status) {
  (void)status;
  wake_entry* entry = user;
  wake(entry->list, entry->number);
  release_list(entry->list);
  free(entry);
}

// ---- Waker

static PyObject* waker_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  (void)arguments;
  (void)keywords;
  wake_list* list = calloc(1, sizeof *list);
  if (!list) return PyErr_NoMemory();
  pthread_mutex_init(&list->mutex, NULL);
  list->references = 1;
  list->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (list->descriptor < 0) {
    pthread_mutex_destroy(&list->mutex);
    free(list);
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  WakerObject* self = PyObject_New(WakerObject, type);
  if (self) {
    self->list = list;
  } else {
    release_list(list);
  }
  return (PyObject*)self;
}

static void waker_free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  release_list(((WakerObject*)self)->list);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject* waker_fileno(PyObject* self, PyObject* unused) {
  (void)unused;
  return PyLong_FromLong(((WakerObject*)self)->list->descriptor);
}

// The numbers of calls that can continue. None: any call may.
static PyObject* waker_take(PyObject* self, PyObject* unused) {
  (void)unused;
  wake_list* list = ((WakerObject*)self)->list;
  uint64_t count;
  if (read(list->descriptor, &count, sizeof count) < 0 && errno != EAGAIN)
    return PyErr_SetFromErrno(PyExc_OSError);
  pthread_mutex_lock(&list->mutex);
  uint64_t* numbers = list->ready;
  const size_t size = list->count;
  const int lost = list->lost;
  list->ready = NULL;
  list->count = list->capacity = 0;
  list->lost = 0;
  pthread_mutex_unlock(&list->mutex);
  PyObject* result = lost ? Py_NewRef(Py_None) : PyList_New((Py_ssize_t)size);
  for (size_t i = 0; result && !lost && i < size; ++i) {
    PyObject* number = PyLong_FromUnsignedLongLong(numbers[i]);
    if (!number || PyList_SetItem(result, (Py_ssize_t)i, number) < 0) Py_CLEAR(result);
  }
  free(numbers);
  return result;
}

static PyMethodDef waker_methods[] = {
    {"fileno", waker_fileno, METH_NOARGS, "A descriptor that is readable when a call can continue."},
    {"take", waker_take, METH_NOARGS, "The numbers of the calls that can continue; None: any call may."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot waker_slots[] = {{Py_tp_doc, "Reports through a descriptor which calls can continue."},
                                    {Py_tp_new, waker_new},
                                    {Py_tp_dealloc, waker_free},
                                    {Py_tp_methods, waker_methods},
                                    {0, NULL}};
static PyType_Spec waker_spec = {"halyard.Waker", sizeof(WakerObject), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, waker_slots};

// ---- Call

static void on_turn(context_turn* turn) {
  CallObject* self = turn->call;
  self->is_queued = 0;
  self->holds_lock = 1;
  self->function->context->loop = self->loop;
  wake(self->entry.list, self->entry.number);
}

static PyObject* call_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"function", "waker", "number", "deadline", NULL};
  module_state* state = PyType_GetModuleState(type);
  FunctionObject* function;
  WakerObject* waker;
  unsigned long long number;
  long long deadline = INT64_MAX;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O!K|L:Call", names, state->function_type,
                                   &function, state->waker_type, &waker, &number, &deadline))
    return NULL;
  halyard_call_t handle = NULL;
  if (check_context(state, function->context) < 0 ||
      raise_status(state, halyard_call_create(function->context->handle, &handle)) < 0)
    return NULL;
  CallObject* self = PyObject_New(CallObject, type);
  if (!self) {
    halyard_release(handle);
    return NULL;
  }
  self->handle = handle;
  self->function = function;
  Py_INCREF((PyObject*)function);
  self->entry.list = retain_list(waker->list);
  self->entry.number = number;
  self->values = NULL;
  self->value_count = 0;
  self->state = HALYARD_CALL_DONE;
  self->deadline = deadline;
  self->is_begun = 0;
  self->awaits_fence = 0;
  self->turn.come = on_turn;
  self->turn.call = self;
  self->loop = PyThread_get_thread_ident();
  self->is_queued = 0;
  self->holds_lock = 0;
  self->is_running = 0;
  self->is_cancelled = 0;
  self->is_closed = 0;
  halyard_call_on_ready(handle, on_ready, &self->entry);
  halyard_call_arm(handle);  // cancel() also ends a call whose first step has not begun
  return (PyObject*)self;
}

// Called when the call has succeeded or failed.
static void finish(CallObject* self) {
  self->is_begun = 0;
  self->awaits_fence = 0;
  release_values(self->values, self->value_count);
  PyMem_Free(self->values);
  self->values = NULL;
  self->value_count = 0;
  run_deferred(state_of((PyObject*)self)->deferred);
  if (self->holds_lock) leave_context(self->function->context);
  self->holds_lock = 0;
}

// Cancels the call and gives up its turn. Not while a step runs.
static void end_call(CallObject* self) {
  halyard_call_t handle = self->handle;
  if (!handle) return;
  self->handle = NULL;
  if (self->is_queued) leave_queue(self->function->context, &self->turn);
  self->is_queued = 0;
  halyard_call_on_ready(handle, NULL, NULL);  // waits for a running hook
  if (self->awaits_fence) halyard_call_cancel(handle);
  Py_BEGIN_ALLOW_THREADS
  halyard_release(handle);  // cancels a waiting call
  Py_END_ALLOW_THREADS
  finish(self);
}

static void call_free(PyObject* object) {
  CallObject* self = (CallObject*)object;
  PyTypeObject* type = Py_TYPE(object);
  end_call(self);
  release_list(self->entry.list);
  Py_DECREF((PyObject*)self->function);
  PyObject_Free(self);
  Py_DECREF(type);
}

// 0, or -1 with an exception set.
static int check_open(CallObject* self) {
  if (!self->is_closed) return 0;
  return raise_status(state_of((PyObject*)self),
                      halyard_status_create(HALYARD_CANCELLED, "the call is closed"));
}

static halyard_object_t fence_of(const CallObject* self) {
  return self->values[self->value_count - 1].object;
}

// The result of begin and resume. An async function returns before its work is done; the call then waits for
// its fence.
static PyObject* state_or_wait(CallObject* self) {
  if (self->state != HALYARD_CALL_DONE || !self->function->is_async)
    return PyLong_FromUnsignedLong(self->state);
  uint32_t reached = 0;
  halyard_status_t failure = halyard_fence_query(fence_of(self), &reached);
  if (failure || reached) {  // results() distinguishes them
    halyard_status_release(failure);
    self->awaits_fence = 0;
    return PyLong_FromUnsignedLong(HALYARD_CALL_DONE);
  }
  if (!self->awaits_fence) {
    wake_entry* entry = malloc(sizeof *entry);
    if (!entry) return PyErr_NoMemory();
    *entry = (wake_entry){.list = retain_list(self->entry.list), .number = self->entry.number};
    halyard_status_t status = halyard_fence_on_reached(fence_of(self), on_fence, entry);
    if (status) {
      release_list(entry->list);
      free(entry);
      raise_status(state_of((PyObject*)self), status);
      return NULL;
    }
    self->awaits_fence = 1;
  }
  return PyLong_FromUnsignedLong(HALYARD_CALL_WAITING);
}

static PyObject* call_enter(PyObject* object, PyObject* unused) {
  (void)unused;
  CallObject* self = (CallObject*)object;
  if (check_open(self) < 0) return NULL;
  if (!self->holds_lock && !self->is_queued) {
    const int turn = queue_for_context(state_of(object), self->function->context, &self->turn);
    if (turn < 0) return NULL;
    self->holds_lock = turn;
    self->is_queued = !turn;
  }
  // The model may have been closed meanwhile.
  if (self->holds_lock && check_context(state_of(object), self->function->context) < 0) return NULL;
  return PyBool_FromLong(self->holds_lock);
}

static PyObject* begin(PyObject* object, PyObject* arguments) {
  CallObject* self = (CallObject*)object;
  FunctionObject* function = self->function;
  module_state* state = state_of(object);
  if (self->is_begun) return PyErr_Format(PyExc_RuntimeError, "the call has already begun");
  const Py_ssize_t most = function->argument_count + 2;
  if (!self->holds_lock) return PyErr_Format(PyExc_RuntimeError, "enter() the model before the call begins");
  self->values = PyMem_Calloc((size_t)most, sizeof *self->values);
  if (!self->values) {
    finish(self);
    return PyErr_NoMemory();
  }
  if (convert_arguments(function, arguments, self->values) < 0) {
    finish(self);
    return NULL;
  }
  self->value_count = function->argument_count;
  if (function->is_async) {
    if (make_signal_fence(function, &self->values[function->argument_count + 1]) < 0) {
      finish(self);
      return NULL;
    }
    self->value_count = most;
  }
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = self->deadline == INT64_MAX ? NULL : halyard_call_set_deadline(self->handle, self->deadline);
  if (!status)
    status = halyard_call_begin(self->handle, function->handle, self->values, (size_t)self->value_count,
                                &self->state);
  Py_END_ALLOW_THREADS
  if (raise_status(state, status) < 0) {
    finish(self);
    return NULL;
  }
  self->is_begun = 1;
  return state_or_wait(self);
}

// 0, or -1 with CancelledError set: a cancelled call does not wait for its fence, which the device need not
// reach when it stops.
static int check_not_cancelled(CallObject* self) {
  if (!self->is_cancelled) return 0;
  return raise_status(state_of((PyObject*)self),
                      halyard_status_create(HALYARD_CANCELLED, "the call was cancelled"));
}

static PyObject* poll(CallObject* self) {
  if (!self->awaits_fence) return PyLong_FromUnsignedLong(halyard_call_state(self->handle));
  PyObject* state = state_or_wait(self);
  if (!state || !self->awaits_fence) return state;
  if (check_not_cancelled(self) < 0) {
    Py_DECREF(state);
    finish(self);
    return NULL;
  }
  if (milliseconds_until(self->deadline) == 0) {
    // The device may not stop its work at the deadline, but the caller does not wait for it.
    Py_DECREF(state);
    halyard_call_cancel(self->handle);
    raise_deadline(state_of((PyObject*)self), "the device");
    finish(self);
    return NULL;
  }
  return state;
}

static int is_suspended(const CallObject* self) {
  return halyard_call_state(self->handle) != HALYARD_CALL_DONE;
}

static PyObject* resume(PyObject* object) {
  CallObject* self = (CallObject*)object;
  if (self->awaits_fence) return poll(self);
  const int was_suspended = is_suspended(self);
  halyard_status_t status;
  Py_BEGIN_ALLOW_THREADS
  status = halyard_call_resume(self->handle, &self->state);
  Py_END_ALLOW_THREADS
  if (raise_status(state_of(object), status) < 0) {
    if (was_suspended && !is_suspended(self)) finish(self);  // the program failed
    return NULL;
  }
  return state_or_wait(self);
}

// Raises FailedPreconditionError if the condition is false. 0 or -1.
static int require(CallObject* self, int condition, const char* failure) {
  if (condition) return 0;
  return raise_status(state_of((PyObject*)self), halyard_status_create(HALYARD_FAILED_PRECONDITION, failure));
}

static int check_no_step_runs(CallObject* self) {
  return require(
      self, !self->is_running,
      "another thread runs begin(), resume() or results() of the call; wait until it has returned");
}

// The state of a suspended call, for a call that was reported to be ready.
static PyObject* call_poll(PyObject* object, PyObject* unused) {
  (void)unused;
  CallObject* self = (CallObject*)object;
  if (check_open(self) < 0) return NULL;
  if (self->awaits_fence && check_no_step_runs(self) < 0) return NULL;
  return poll(self);
}

// Runs a step; `arguments` null: resume. The context knows which thread runs it (refuse_reentry).
static PyObject* run_step(CallObject* self, PyObject* arguments) {
  if (check_open(self) < 0) return NULL;
  if (check_no_step_runs(self) < 0) return NULL;
  if (self->holds_lock) self->function->context->owner = PyThread_get_thread_ident();
  self->is_running = 1;
  PyObject* state = arguments ? begin((PyObject*)self, arguments) : resume((PyObject*)self);
  self->is_running = 0;
  if (self->holds_lock) self->function->context->owner = 0;
  if (self->is_closed) end_call(self);
  return state;
}

static PyObject* call_begin(PyObject* object, PyObject* arguments) {
  return run_step((CallObject*)object, arguments);
}

static PyObject* call_resume(PyObject* object, PyObject* unused) {
  (void)unused;
  return run_step((CallObject*)object, NULL);
}

// Waits for the fence of an async function, until the call is closed or cancelled, or Ctrl-C. 0: the fence is
// reached or has failed, or the deadline has passed (*status). -1: an exception is set.
static int await_work(CallObject* self, halyard_status_t* status) {
  const halyard_object_t fence = fence_of(self);
  int is_over, is_interrupted = 0;
  self->is_running = 1;  // close() does not free the fence
  do {
    Py_BEGIN_ALLOW_THREADS
    is_over = look_at_fence(fence, self->deadline, status);
    Py_END_ALLOW_THREADS
    if (!is_over) is_interrupted = PyErr_CheckSignals() < 0;
  } while (!is_over && !is_interrupted && !self->is_closed && !self->is_cancelled);
  self->is_running = 0;
  if (self->is_closed) {
    halyard_status_release(*status);
    end_call(self);
    return is_interrupted ? -1 : check_open(self);
  }
  if (is_over) return 0;
  if (!is_interrupted && check_not_cancelled(self) < 0) finish(self);
  return -1;
}

static PyObject* call_results(PyObject* object, PyObject* arguments) {
  PyObject* out = Py_None;
  if (!PyArg_ParseTuple(arguments, "|O:results", &out)) return NULL;
  CallObject* self = (CallObject*)object;
  module_state* state = state_of(object);
  if (check_open(self) < 0) return NULL;
  if (check_no_step_runs(self) < 0) return NULL;
  if (require(self, self->is_begun,
              "there are no results to take: the call was not begun, has failed, or its results were taken") <
          0 ||
      require(self, !is_suspended(self), "the call is not done; resume() it until that returns 0") < 0)
    return NULL;
  const Py_ssize_t count = self->function->result_count;
  halyard_status_t status = NULL;
  if (self->function->is_async && await_work(self, &status) < 0) return NULL;
  halyard_value_t* results = PyMem_Calloc((size_t)count + 1, sizeof *results);
  if (!results) {
    halyard_status_release(status);
    return PyErr_NoMemory();
  }
  if (!status) status = halyard_call_results(self->handle, results, (size_t)count);
  PyObject* result = NULL;
  const int is_converted = !status && holds_list(results, count);
  if (is_converted) result = convert_results(state, results, count);
  finish(self);
  if (raise_status(state, status) == 0)
    result = warn_and_convert(self->function, results, is_converted, result);
  PyMem_Free(results);
  if (out != Py_None) result = write_out(self->function, result, out);
  return finish_result(self->function, result);
}

static PyObject* call_cancel(PyObject* object, PyObject* unused) {
  (void)unused;
  CallObject* self = (CallObject*)object;
  self->is_cancelled = 1;
  if (self->handle) halyard_call_cancel(self->handle);
  Py_RETURN_NONE;
}

static PyObject* call_close(PyObject* object, PyObject* unused) {
  (void)unused;
  CallObject* self = (CallObject*)object;
  self->is_closed = 1;
  if (self->is_running) {
    // The call ends without the loop, so the loop's thread may wait for it.
    if (self->holds_lock) self->function->context->loop = 0;
    halyard_call_cancel(self->handle);
  } else {
    end_call(self);
  }
  Py_RETURN_NONE;
}

// The deadline in seconds on the clock of time.monotonic, or None.
static PyObject* call_deadline(PyObject* object, PyObject* unused) {
  (void)unused;
  const CallObject* self = (CallObject*)object;
  const int64_t at =
      self->awaits_fence || !self->is_begun ? self->deadline : halyard_call_deadline(self->handle);
  if (at == INT64_MAX) Py_RETURN_NONE;
  return PyFloat_FromDouble((double)at * 1e-9);
}

static PyMethodDef call_methods[] = {
    {"enter", call_enter, METH_NOARGS,
     "Takes the call's turn in its model. False: another call runs; the waker reports this call's turn."},
    {"begin", call_begin, METH_VARARGS,
     "Begins the call. Returns 0 if it is done, 1 if it has yielded, 2 if it waits."},
    {"poll", call_poll, METH_NOARGS,
     "Returns the same as begin, without running the program: 2 while the call still waits."},
    {"resume", call_resume, METH_NOARGS, "Continues the call; returns the same as begin."},
    {"results", call_results, METH_VARARGS,
     "results(out=None, /)\n--\n\nTakes the results of a call that is done, once."},
    {"cancel", call_cancel, METH_NOARGS,
     "Ends the call with CancelledError as soon as possible. Any thread."},
    {"close", call_close, METH_NOARGS,
     "Cancels the call and ends its turn, or when the step that runs now has ended."},
    {"deadline", call_deadline, METH_NOARGS,
     "The time.monotonic() at which a waiting call can continue without a wakeup; None: never."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot call_slots[] = {
    {Py_tp_doc,
     "Call(function, waker, number, deadline=2**63 - 1)\n--\n\nOne call in steps, for "
     "Function.call_async.\n`deadline` is in nanoseconds of "
     "time.monotonic_ns()."},
    {Py_tp_new, call_new},
    {Py_tp_dealloc, call_free},
    {Py_tp_methods, call_methods},
    {0, NULL}};
static PyType_Spec call_spec = {"halyard.Call", sizeof(CallObject), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, call_slots};

int add_async_types(PyObject* module, module_state* state) {
  return add_type(module, &waker_spec, &state->waker_type) < 0 ||
                 add_type(module, &call_spec, &state->call_type) < 0
             ? -1
             : 0;
}
