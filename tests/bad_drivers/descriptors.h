/* The null driver with semaphore descriptors, optionally with a bug in them. A descriptor refers to a file in
 * memory that contains the value; a subscription updates the file, and each update notifies all imports. A
 * variant defines `follows` (whether files are updated) and `closes` (whether a refused descriptor is
 * closed). */
#ifndef HALYARD_TESTS_DESCRIPTORS_H_
#define HALYARD_TESTS_DESCRIPTORS_H_

#include <sys/mman.h>
#include <unistd.h>

#include "wrapped.h"

typedef struct {
  char is[8];
  uint64_t value;
} file_t;

typedef struct record {
  halyard_driver_semaphore_t semaphore;
  int fd;
  int is_import;
  uint64_t value;
  struct record* next;
} record_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static record_t* records;

static halyard_status_t refuse(halyard_status_code_t code, const char* message) {
  return services->status_create(services->host, code, message, strlen(message));
}

/* Updates imports from their files. Signals without the lock, because subscribers may call the driver. */
static void look(void) {
  for (;;) {
    halyard_driver_semaphore_t semaphore = NULL;
    file_t file = {{0}, 0};
    pthread_mutex_lock(&mutex);
    for (record_t* record = records; record && !semaphore; record = record->next) {
      if (!record->is_import || pread(record->fd, &file, sizeof file, 0) != sizeof file) continue;
      if (file.value <= record->value) continue;
      record->value = file.value;
      semaphore = record->semaphore;
    }
    pthread_mutex_unlock(&mutex);
    if (!semaphore) return;
    services->status_release(services->host, good.semaphore_signal(semaphore, file.value));
  }
}

static void moved(void* user, halyard_status_t failure) {
  record_t* record = user;
  uint64_t now = 0;
  const int failed = failure != NULL;
  services->status_release(services->host, failure);
  if (failed) return;
  failure = good.semaphore_query(record->semaphore, &now);
  services->status_release(services->host, failure);
  if (failure) return;
  const file_t file = {"nullsem", now};
  if (follows && pwrite(record->fd, &file, sizeof file, 0) != sizeof file) abort();
  record->value = now;
  if (now != UINT64_MAX)
    services->status_release(services->host,
                             good.semaphore_subscribe(record->semaphore, now + 1, moved, record));
  look();
}

static void keep(halyard_driver_semaphore_t semaphore, int fd, int is_import, uint64_t value) {
  record_t* record = malloc(sizeof *record);
  pthread_mutex_lock(&mutex);
  *record = (record_t){semaphore, fd, is_import, value, records};
  records = record;
  pthread_mutex_unlock(&mutex);
  if (!is_import)
    services->status_release(services->host, good.semaphore_subscribe(semaphore, value + 1, moved, record));
}

static halyard_status_t device_properties(halyard_driver_device_t device,
                                          halyard_device_properties_t* properties) {
  halyard_status_t status = good.device_properties(device, properties);
  if (status) return status;
  properties->capabilities |= HALYARD_DEVICE_SEMAPHORE_EXPORT;
  if (HALYARD_HAS_FIELD(properties, halyard_device_properties_t, semaphore_fd_group)) {
    properties->semaphore_fd_kind = HALYARD_SEMAPHORE_FD_OPAQUE;
    memcpy(properties->semaphore_fd_group, "null", 4);
  }
  return NULL;
}

static int is_import(halyard_driver_semaphore_t semaphore) {
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (record_t* record = records; record; record = record->next)
    found |= record->semaphore == semaphore && record->is_import;
  pthread_mutex_unlock(&mutex);
  return found;
}

static halyard_status_t semaphore_export(halyard_driver_semaphore_t semaphore, int32_t* fd) {
  file_t file = {"nullsem", 0};
  if (is_import(semaphore)) return refuse(HALYARD_UNIMPLEMENTED, "an imported semaphore is not exported");
  halyard_status_t failure = good.semaphore_query(semaphore, &file.value);
  if (failure) return failure;
  const int made = memfd_create("semaphore", MFD_CLOEXEC);
  const int given = dup(made);
  if (given < 0 || pwrite(made, &file, sizeof file, 0) != sizeof file)
    return refuse(HALYARD_RESOURCE_EXHAUSTED, "no file for a semaphore");
  *fd = given;
  keep(semaphore, made, 0, file.value);
  return NULL;
}

static halyard_status_t semaphore_import(halyard_driver_device_t device, int32_t fd,
                                         halyard_driver_semaphore_t* semaphore) {
  file_t file = {{0}, 0};
  if (pread(fd, &file, sizeof file, 0) != sizeof file || strcmp(file.is, "nullsem") != 0) {
    if (closes) close(fd);
    return refuse(HALYARD_INVALID_ARGUMENT, "the descriptor is of no semaphore; export one");
  }
  halyard_status_t status = good.semaphore_create(device, file.value, semaphore);
  if (!status) keep(*semaphore, fd, 1, file.value);
  return status;
}

static void semaphore_destroy(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore) {
  for (;;) {
    record_t* found = NULL;
    pthread_mutex_lock(&mutex);
    record_t** link = &records;
    while (*link && (*link)->semaphore != semaphore) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&mutex);
    if (!found) break;
    if (!found->is_import) good.semaphore_unsubscribe(semaphore, moved, found);
    close(found->fd);
    free(found);
  }
  good.semaphore_destroy(device, semaphore);
}

/* All accepted work that is not complete is waiting. */
static int32_t semaphore_underway(halyard_driver_semaphore_t semaphore, uint64_t value) {
  uint64_t now = 0;
  halyard_status_t failure = good.semaphore_query(semaphore, &now);
  services->status_release(services->host, failure);
  return !failure && now >= value;
}

static void spoil(halyard_driver_table_t* table) {
  table->device_properties = device_properties;
  table->semaphore_export = semaphore_export;
  table->semaphore_import = semaphore_import;
  table->semaphore_destroy = semaphore_destroy;
  table->semaphore_underway = semaphore_underway;
}

#endif /* HALYARD_TESTS_DESCRIPTORS_H_ */
