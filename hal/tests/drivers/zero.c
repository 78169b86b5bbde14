/* Speaks version 0 of the ABI, among others. */
#define SAMPLE_LIBRARY "zero"
#define SAMPLE_NOTE SAMPLE_NOTE_OF(0, 1, HALYARD_SANITIZER_KIND)
#include "sample.h"
