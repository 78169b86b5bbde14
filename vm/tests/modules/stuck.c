/* Its function does not return. */
#define FAULTY_STUCK
#include "faulty.h"
