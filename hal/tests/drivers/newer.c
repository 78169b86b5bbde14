/* Its table is longer than this host knows. */
#define SAMPLE_LIBRARY "newer"
#define SAMPLE_KINDS "newer"
#define SAMPLE_TABLE newer_table
#include "halyard/driver.h"
static struct newer_table {
  halyard_driver_table_t known;
  void (*later[3])(void);
} newer_table;
#include "sample.h"

__attribute__((constructor)) static void fill(void) {
  newer_table.known = sample_table;
  newer_table.known.struct_size = sizeof newer_table;
}
