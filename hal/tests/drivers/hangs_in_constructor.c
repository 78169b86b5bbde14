/* Hangs while it is loaded. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLE_LIBRARY "hangs_in_constructor"
#define SAMPLE_KINDS "hangs_in_constructor"
#include "sample.h"

__attribute__((constructor)) static void hang(void) {
  for (;;) pause();
}
