/* Its definition is of a version that nobody offered. */
#define FAULTY_ABI_VERSION 7
#include "faulty.h"
