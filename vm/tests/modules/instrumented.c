/* Built with a sanitizer that this host is never built with. */
#define FAULTY_SANITIZER HALYARD_SANITIZER_MEMORY
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
