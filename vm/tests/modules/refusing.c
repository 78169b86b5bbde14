/* Refuses every host. */
#define FAULTY_REFUSAL "only on Sundays"
#include "faulty.h"
