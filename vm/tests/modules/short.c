/* Its definition ends before the types. */
#define FAULTY_SIZE offsetof(halyard_module_definition_t, types)
#include "faulty.h"
