/* Nothing is wrong with it. */
#include "faulty.h"
