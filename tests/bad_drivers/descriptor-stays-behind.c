/* An imported semaphore stays where the exported one was when it was exported. */
enum { follows = 0, closes = 0 };
#include "descriptors.h"

HALYARD_DRIVER_NOTE("descriptor-stays-behind", "1.0", "null");
