/* Dies while it is loaded. */
#define SAMPLE_LIBRARY "crashes_in_constructor"
#include "sample.h"

__attribute__((constructor)) static void crash(void) { raise(SIGSEGV); }
