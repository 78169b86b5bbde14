/* Dies while it lists its devices. */
#define SAMPLE_LIBRARY "crashes_in_enumerate"
#define SAMPLE_IN_ENUMERATE raise(SIGFPE);
#include "sample.h"
