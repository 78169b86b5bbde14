/* Finds nothing to drive. */
#define SAMPLE_LIBRARY "unavailable"
#define SAMPLE_UNAVAILABLE "no hardware is plugged in"
#include "sample.h"
