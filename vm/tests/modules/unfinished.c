/* Its definition is of version 0. */
#define FAULTY_ABI_VERSION 0
#include "faulty.h"
