/* Its note has a name that no import can write. */
#define FAULTY_NAME "a.b"
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
