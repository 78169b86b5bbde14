/* Its table ends before queue_submit and lacks memory_allocate. */
#define SAMPLE_LIBRARY "older"
#define SAMPLE_TABLE older_table
#include "halyard/driver.h"
static halyard_driver_table_t older_table;
#include "sample.h"

/* Filled here, because a shorter table of the same type cannot be written as a constant. */
__attribute__((constructor)) static void fill(void) {
  older_table = sample_table;
  older_table.struct_size = HALYARD_FIELD_END(halyard_driver_table_t, command_list_destroy);
  older_table.memory_allocate = NULL;
}
