/* Has no note. */
#define SAMPLE_LIBRARY "noteless"
#define SAMPLE_NO_NOTE
#include "sample.h"
