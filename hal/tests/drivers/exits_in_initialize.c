/* Ends the process while it is initialized. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "exits_in_initialize"
#define SAMPLE_KINDS "exits_in_initialize"
#define SAMPLE_IN_INITIALIZE exit(0);
#include "sample.h"
