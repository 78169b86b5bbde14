/* Its note is malformed. */
#define FAULTY_NOTE_LOW 3
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
