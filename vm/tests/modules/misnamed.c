/* Its note has a name that imports cannot refer to. */
#define FAULTY_NAME "a.b"
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
