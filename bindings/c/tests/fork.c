/* The child of fork(): what it inherits either works, on devices without threads, or is refused at once;
 * releasing it does not wait for threads that are not there; what the child makes itself works. The parent
 * goes on. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "halyard/channels.h"
#include "halyard/fence.h"
#include "halyard/memory.h"
#include "program.h"

enum {
  kHang = 120 /* seconds after which a child hangs */
};

struct session {
  halyard_instance_t instance;
  halyard_device_t device;
  halyard_module_t module;
  halyard_context_t context;
  halyard_function_t mul;
  halyard_call_t call;
  halyard_object_t view; /* eight numbers */
  halyard_object_t fence;
};

static halyard_object_t numbers(halyard_device_t device) {
  const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t shape[] = {8};
  halyard_object_t view = NULL;
  OK(halyard_view_create(device, HALYARD_ELEMENT_F32, shape, 1, data, sizeof data, &view));
  return view;
}

static void add_context(struct session* s) {
  const halyard_context_options_t options = {.struct_size = sizeof options,
                                             .modules = &s->module,
                                             .module_count = 1,
                                             .devices = &s->device,
                                             .device_count = 1};
  OK(halyard_context_create(s->instance, &options, &s->context));
  OK(halyard_context_find(s->context, NULL, "mul", &s->mul));
  OK(halyard_call_create(s->context, &s->call));
}

static struct session open_session(const char* uri, uint32_t flags) {
  struct session s = {0};
  const halyard_instance_options_t options = {.struct_size = sizeof options, .flags = flags};
  if (!OK(halyard_instance_create(&options, &s.instance)) ||
      !OK(halyard_device_open(s.instance, uri, &s.device)) ||
      !OK(halyard_module_load_file(s.instance, HALYARD_SOURCE_DIR "/examples/elementwise_mul.vmasm", 0,
                                   &s.module)))
    exit(1);
  add_context(&s);
  s.view = numbers(s.device);
  OK(halyard_fence_create(s.device, &s.fence));
  return s;
}

static void close_session(struct session* s) {
  RELEASE(s->fence, s->view, s->call, s->mul, s->context, s->module, s->device, s->instance);
}

static halyard_status_t multiply(halyard_call_t call, const struct session* s, float* last) {
  const halyard_value_t arguments[] = {object(s->view), object(s->view)};
  halyard_value_t result = {0};
  halyard_status_t status = halyard_call_invoke(call, s->mul, arguments, 2, &result, 1);
  if (status) return status;
  status = halyard_view_read(result.object, 7 * sizeof *last, last, sizeof *last);
  halyard_release(result.object);
  return status;
}

static void works(const struct session* s) {
  float last = 0;
  if (OK(multiply(s->call, s, &last))) EXPECT(last == 64);
}

/* Runs in a child; its exit code is the number of failures. */
static void in_child(void (*body)(struct session*), struct session* session) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    failures = 0;
    alarm(kHang);
    body(session);
    _exit(failures > 99 ? 99 : failures);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) fprintf(stderr, "the child has ended with signal %d\n", WTERMSIG(status));
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void with_time_limit(struct session* s) {
  float last = 0;
  OK(halyard_call_set_deadline(s->call, INT64_MAX - 1));
  FAILS(multiply(s->call, s, &last), HALYARD_FAILED_PRECONDITION, "fork()");
  OK(halyard_call_set_deadline(s->call, INT64_MAX)); /* a call that could not begin keeps it */
}

static void uses_device_without_threads(struct session* s) {
  works(s);
  with_time_limit(s);
  works(s);
  halyard_object_t view = numbers(s->device);
  halyard_release(view);
  OK(halyard_fence_signal(s->fence));
  OK(halyard_fence_wait(s->fence, UINT32_MAX));
  close_session(s);
}

