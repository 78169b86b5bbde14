/* Hangs while it is shut down. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "hangs_in_shutdown"
#define SAMPLE_KINDS "hangs_in_shutdown"
#define SAMPLE_IN_SHUTDOWN \
  for (;;) pause();
#include "sample.h"
