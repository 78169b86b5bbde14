/* Supports only future versions of the ABI. */
#define FAULTY_NOTE_LOW 2
#define FAULTY_NOTE_HIGH 3
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
