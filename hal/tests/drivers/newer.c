/* Built against a future header: its table is longer than this host's, with bytes that are not functions at
 * the end, and it fills newer fields if a struct of the host has room for them. */
#define SAMPLE_LIBRARY "newer"
#define SAMPLE_TABLE newer_table
#include "halyard/driver.h"
static struct newer_table {
  halyard_driver_table_t known;
  uint64_t later[3];
} newer_table;
#include "sample.h"

/* Overwrites the fields after today's that the host's size allows. */
static halyard_status_t fill_later(void* target, uint32_t struct_size, size_t known) {
  if (struct_size > known) memset((char*)target + known, 0xEE, struct_size - known);
  return NULL;
}

static halyard_status_t newer_enumerate_devices(halyard_driver_instance_t instance, uint32_t capacity,
                                                halyard_device_info_t* infos, uint32_t* count) {
  halyard_status_t status = sample_enumerate_devices(instance, capacity, infos, count);
  for (uint32_t i = 0; !status && i < *count && i < capacity; ++i)
    fill_later(sample_info(infos, i), infos->struct_size, sizeof *infos);
  return status;
}

static halyard_status_t newer_device_properties(halyard_driver_device_t device,
                                                halyard_device_properties_t* properties) {
  halyard_status_t status = sample_device_properties(device, properties);
  return status ? status : fill_later(properties, properties->struct_size, sizeof *properties);
}

static halyard_status_t newer_device_memory_statistics(halyard_driver_device_t device,
                                                       halyard_memory_statistics_t* statistics) {
  sample_device_memory_statistics(device, statistics);
  return fill_later(statistics, statistics->struct_size, sizeof *statistics);
}

static halyard_status_t newer_memory_allocate(halyard_driver_device_t device,
                                              const halyard_memory_request_t* request,
                                              halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  if (request->struct_size > sizeof *request)
    return failure(device->instance, HALYARD_INTERNAL, "the request is longer than it can be today");
  halyard_status_t status = sample_memory_allocate(device, request, memory, info);
  return status ? status : fill_later(info, info->struct_size, sizeof *info);
}

static void newer_executable_grade(halyard_driver_device_t device, halyard_text_t format, const void* data,
                                   uint64_t data_size, halyard_executable_grade_t* grade) {
  sample_executable_grade(device, format, data, data_size, grade);
  fill_later(grade, grade->struct_size, sizeof *grade);
}

__attribute__((constructor)) static void fill(void) {
  newer_table.known = sample_table;
  newer_table.known.struct_size = sizeof newer_table;
  newer_table.known.enumerate_devices = newer_enumerate_devices;
  newer_table.known.device_properties = newer_device_properties;
  newer_table.known.device_memory_statistics = newer_device_memory_statistics;
  newer_table.known.memory_allocate = newer_memory_allocate;
  newer_table.known.executable_grade = newer_executable_grade;
  memset(newer_table.later, 0xE7, sizeof newer_table.later);
}
