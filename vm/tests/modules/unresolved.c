/* Needs a function that does not exist. */
#include "faulty.h"

void function_that_is_nowhere(void);
__attribute__((visibility("default"))) void call_it(void);
void call_it(void) { function_that_is_nowhere(); }
