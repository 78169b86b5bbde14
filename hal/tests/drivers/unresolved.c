/* Needs a function that does not exist. */
#define SAMPLE_LIBRARY "unresolved"
#include "sample.h"

void function_that_is_nowhere(void);
HALYARD_DRIVER_EXPORT void call_it(void);
void call_it(void) { function_that_is_nowhere(); }
