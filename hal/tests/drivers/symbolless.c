/* Exports nothing. */
#define SAMPLE_LIBRARY "symbolless"
#define SAMPLE_NO_SYMBOL
#include "sample.h"
