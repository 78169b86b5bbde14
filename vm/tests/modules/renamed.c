/* Its definition has another name than its note. */
#define FAULTY_NAME "other"
#include "faulty.h"
