/* Ends the process while it is initialized. */
#define SAMPLE_LIBRARY "exits_in_initialize"
#define SAMPLE_IN_INITIALIZE exit(0);
#include "sample.h"
