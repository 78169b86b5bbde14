/* A query of an unknown category ends the process. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("crashes", "1.0", "null");

static halyard_status_t device_query_i64(halyard_driver_device_t device, halyard_text_t category,
                                         halyard_text_t key, int32_t* known, int64_t* value) {
  if (category.size == strlen("no.such.category")) abort();
  return good.device_query_i64(device, category, key, known, value);
}

static void spoil(halyard_driver_table_t* table) { table->device_query_i64 = device_query_i64; }
