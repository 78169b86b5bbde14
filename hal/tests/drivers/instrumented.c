/* Was built with a sanitizer that the host does not have. */
#define SAMPLE_LIBRARY "instrumented"
#define SAMPLE_NOTE SAMPLE_NOTE_OF(1, 1, HALYARD_SANITIZER_MEMORY)
#include "sample.h"
