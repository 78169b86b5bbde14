/* A module with one function and the faults that FAULTY_* selects: FAULTY_NAME (in the note),
 * FAULTY_NOTE_LOW, FAULTY_NOTE_HIGH, FAULTY_SANITIZER, FAULTY_NO_NOTE, FAULTY_NO_SYMBOL, FAULTY_REFUSAL,
 * FAULTY_NO_DEFINITION, FAULTY_ABI_VERSION (of the definition), FAULTY_SIZE (of the definition),
 * FAULTY_STUCK (the function writes "stuck" to stderr and does not return). With FAULTY_MUST_NOT_RUN,
 * loading the library aborts the process. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "halyard/module.h"

#ifndef FAULTY_NAME
#define FAULTY_NAME "faulty"
#endif
#ifndef FAULTY_NOTE_LOW
#define FAULTY_NOTE_LOW 1
#endif
#ifndef FAULTY_NOTE_HIGH
#define FAULTY_NOTE_HIGH 1
#endif
#ifndef FAULTY_SANITIZER
#define FAULTY_SANITIZER HALYARD_SANITIZER_KIND
#endif
#ifndef FAULTY_ABI_VERSION
#define FAULTY_ABI_VERSION HALYARD_MODULE_ABI_V1
#endif
#ifndef FAULTY_SIZE
#define FAULTY_SIZE sizeof(halyard_module_definition_t)
#endif

#ifndef FAULTY_NO_NOTE
HALYARD_NOTE_PLAIN_
__attribute__((used, aligned(4),
               section(HALYARD_MODULE_NOTE_SECTION))) static const halyard_module_note_record_t note = {
    8,
    sizeof(halyard_module_note_t),
    HALYARD_NOTE_TYPE_MODULE,
    HALYARD_NOTE_OWNER,
    {FAULTY_NOTE_LOW, FAULTY_NOTE_HIGH, FAULTY_SANITIZER, 0, FAULTY_NAME, "1"}};
#endif

#ifdef FAULTY_MUST_NOT_RUN
__attribute__((constructor)) static void end(void) { abort(); }
#endif

static int32_t one(void) {
#ifdef FAULTY_STUCK
  if (write(STDERR_FILENO, "stuck\n", 6) != 6) abort();
  for (;;) pause();
#endif
  return 1;
}

static const halyard_module_export_t exports[] = {HALYARD_PLAIN("one", "0v_i", one, 0)};

static const halyard_module_definition_t definition = {
    .struct_size = FAULTY_SIZE,
    .abi_version = FAULTY_ABI_VERSION,
    .name = "faulty",
    .export_size = sizeof exports[0],
    .exports = exports,
    .export_count = 1,
};

int32_t negotiate(const halyard_module_request_t* request, halyard_module_reply_t* reply);
#ifndef FAULTY_NO_SYMBOL
__attribute__((visibility("default"))) int32_t
negotiate(const halyard_module_request_t* request,
          halyard_module_reply_t* reply) __asm__(HALYARD_MODULE_NEGOTIATE_SYMBOL);
#endif
int32_t negotiate(const halyard_module_request_t* request, halyard_module_reply_t* reply) {
#if defined(FAULTY_REFUSAL)
  memcpy(reply->refusal, FAULTY_REFUSAL, sizeof FAULTY_REFUSAL);
  return request == NULL; /* 0 */
#elif defined(FAULTY_NO_DEFINITION)
  reply->definition = NULL;
  return request != NULL;
#else
  reply->definition = &definition;
  return request != NULL;
#endif
}
