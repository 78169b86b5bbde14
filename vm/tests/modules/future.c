/* Speaks only versions of the ABI that are to come. */
#define FAULTY_NOTE_LOW 2
#define FAULTY_NOTE_HIGH 3
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
