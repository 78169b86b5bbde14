/* Dies while it negotiates. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "aborts_in_negotiate"
#define SAMPLE_KINDS "aborts_in_negotiate"
#define SAMPLE_IN_NEGOTIATE abort();
#include "sample.h"
