#define _GNU_SOURCE  // nanosleep
// Work that needs the interpreter but arises on a thread without its lock, such as releasing memory of Python
// after its last use by a device.
//
// A thread of a device must not take the interpreter's lock, because the thread that holds the lock may be
// waiting for the device. So the work is added to a list, and the next Python thread that calls the extension
// does it. If no thread does, the main thread does it through Py_AddPendingCall. When the interpreter has
// begun to shut down, no more work is done, and the rest ends with the process.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common.h"

struct deferred_list {
  pthread_mutex_t mutex;
  _Atomic(deferred_t*) first;
  int references;    // guarded by the mutex, like the fields below
  int is_scheduled;  // Py_AddPendingCall has been called; its callback has not
  int is_main;       // of the main interpreter; Py_AddPendingCall supports no other
  int is_closed;     // the interpreter is shutting down, or the module is gone
  int visitors;      // threads between enter_interpreter and leave_interpreter
  pthread_t closer;  // the thread that shuts down
};

deferred_list* make_deferred_list(void) {
  deferred_list* list = calloc(1, sizeof *list);
  if (!list) return NULL;
  pthread_mutex_init(&list->mutex, NULL);
  list->references = 1;
  list->is_main = PyInterpreterState_GetID(PyInterpreterState_Get()) == 0;
  return list;
}

static void retain_list(deferred_list* list) {
  pthread_mutex_lock(&list->mutex);
  ++list->references;
  pthread_mutex_unlock(&list->mutex);
}

static void release_list(deferred_list* list) {
  pthread_mutex_lock(&list->mutex);
  const int left = --list->references;
  pthread_mutex_unlock(&list->mutex);
  if (left > 0) return;
  pthread_mutex_destroy(&list->mutex);
  free(list);
}

void expect_deferred(deferred_list* list) { retain_list(list); }

void forget_deferred(deferred_list* list) { release_list(list); }

void run_deferred(deferred_list* list) {
  if (!atomic_load_explicit(&list->first, memory_order_relaxed)) return;
  pthread_mutex_lock(&list->mutex);
  deferred_t* item = atomic_exchange(&list->first, NULL);
  pthread_mutex_unlock(&list->mutex);
  while (item) {
    deferred_t* next = item->next;
    item->run(item);
    item = next;
  }
}

static int run_pending(void* user) {
  deferred_list* list = user;
  pthread_mutex_lock(&list->mutex);
  list->is_scheduled = 0;
  pthread_mutex_unlock(&list->mutex);
  run_deferred(list);
  release_list(list);
  return 0;
}

void defer(deferred_list* list, deferred_t* item) {
  pthread_mutex_lock(&list->mutex);
  item->next = atomic_load_explicit(&list->first, memory_order_relaxed);
  atomic_store(&list->first, item);
  // Under the mutex, so that the interpreter exists until the call returns, because close_deferred locks it.
  if (!list->is_closed && list->is_main && !list->is_scheduled) {
    ++list->references;
    if (Py_AddPendingCall(run_pending, list) == 0) {
      list->is_scheduled = 1;
    } else {
      --list->references;
    }
  }
  pthread_mutex_unlock(&list->mutex);
}

int enter_interpreter(deferred_list* list, PyGILState_STATE* gil) {
  pthread_mutex_lock(&list->mutex);
  const int is_refused = list->is_closed && !pthread_equal(list->closer, pthread_self());
  list->visitors += !is_refused;
  pthread_mutex_unlock(&list->mutex);
  if (is_refused) return -1;
  *gil = PyGILState_Ensure();
  return 0;
}

void leave_interpreter(deferred_list* list, PyGILState_STATE gil) {
  PyGILState_Release(gil);
  pthread_mutex_lock(&list->mutex);
  --list->visitors;
  pthread_mutex_unlock(&list->mutex);
}

// Python ends a thread that waits for the lock of an interpreter that is shutting down. This would end the
// process, because C++ code is on the thread's stack. So this function waits for such threads, for at most a
// second.
void close_deferred(deferred_list* list) {
  pthread_mutex_lock(&list->mutex);
  list->is_closed = 1;
  list->closer = pthread_self();
  int visitors = list->visitors;
  pthread_mutex_unlock(&list->mutex);
  Py_BEGIN_ALLOW_THREADS
  for (int i = 0; visitors > 0 && i < 1000; ++i) {
    const struct timespec pause = {0, 1000 * 1000};
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&list->mutex);
    visitors = list->visitors;
    pthread_mutex_unlock(&list->mutex);
  }
  Py_END_ALLOW_THREADS
}

void release_deferred_list(deferred_list* list) {
  if (!list) return;
  run_deferred(list);
  pthread_mutex_lock(&list->mutex);
  list->is_closed = 1;
  list->closer = pthread_self();
  pthread_mutex_unlock(&list->mutex);
  release_list(list);
}
