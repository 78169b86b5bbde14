/* Starts a process that outlives it and keeps its open descriptors. */
#define SAMPLE_LIBRARY "leaves_a_process"
#define SAMPLE_IN_INITIALIZE \
  if (fork() == 0) {         \
    for (;;) pause();        \
  }
#include "sample.h"
