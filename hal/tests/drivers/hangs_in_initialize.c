/* Hangs while it is initialized. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "hangs_in_initialize"
#define SAMPLE_KINDS "hangs_in_initialize"
#define SAMPLE_IN_INITIALIZE \
  for (;;) pause();
#include "sample.h"
