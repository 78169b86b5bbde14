/* Dies while it is loaded. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("aborts-in-constructor", "1.0", "aborts");

__attribute__((constructor)) static void die(void) { abort(); }

static void spoil(halyard_driver_table_t* table) { (void)table; }
