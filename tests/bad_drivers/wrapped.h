/* A bad driver is the null driver with some functions of its table replaced. A variant defines `spoil`, which
 * replaces functions, and calls the originals through `good`. A variant of another driver first defines
 * BASE_DRIVER, which is loaded on first use. NULL_DRIVER and LOCAL_DRIVER are paths. */
#ifndef HALYARD_TESTS_WRAPPED_H_
#define HALYARD_TESTS_WRAPPED_H_

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "halyard/driver.h"

#ifndef BASE_DRIVER
#define BASE_DRIVER NULL_DRIVER
#endif

static halyard_driver_table_t good; /* of the null driver or of BASE_DRIVER */
static halyard_driver_table_t bad;  /* for the host */

static const halyard_host_services_t* services; /* of the latest instance */

static void spoil(halyard_driver_table_t* table);

static halyard_status_t initialize(const halyard_driver_init_args_t* args,
                                   halyard_driver_instance_t* instance) {
  services = args->services;
  return good.initialize(args, instance);
}

static halyard_driver_negotiate_fn base_driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
  void* library = dlopen(BASE_DRIVER, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, HALYARD_DRIVER_NEGOTIATE_SYMBOL) : NULL;
  halyard_driver_request_t request = {.struct_size = sizeof request,
                                      .abi_min = HALYARD_DRIVER_ABI_V1,
                                      .abi_max = HALYARD_DRIVER_ABI_V1,
                                      .sanitizer = HALYARD_SANITIZER_KIND,
                                      .host_version = "bad driver"};
  halyard_driver_reply_t reply = {.struct_size = sizeof reply};
  memcpy(&base_driver, &symbol, sizeof symbol);
  if (!base_driver || !base_driver(&request, &reply)) {
    base_driver = NULL;
    return;
  }
  good = *reply.table;
  bad = good;
  bad.initialize = initialize;
  spoil(&bad);
}

int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) {
  pthread_once(&once, load);
  if (!base_driver || !base_driver(request, reply)) return 0;
  reply->table = &bad;
  return 1;
}

#endif /* HALYARD_TESTS_WRAPPED_H_ */
