/* Its definition has a version that was not offered. */
#define FAULTY_ABI_VERSION 7
#include "faulty.h"
