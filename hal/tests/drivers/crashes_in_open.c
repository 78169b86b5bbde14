/* Dies while a device is opened. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "crashes_in_open"
#define SAMPLE_KINDS "crashes_in_open"
#define SAMPLE_IN_OPEN raise(SIGILL);
#include "sample.h"
