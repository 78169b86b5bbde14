/* Speaks only future versions of the ABI. */
#define SAMPLE_LIBRARY "future"
#define SAMPLE_NOTE SAMPLE_NOTE_OF(2, 3, HALYARD_SANITIZER_KIND)
#include "sample.h"
