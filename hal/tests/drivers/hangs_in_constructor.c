/* Hangs while it is loaded. */
#define SAMPLE_LIBRARY "hangs_in_constructor"
#include "sample.h"

__attribute__((constructor)) static void hang(void) {
  for (;;) pause();
}
