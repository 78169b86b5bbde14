/* Dies while it lists its devices. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "crashes_in_enumerate"
#define SAMPLE_KINDS "crashes_in_enumerate"
#define SAMPLE_IN_ENUMERATE raise(SIGFPE);
#include "sample.h"
