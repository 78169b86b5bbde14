/* Dies while a device is opened. */
#define SAMPLE_LIBRARY "crashes_in_open"
#define SAMPLE_IN_OPEN raise(SIGILL);
#include "sample.h"
