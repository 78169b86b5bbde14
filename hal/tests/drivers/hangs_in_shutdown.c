/* Hangs while it is shut down. */
#define SAMPLE_LIBRARY "hangs_in_shutdown"
#define SAMPLE_IN_SHUTDOWN \
  for (;;) pause();
#include "sample.h"
