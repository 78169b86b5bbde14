/* A descriptor that cannot be imported is closed. */
enum { follows = 1, closes = 1 };
#include "descriptors.h"

HALYARD_DRIVER_NOTE("descriptor-closed", "1.0", "null");
