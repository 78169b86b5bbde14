/* Its table holds nothing but its size. */
#define SAMPLE_LIBRARY "empty"
#define SAMPLE_TABLE empty_table
static const unsigned empty_table = sizeof(unsigned);
#include "sample.h"
