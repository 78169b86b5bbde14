/* Calls whose work on a device does not end: cancelled, dropped, beside others; and processes that end while
 * it is under way. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "halyard/halyard.h"
#include "program.h"

#define KERNEL_ARGUMENTS                                                                                   \
  "(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, " \
  "%i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {\n"
/* Submits 64 workgroups of the kernel with this number; then the tail. */
#define SUBMIT(name, number, tail)                                                                         \
  "vm.export @" name "\nvm.func @" name                                                                    \
  "() -> () {\n"                                                                                           \
  "  %i0 = vm.const.i32.zero\n  %r0 = vm.call @hal.devices.get(%i0)\n  %i2:3 = vm.const.i64 -1\n"          \
  "  %i4:5 = vm.const.i64.zero\n  %i6 = vm.const.i32 64\n  %i7 = vm.const.i32 1\n  %i8 = vm.const.i32 3\n" \
  "  %i10:11 = vm.const.i64 " number                                                                       \
  "\n  %r1 = vm.const.ref.rodata 0\n  %r2 = vm.const.ref.rodata 1\n  %r3 = vm.const.ref.zero\n"            \
  "  %r4 = vm.call @hal.executable.create(%r0, %i2:3, %r1, %r2, %r3)\n"                                    \
  "  %r5 = vm.call @hal.command_buffer.create(%r0, %i7, %i8, %i2:3, %i0)\n"                                \
  "  vm.call.variadic @hal.command_buffer.dispatch segments[65535, 65535, 65535, 65535, 65535, 65535, "    \
  "65535, 0, 0](%r5, %r4, %i10:11, %i6, %i7, %i7, %i4:5)\n"                                                \
  "  vm.call @hal.command_buffer.finalize(%r5)\n  %r6 = vm.call @hal.fence.create(%r0, %i4:5)\n"           \
  "  vm.call @hal.device.queue.execute(%r0, %i2:3, %r3, %r6, %r5, %i4:5)\n  %i9 = vm.const.i32 -1\n" tail  \
  "}\n"
#define AWAIT                                                                                               \
  "  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i9, %i4:5, %r6) -> ^bb1(%i9)\n" \
  "^bb1:\n  vm.cond_br %i9, ^bb2, ^bb3\n^bb2:\n  vm.fail %i9, \"the work has failed\"\n^bb3:\n  vm.return\n"
#define LEAVE "  vm.return\n"

/* A kernel that calls a microkernel for ever, and one that does nothing. */
static const char kText[] =
    "vm.module @work\nvm.dependency @hal 7\n"
    "vm.import @hal.devices.get cconv \"0i_r\"\n"
    "vm.import @hal.executable.create cconv \"0rIrrr_r\"\n"
    "vm.import @hal.command_buffer.create cconv \"0riiIi_r\"\n"
    "vm.import @hal.command_buffer.dispatch cconv \"0rrIiiiICiDCiirIID_v\"\n"
    "vm.import @hal.command_buffer.finalize cconv \"0r_v\"\n"
    "vm.import @hal.device.queue.execute cconv \"0rIrrrI_v\"\n"
    "vm.import @hal.fence.create cconv \"0rI_r\"\n"
    "vm.import @hal.fence.await cconv \"0iICrD_i\"\n"
    "vm.rodata[0] = \"vmvx-bytecode-fb\"\n"
    "vm.rodata[1] = module {\n"
    "vm.module @kernels\nvm.import @vmvx.fill.2d.x32 cconv \"0irIIII_v\"\n"
    "vm.export @spin\nvm.attr @spin \"local_memory\" \"4096\"\nvm.export @quick\n"
    "vm.func @spin" KERNEL_ARGUMENTS
    "  %i10:11 = vm.const.i64.zero\n  %i12:13 = vm.const.i64 1\n  %i14:15 = vm.const.i64 8\n  vm.br ^bb1\n"
    "^bb1:\n  vm.call @vmvx.fill.2d.x32(%i0, %r0, %i10:11, %i14:15, %i12:13, %i14:15)\n  vm.br ^bb1\n"
    "^bb2:\n  vm.return\n}\n"
    "vm.func @quick" KERNEL_ARGUMENTS "  vm.return\n}\n}\n" SUBMIT("spin", "0", AWAIT)
        SUBMIT("quick", "1", AWAIT) SUBMIT("leave", "0", LEAVE);

/* Of one context; static, so that what a process leaves behind when it ends can be reached from somewhere. */
typedef struct program {
  halyard_context_t context;
  halyard_function_t spin;
  halyard_function_t quick;
  halyard_call_t call;
} program_t;
static halyard_instance_t instance;
static halyard_device_t device;
static halyard_module_t module;
static program_t programs[2];

