/* Has a kind that the sample driver has too. */
#define SAMPLE_LIBRARY "twin"
#define SAMPLE_KINDS "sample"
#include "sample.h"
