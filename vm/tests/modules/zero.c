/* Supports version 0 of the ABI, among others. */
#define FAULTY_NOTE_LOW 0
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
