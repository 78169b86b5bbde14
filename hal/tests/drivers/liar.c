/* Chooses a version that was not offered. */
#define SAMPLE_LIBRARY "liar"
#define SAMPLE_ABI_VERSION 7
#include "sample.h"
