/* Dies while it is loaded. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "crashes_in_constructor"
#define SAMPLE_KINDS "crashes_in_constructor"
#include "sample.h"

__attribute__((constructor)) static void crash(void) { raise(SIGSEGV); }
