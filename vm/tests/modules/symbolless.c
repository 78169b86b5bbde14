/* Does not export the function that negotiates. */
#define FAULTY_NO_SYMBOL
#include "faulty.h"
