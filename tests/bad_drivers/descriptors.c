/* No bug: what the cases of descriptors are to pass. */
enum { follows = 1, closes = 0 };
#include "descriptors.h"

HALYARD_DRIVER_NOTE("descriptors", "1.0", "null");
