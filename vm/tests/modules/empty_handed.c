/* Accepts, but returns no definition. */
#define FAULTY_NO_DEFINITION
#include "faulty.h"
