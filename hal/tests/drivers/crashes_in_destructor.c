/* Dies when the process ends. */
#define SAMPLE_LIBRARY "crashes_in_destructor"
#include "sample.h"

__attribute__((destructor)) static void crash(void) { raise(SIGBUS); }
