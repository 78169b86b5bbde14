/* Does not export the negotiation function. */
#define FAULTY_NO_SYMBOL
#include "faulty.h"
