/* Definitions that the ABIs of drivers and native modules share: growth of structs, kinds of sanitizers, and
 * the ELF note that identifies a library before its code runs. Plain C11. The ABIs themselves are declared in
 * halyard/driver.h and halyard/module.h.
 *
 * GROWTH. Every struct that may grow starts with struct_size: the size in bytes that the writer of the struct
 * was compiled with. A reader uses a field only if HALYARD_HAS_FIELD confirms that the writer had it; a
 * missing field counts as zero. New fields are only appended.
 */
#ifndef HALYARD_ABI_H_
#define HALYARD_ABI_H_

#include <stddef.h>
#include <stdint.h>

/* ---- Versions and growth ------------------------------------------------------------------------------- */

/* Bytes from the start of `type` to the end of `field`. */
#define HALYARD_FIELD_END(type, field) (offsetof(type, field) + sizeof(((type*)0)->field))
/* Whether struct_size of *pointer covers `field`. */
#define HALYARD_HAS_FIELD(pointer, type, field) ((pointer)->struct_size >= HALYARD_FIELD_END(type, field))

/* ---- Sanitizers ---------------------------------------------------------------------------------------- */

enum {
  HALYARD_SANITIZER_NONE = 0,
  HALYARD_SANITIZER_ADDRESS = 1,
  HALYARD_SANITIZER_THREAD = 2,
  HALYARD_SANITIZER_MEMORY = 3,
};

/* The sanitizer of the code being compiled. */
#if defined(__SANITIZE_ADDRESS__)
#define HALYARD_SANITIZER_KIND 1u
#elif defined(__SANITIZE_THREAD__)
#define HALYARD_SANITIZER_KIND 2u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HALYARD_SANITIZER_KIND 1u
#elif __has_feature(thread_sanitizer)
#define HALYARD_SANITIZER_KIND 2u
#elif __has_feature(memory_sanitizer)
#define HALYARD_SANITIZER_KIND 3u
#endif
#endif
#ifndef HALYARD_SANITIZER_KIND
#define HALYARD_SANITIZER_KIND 0u
#endif

/* ---- Notes --------------------------------------------------------------------------------------------- */

#define HALYARD_NOTE_OWNER "Halyard" /* with its terminator: 8 bytes */

/* Types of notes: what the library is. Numbers never change; each type has a description of fixed size. */
#define HALYARD_NOTE_TYPE_DRIVER 1u /* halyard_driver_note_t, halyard/driver.h */
#define HALYARD_NOTE_TYPE_MODULE 2u /* halyard_module_note_t, halyard/module.h */

/* Attributes of a record in a note's section. */
#if defined(__clang__) /* no red zone: it would corrupt the note section */
#define HALYARD_NOTE_PLAIN_ __attribute__((no_sanitize("address")))
#else
#define HALYARD_NOTE_PLAIN_
#endif

#endif /* HALYARD_ABI_H_ */
