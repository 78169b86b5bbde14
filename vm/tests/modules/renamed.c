/* The names in its definition and its note differ. */
#define FAULTY_NAME "other"
#include "faulty.h"
