/* Has no note. */
#define FAULTY_NO_NOTE
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
