/* Dies while it negotiates. */
#define SAMPLE_LIBRARY "aborts_in_negotiate"
#define SAMPLE_IN_NEGOTIATE abort();
#include "sample.h"
