/* Valid. */
#include "faulty.h"