static int open_device(const char* uri) {
  const char* folder = HALYARD_BUILD_DIR "/lib/halyard/drivers";
  halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS,
      .driver_folders = &folder,
      .driver_folder_count = 1};
  return OK(halyard_instance_create(&options, &instance)) &&
         OK(halyard_device_open(instance, uri, &device)) && (module = load_text(instance, kText)) != NULL;
}

static int make_program(program_t* program, uint64_t max_time_ns) {
  halyard_context_options_t options = {.struct_size = sizeof options,
                                       .modules = &module,
                                       .module_count = 1,
                                       .devices = &device,
                                       .device_count = 1,
                                       .max_time_ns = max_time_ns};
  return OK(halyard_context_create(instance, &options, &program->context)) &&
         OK(halyard_context_find(program->context, NULL, "spin", &program->spin)) &&
         OK(halyard_context_find(program->context, NULL, "quick", &program->quick)) &&
         OK(halyard_call_create(program->context, &program->call));
}

static void drop_program(program_t* program) {
  RELEASE(program->call, program->spin, program->quick, program->context);
  memset(program, 0, sizeof *program);
}

static void close_device(void) { RELEASE(module, device, instance); }

static void pause_ms(long milliseconds) {
  const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&pause, NULL);
}

static double processor_seconds(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* Whether the process comes to rest: whatever ran has ended. What runs has a small part of the time at least,
 * however much the machine has to do. */
static int comes_to_rest(void) {
  for (int i = 0; i < 100; ++i) {
    const double before = processor_seconds();
    pause_ms(100);
    if (processor_seconds() - before < 0.003) return 1;
  }
  return 0;
}

/* Whether something runs; what is at rest takes longer than this waits. */
static int is_busy(void) {
  const double before = processor_seconds();
  for (int i = 0; i < 100; ++i) {
    pause_ms(100);
    if (processor_seconds() - before > 0.02) return 1;
  }
  return 0;
}

static atomic_int has_returned;

/* Again and again, because a call that has not begun is not cancelled. */
static void* cancel_soon(void* call) {
  do {
    pause_ms(50);
    halyard_call_cancel(call);
  } while (!has_returned);
  return NULL;
}

static void is_cancelled(program_t* program) {
  pthread_t thread;
  has_returned = 0;
  pthread_create(&thread, NULL, cancel_soon, program->call);
  FAILS(halyard_call_invoke(program->call, program->spin, NULL, 0, NULL, 0), HALYARD_CANCELLED, "cancelled");
  has_returned = 1;
  pthread_join(thread, NULL);
}

/* A call within its time limit. On a busy machine it may take longer, so it has many turns. */
static void ends_in_time(program_t* program) {
  for (int turn = 0; turn < 200; ++turn) {
    halyard_status_t status = halyard_call_invoke(program->call, program->quick, NULL, 0, NULL, 0);
    if (!status) return;
    EXPECT(halyard_status_code(status) == HALYARD_DEADLINE_EXCEEDED);
    halyard_status_release(status);
  }
  EXPECT(!"a call that ended in time");
}

static void stops(const char* uri) {
  if (!open_device(uri)) return;
  program_t* program = &programs[0];
  if (make_program(program, 0)) {
    for (int turn = 0; turn < 3; ++turn) {
      is_cancelled(program);
      OK(halyard_call_invoke(program->call, program->quick, NULL, 0, NULL, 0));
    }
  }
  drop_program(program);
  if (make_program(program, 50000000)) {
    for (int turn = 0; turn < 3; ++turn) {
      FAILS(halyard_call_invoke(program->call, program->spin, NULL, 0, NULL, 0), HALYARD_DEADLINE_EXCEEDED,
            "time limit");
      ends_in_time(program);
    }
  }
  drop_program(program);
  close_device();
  EXPECT(comes_to_rest());
}

/* Everything is released while the work is under way. */
static void drops(const char* uri) {
  if (!open_device(uri)) return;
  uint32_t state = HALYARD_CALL_DONE;
  if (make_program(&programs[0], 0)) {
    OK(halyard_call_begin(programs[0].call, programs[0].spin, NULL, 0, &state));
    EXPECT(state == HALYARD_CALL_WAITING);
    pause_ms(20);
  }
  drop_program(&programs[0]);
  close_device();
  EXPECT(comes_to_rest());
}

/* A call that has returned leaves its work behind. It goes on while somebody has the device, and ends with
 * the last reference to it, whether the program goes first or last; or with the time limit of its call. */
static void leaves_work_behind(const char* uri) {
  halyard_function_t leave = NULL;
  for (int program_first = 0; program_first < 2; ++program_first) {
    if (!open_device(uri)) return;
    if (make_program(&programs[0], 0) && OK(halyard_context_find(programs[0].context, NULL, "leave", &leave)))
      OK(halyard_call_invoke(programs[0].call, leave, NULL, 0, NULL, 0));
    halyard_release(leave);
    if (program_first) drop_program(&programs[0]);
    EXPECT(is_busy());
    close_device();
    EXPECT(program_first || is_busy());
    if (!program_first) drop_program(&programs[0]);
    EXPECT(comes_to_rest());
  }
  if (!open_device(uri)) return;
  if (make_program(&programs[0], 300000000) &&
      OK(halyard_context_find(programs[0].context, NULL, "leave", &leave))) {
    int was_busy = 0;
    for (int turn = 0; turn < 20 && !was_busy;
         ++turn) { /* on a busy machine it may get no processor in its time */
      OK(halyard_call_invoke(programs[0].call, leave, NULL, 0, NULL, 0));
      was_busy = is_busy();
      EXPECT(comes_to_rest());
    }
    EXPECT(was_busy);
    ends_in_time(&programs[0]);
    halyard_release(leave);
  }
  drop_program(&programs[0]);
  close_device();
}

/* Work of another context on the same device goes on. */
static void leaves_others_alone(const char* uri) {
  if (!open_device(uri)) return;
  uint32_t state = HALYARD_CALL_DONE;
  if (make_program(&programs[0], 0) && make_program(&programs[1], 0)) {
    for (int i = 0; i < 2; ++i) OK(halyard_call_begin(programs[i].call, programs[i].spin, NULL, 0, &state));
    halyard_call_cancel(programs[0].call);
    FAILS(halyard_call_resume(programs[0].call, &state), HALYARD_CANCELLED, "cancelled");
    pause_ms(50);
    EXPECT(is_busy());
    FAILS(halyard_call_resume(programs[1].call, &state), HALYARD_FAILED_PRECONDITION, "waits");
    halyard_call_cancel(programs[1].call);
    FAILS(halyard_call_resume(programs[1].call, &state), HALYARD_CANCELLED, "cancelled");
  }
  for (int i = 0; i < 2; ++i) drop_program(&programs[i]);
  close_device();
  EXPECT(comes_to_rest());
}

/* ---- Ends of the process */

enum { kExitCode = 7 };
static void* exit_soon(void* unused) {
  (void)unused;
  pause_ms(20);
  exit(kExitCode);
}
static void* exit_at_once_soon(void* unused) {
  (void)unused;
  pause_ms(20);
  _exit(kExitCode);
}
typedef void* (*ending_fn)(void*);

/* The child: in a call when another thread, or, where the call does not block, this one ends the process. */
static void end_at_work(const char* uri, ending_fn ending, int in_another_thread) {
  if (!open_device(uri) || !make_program(&programs[0], 0)) _exit(1);
  pthread_t thread;
  uint32_t state = 0;
  if (in_another_thread) {
    if (pthread_create(&thread, NULL, ending, NULL) != 0) _exit(1);
    halyard_status_release(halyard_call_invoke(programs[0].call, programs[0].spin, NULL, 0, NULL, 0));
    for (;;) pause_ms(1000);
  }
  if (!OK(halyard_call_begin(programs[0].call, programs[0].spin, NULL, 0, &state))) _exit(1);
  ending(NULL);
}

static void ends(const char* uri, ending_fn ending, int in_another_thread) {
  const pid_t child = fork();
  if (child == 0) {
    end_at_work(uri, ending, in_another_thread);
    _exit(1);
  }
  int status = 0;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kExitCode) {
    fprintf(stderr, "a process that ends at work on %s: status %#x\n", uri, (unsigned)status);
    ++failures;
  }
}

int main(void) {
  /* First, while this process has one thread. */
  for (int turn = 0; turn < 5; ++turn) {
    ends("local-task?workers=4", exit_soon, 0);
    ends("local-task?workers=4", exit_soon, 1);
    ends("local-task?workers=4", exit_at_once_soon, 1);
    ends("local-sync", exit_soon, 1);
    ends("local-sync", exit_at_once_soon, 1);
  }
  stops("local-sync");
  stops("local-task?workers=2");
  drops("local-task?workers=2");
  leaves_work_behind("local-task?workers=2");
  leaves_others_alone("local-task?workers=2");
  return failures != 0;
}
