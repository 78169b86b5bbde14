/* Hangs while it is initialized. */
#define SAMPLE_LIBRARY "hangs_in_initialize"
#define SAMPLE_IN_INITIALIZE \
  for (;;) pause();
#include "sample.h"
