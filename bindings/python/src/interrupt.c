#define _GNU_SOURCE  // gettid
// Handles Ctrl-C during a call on the main thread.
//
// Python's own handler only records the signal, and no code checks the record while a call runs. So the first
// call on the main thread installs another handler before Python's, which also wakes a thread that cancels
// the call. A signal handler must not cancel the call itself, because that takes locks. Without Ctrl-C, the
// thread never wakes.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static interrupt_call current;  // the innermost call of the main thread; guarded by the mutex
static uint64_t call_count;     // guarded by the mutex
static pthread_t main_thread;
static atomic_int wake_descriptor = -1;
static struct sigaction previous;  // Python's handler; only the main thread writes it
static int is_set_up;              // only the main thread reads and writes it

static void on_signal(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const uint64_t one = 1;
  if (write(wake_descriptor, &one, sizeof one) < 0) { /* it is full: the thread will wake anyway */
  }
  errno = saved;
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  }
}

static void* watch(void* unused) {
  (void)unused;
  uint64_t count;
  for (;;) {
    if (read(wake_descriptor, &count, sizeof count) < 0) {
      if (errno == EINTR) continue;
      return NULL;
    }
    // Cancelling has no effect on a call that has not begun yet, so it is repeated until the call has ended.
    uint64_t number = 0;
    for (;;) {
      pthread_mutex_lock(&mutex);
      const int is_there = current.call && (number == 0 || number == current.number);
      if (is_there) {
        number = current.number;
        current.is_cancelled = 1;
        halyard_call_cancel(current.call);
      }
      pthread_mutex_unlock(&mutex);
      if (!is_there) break;
      const struct timespec pause = {0, 10 * 1000 * 1000};
      nanosleep(&pause, NULL);
    }
  }
}

static void forget_in_child(void) {
  is_set_up = 0;  // the thread does not exist
  // The handler would wake the parent's thread, because parent and child share the eventfd.
  const int descriptor = atomic_exchange(&wake_descriptor, -1);
  if (descriptor >= 0) close(descriptor);
  pthread_mutex_init(&mutex, NULL);
}

static int is_same_handler(const struct sigaction* one, const struct sigaction* other) {
  return (one->sa_flags & SA_SIGINFO) == (other->sa_flags & SA_SIGINFO) &&
         (one->sa_flags & SA_SIGINFO ? one->sa_sigaction == other->sa_sigaction
                                     : one->sa_handler == other->sa_handler);
}

static void install_handler(const struct sigaction* before) {
  struct sigaction ours = {.sa_sigaction = on_signal,
                           .sa_flags = SA_SIGINFO | (before->sa_flags & (SA_RESTART | SA_ONSTACK)),
                           .sa_mask = before->sa_mask};
  sigaction(SIGINT, &ours, NULL);
}

// Whether Python's handler raises KeyboardInterrupt: the default handler, or that of asyncio.run.
static int raises_keyboard_interrupt(void) {
  PyObject* module = PyImport_ImportModule("signal");
  PyObject* handler = module ? PyObject_CallMethod(module, "getsignal", "i", SIGINT) : NULL;
  PyObject* usual = handler ? PyObject_GetAttrString(module, "default_int_handler") : NULL;
  int result = usual && handler == usual;
  PyObject* function = usual && !result ? PyObject_GetAttrString(handler, "func") : NULL;  // of a partial
  PyObject* name = function ? PyObject_GetAttrString(function, "__qualname__") : NULL;
  if (name && PyUnicode_Check(name))
    result = PyUnicode_CompareWithASCIIString(name, "Runner._on_sigint") == 0;
  Py_XDECREF(name);
  Py_XDECREF(function);
  Py_XDECREF(usual);
  Py_XDECREF(handler);
  Py_XDECREF(module);
  PyErr_Clear();
  return result;
}

static void set_up(void) {
  static int has_fork_handler;
  struct sigaction now;
  // A program that ignores SIGINT, or has no handler, is left unchanged until it has one.
  if (sigaction(SIGINT, NULL, &now) != 0) return;
  if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) return;
  is_set_up = 1;
  if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_signal) {
    previous = now;
    install_handler(&now);
  }
  wake_descriptor = eventfd(0, EFD_CLOEXEC);
  if (wake_descriptor < 0) return;
  if (!has_fork_handler) has_fork_handler = pthread_atfork(NULL, NULL, forget_in_child) == 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals must go to other threads
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void interrupt_prepare(void) {
  if (!pthread_equal(pthread_self(), main_thread)) return;
  if (!is_set_up) set_up();
  // signal.signal, which asyncio.run and Jupyter call, puts Python's handler in place of this one. Handlers
  // of the program and of other libraries are left unchanged.
  struct sigaction now;
  if (is_set_up && sigaction(SIGINT, NULL, &now) == 0 && is_same_handler(&now, &previous) &&
      raises_keyboard_interrupt())
    install_handler(&now);
}

void interrupt_begin(halyard_call_t call, interrupt_call* outer) {
  if (!pthread_equal(pthread_self(), main_thread)) return;
  pthread_mutex_lock(&mutex);
  *outer = current;
  current = (interrupt_call){.call = call, .number = ++call_count};
  pthread_mutex_unlock(&mutex);
}

int interrupt_watches(void) { return pthread_equal(pthread_self(), main_thread); }

int interrupt_seen(void) {
  pthread_mutex_lock(&mutex);
  const int result = current.is_cancelled;
  pthread_mutex_unlock(&mutex);
  return result;
}

int interrupt_end(const interrupt_call* outer) {
  if (!pthread_equal(pthread_self(), main_thread)) return 0;
  pthread_mutex_lock(&mutex);
  const int result = current.is_cancelled;
  current = *outer;
  pthread_mutex_unlock(&mutex);
  return result;
}

// Finds the main thread if it is the first thread that imports the extension, which is almost always true. On
// Linux, the number of the main thread is getpid().
__attribute__((constructor)) static void find_main_thread(void) {
  if (gettid() == getpid()) main_thread = pthread_self();
}
