/* The local driver, which does what an executable with one of these texts asks for, as native code of a
 * client or a defect of a driver may do:
 *
 *   fault-segv, fault-abort, fault-exit   a thread ends the process when the executable's work has begun
 *   fault-hoard                           a thread allocates all memory that it gets, then ends the process
 *   fault-loop                            work that does not end, and cannot be stopped
 *   fault-submit                          submitting the work does not return
 *   fault-load                            loading the executable does not return */
#include <stdio.h>
#include <unistd.h>

#include "wrapped.h"

HALYARD_DRIVER_NOTE("faulty", "1.0", "local-sync,local-task");

enum { kNone, kSegv, kAbort, kExit, kHoard, kLoop, kSubmit, kLoad, kCount };
static const char* const texts[kCount] = {
    "", "fault-segv", "fault-abort", "fault-exit", "fault-hoard", "fault-loop", "fault-submit", "fault-load"};
static int* volatile nowhere;
static int fault; /* of the latest executable */

static void loop(void) {
  for (volatile int i = 0;; ++i) continue;
}

static void* run(void* unused) {
  (void)unused;
  usleep(100000);
  switch (fault) {
    case kSegv:
      *nowhere = 1;
      break;
    case kAbort:
      abort();
    case kExit:
      _exit(3);
    case kHoard:
      for (char* block; (block = malloc(64 << 20));) memset(block, 1, 4096);
      abort();
    default:
      loop();
  }
  return NULL;
}

static halyard_status_t executable_create(halyard_driver_device_t device,
                                          const halyard_executable_args_t* args,
                                          halyard_driver_executable_t* executable) {
  fault = kNone;
  for (int each = 1; each < kCount; ++each)
    if (memmem(args->data, args->data_size, texts[each], strlen(texts[each]))) fault = each;
  if (fault == kLoad) loop();
  return good.executable_create(device, args, executable);
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  if (submission->operation->kind != HALYARD_OPERATION_EXECUTE || fault == kNone)
    return good.queue_submit(device, submission);
  if (fault == kSubmit) loop();
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) == 0) pthread_detach(thread);
  return NULL; /* the work never completes */
}

static void spoil(halyard_driver_table_t* table) {
  table->executable_create = executable_create;
  table->queue_submit = queue_submit;
}
