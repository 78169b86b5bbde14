/* Dies while it is initialized, after writing a message. */
#define SAMPLE_LIBRARY "crashes_in_initialize"
#define SAMPLE_IN_INITIALIZE                               \
  if (write(STDERR_FILENO, "the sky falls\n", 14) == 14) { \
    raise(SIGSEGV);                                        \
  }
#include "sample.h"
