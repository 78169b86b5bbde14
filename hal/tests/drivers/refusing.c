/* Refuses every host. */
#define SAMPLE_LIBRARY "refusing"
#define SAMPLE_REFUSAL "only on Sundays"
#include "sample.h"
