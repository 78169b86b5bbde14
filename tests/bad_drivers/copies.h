/* Copies of submissions that outlive the call. */
#ifndef HALYARD_TESTS_COPIES_H_
#define HALYARD_TESTS_COPIES_H_

#include "wrapped.h"

typedef struct queued {
  struct queued* next;
  halyard_driver_device_t device;
  halyard_submission_t submission;
  halyard_operation_t operation;
} queued_t;

static void* copied(const void* from, size_t size) {
  void* copy = malloc(size + 1);
  if (size) memcpy(copy, from, size);
  return copy;
}

static queued_t* copy_of(halyard_driver_device_t device, const halyard_submission_t* submission) {
  queued_t* made = calloc(1, sizeof *made);
  made->device = device;
  made->submission = *submission;
  made->submission.struct_size = sizeof made->submission;
  made->submission.waits = copied(submission->waits, submission->wait_count * sizeof *submission->waits);
  made->submission.signals =
      copied(submission->signals, submission->signal_count * sizeof *submission->signals);
  made->operation.struct_size = sizeof made->operation;
  made->operation.kind = submission->operation->kind;
  made->submission.operation = &made->operation;
  if (made->operation.kind == HALYARD_OPERATION_EXECUTE) {
    halyard_operation_execute_t* execute = &made->operation.execute;
    *execute = submission->operation->execute;
    execute->bindings = copied(execute->bindings, execute->binding_count * sizeof *execute->bindings);
  }
  return made;
}

static void destroy(queued_t* it) {
  if (it->operation.kind == HALYARD_OPERATION_EXECUTE) free((void*)it->operation.execute.bindings);
  free((void*)it->submission.waits);
  free((void*)it->submission.signals);
  free(it);
}

#endif /* HALYARD_TESTS_COPIES_H_ */
