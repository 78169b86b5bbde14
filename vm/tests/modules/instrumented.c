/* Was built with a sanitizer that nobody builds this host with. */
#define FAULTY_SANITIZER HALYARD_SANITIZER_MEMORY
#define FAULTY_MUST_NOT_RUN
#include "faulty.h"
