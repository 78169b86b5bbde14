/* Loops for ever while it is loaded. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("loops-in-constructor", "1.0", "loops");

__attribute__((constructor)) static void loop(void) {
  for (volatile int count = 0;; ++count) {
  }
}

static void spoil(halyard_driver_table_t* table) { (void)table; }
