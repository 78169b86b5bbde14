/* Dies when the process ends. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "crashes_in_destructor"
#define SAMPLE_KINDS "crashes_in_destructor"
#include "sample.h"

__attribute__((destructor)) static void crash(void) { raise(SIGBUS); }
