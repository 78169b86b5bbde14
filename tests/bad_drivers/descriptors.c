/* No bug: the cases of descriptors must pass. */
enum { follows = 1, closes = 0 };
#include "descriptors.h"

HALYARD_DRIVER_NOTE("descriptors", "1.0", "null");