static void uses_device_with_threads(struct session* s) {
  const char* const why = "before fork()";
  float last = 0;
  FAILS(multiply(s->call, s, &last), HALYARD_FAILED_PRECONDITION, why);
  with_time_limit(s);
  halyard_call_t call = NULL;
  OK(halyard_call_create(s->context, &call));
  FAILS(multiply(call, s, &last), HALYARD_FAILED_PRECONDITION, why);
  halyard_release(call);
  const int64_t shape[] = {1};
  halyard_object_t made = NULL;
  FAILS(halyard_view_create(s->device, HALYARD_ELEMENT_F32, shape, 1, &last, sizeof last, &made),
        HALYARD_FAILED_PRECONDITION, why);
  FAILS(halyard_fence_create(s->device, &made), HALYARD_FAILED_PRECONDITION, why);
  FAILS(halyard_view_read(s->view, 0, &last, sizeof last), HALYARD_FAILED_PRECONDITION, why);
  void* data = NULL;
  size_t size = 0;
  FAILS(halyard_view_map(s->view, HALYARD_VIEW_READ, &data, &size), HALYARD_FAILED_PRECONDITION, why);
  uint32_t reached = 0;
  FAILS(halyard_fence_query(s->fence, &reached), HALYARD_FAILED_PRECONDITION, why);
  FAILS(halyard_fence_wait(s->fence, UINT32_MAX), HALYARD_FAILED_PRECONDITION, why);
  FAILS(halyard_fence_signal(s->fence), HALYARD_FAILED_PRECONDITION, why);
  FAILS(halyard_device_trim(s->device), HALYARD_FAILED_PRECONDITION, why);
  close_session(s);
}

static void releases(struct session* s) { close_session(s); }

/* A child that knows nothing of the parent's objects, and forks again. */
static void opens_its_own(struct session* s) {
  (void)s;
  struct session own = open_session("local-task?workers=2", 0);
  works(&own);
  OK(halyard_call_set_deadline(own.call, INT64_MAX - 1));
  works(&own);
  in_child(uses_device_with_threads, &own);
  works(&own);
  close_session(&own);
}

static void collects(struct session* s) {
  (void)s;
  struct session own = open_session("local-sync", 0);
  works(&own);
  close_session(&own);
}

static atomic_int stops;

/* Holds locks of the device now and then, by calls in a context of its own. */
static void* keep_calling(void* user) {
  struct session own = *(const struct session*)user;
  add_context(&own);
  while (!stops) works(&own);
  RELEASE(own.call, own.mul, own.context);
  return NULL;
}

static void while_threads_call(const char* uri, void (*body)(struct session*), uint32_t flags) {
  struct session s = open_session(uri, flags);
  works(&s);
  pthread_t threads[2];
  stops = 0;
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, keep_calling, &s);
  for (int i = 0; i < 40; ++i) in_child(body, &s);
  stops = 1;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  works(&s);
  close_session(&s);
}

static halyard_channels_t inherited_ranks[2];

/* Channels between threads, of the parent and of the child. */
static void channels_are_left(struct session* s) {
  (void)s;
  halyard_channels_t ranks[2] = {0};
  OK(halyard_channels_create_local(2, ranks));
  for (int i = 0; i < 2; ++i) halyard_release(ranks[i]);
  for (int i = 0; i < 2; ++i) halyard_release(inherited_ranks[i]);
}

int main(void) {
  struct session sync = open_session("local-sync", 0);
  works(&sync);
  in_child(uses_device_without_threads, &sync);
  in_child(collects, &sync);
  OK(halyard_channels_create_local(2, inherited_ranks));
  in_child(channels_are_left, &sync);
  for (int i = 0; i < 2; ++i) halyard_release(inherited_ranks[i]);
  works(&sync);
  close_session(&sync);

  struct session task = open_session("local-task?workers=2", 0);
  works(&task);
  OK(halyard_call_set_deadline(task.call, INT64_MAX - 1)); /* the event loop has a thread */
  works(&task);
  in_child(uses_device_with_threads, &task);
  in_child(releases, &task);
  in_child(opens_its_own, &task);
  works(&task);
  close_session(&task);

  while_threads_call("local-task?workers=2", uses_device_with_threads, 0);
  while_threads_call("local-task?workers=2", releases, 0);
  while_threads_call("local-sync", releases, 0);
  while_threads_call("local-sync", releases, HALYARD_INSTANCE_JIT_AUTO);
  return failures != 0;
}
