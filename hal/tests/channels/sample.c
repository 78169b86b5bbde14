/* A channel provider without channels, for tests of the way from a file to a provider. HALYARD_TEST_CHANNEL
 * names the error that it makes: see the uses of makes_error(). */
#include <stdlib.h>
#include <string.h>

#include "halyard/channel.h"

HALYARD_CHANNEL_NOTE("sample", "1.0", "other,sample");

static int makes_error(const char* name) {
  const char* const chosen = getenv("HALYARD_TEST_CHANNEL");
  return chosen && strcmp(chosen, name) == 0;
}

struct halyard_channel_provider {
  const halyard_host_services_t* services;
  char imported[64];
};

static halyard_status_t failure(const halyard_host_services_t* services, halyard_status_code_t code,
                                const char* text) {
  return services->status_create(services->host, code, text, strlen(text));
}

static halyard_status_t initialize(const halyard_channel_init_args_t* args, halyard_channel_provider_t* out) {
  if (makes_error("unavailable")) return failure(args->services, HALYARD_UNAVAILABLE, "no network");
  if (makes_error("late")) return failure(args->services, HALYARD_DEADLINE_EXCEEDED, "nobody has come");
  if (makes_error("handleless")) return NULL;
  *out = calloc(1, sizeof **out);
  (*out)->services = args->services;
  return NULL;
}

static void shutdown(halyard_channel_provider_t* provider) {
  free(*provider);
  *provider = NULL;
}

static halyard_status_t world(halyard_channel_provider_t provider, halyard_channel_world_t* world) {
  if (makes_error("worldless")) return failure(provider->services, HALYARD_DATA_LOSS, "the job is gone");
  world->rank = 1;
  world->count = 3;
  world->description = provider->imported;
  return NULL;
}

static halyard_status_t import(halyard_channel_provider_t provider, halyard_text_t id, halyard_text_t kind,
                               uint64_t handle) {
  if (id.size + kind.size + 2 > sizeof provider->imported || handle != 7)
    return failure(provider->services, HALYARD_INVALID_ARGUMENT, "no such communicator");
  memcpy(provider->imported, id.data, id.size);
  provider->imported[id.size] = ':';
  memcpy(provider->imported + id.size + 1, kind.data, kind.size);
  return NULL;
}

static halyard_status_t channel_open(halyard_channel_provider_t provider,
                                     const halyard_channel_open_args_t* args,
                                     halyard_provider_channel_t* out) {
  (void)args, (void)out;
  return failure(provider->services, HALYARD_UNIMPLEMENTED, "no channels");
}

/* Never called, because there are no channels. */
static halyard_status_t channel_split(halyard_provider_channel_t channel, int32_t color, int32_t key,
                                      halyard_provider_channel_t* out) {
  (void)channel, (void)color, (void)key, (void)out;
  abort();
}
static halyard_status_t channel_place(halyard_provider_channel_t channel, const uint32_t* stop,
                                      uint32_t* rank, uint32_t* count) {
  (void)channel, (void)stop, (void)rank, (void)count;
  abort();
}
static void channel_close(halyard_provider_channel_t channel) {
  (void)channel;
  abort();
}
static halyard_status_t submit(halyard_provider_channel_t channel, const halyard_collective_t* collective) {
  (void)channel, (void)collective;
  abort();
}
static void channel_fail(halyard_provider_channel_t channel, halyard_status_t status) {
  (void)channel, (void)status;
  abort();
}

static const halyard_channel_table_t complete = {
    sizeof complete, 0,
    initialize,      shutdown,
    world,           channel_open,
    import,          channel_split,
    channel_place,   channel_close,
    submit,          channel_fail,
};

HALYARD_CHANNEL_EXPORT int32_t halyard_channel_negotiate(const halyard_channel_request_t* request,
                                                         halyard_channel_reply_t* reply) {
  static halyard_channel_table_t table;
  if (makes_error("refuses silently")) return 0;
  if (makes_error("refuses")) {
    strcpy(reply->refusal, "not on a Tuesday");
    return 0;
  }
  table = complete;
  reply->abi_version = makes_error("of the future")  ? request->abi_max + 1
                       : makes_error("of version 0") ? 0
                                                     : request->abi_max;
  reply->table = makes_error("tableless") ? NULL : &table;
  if (makes_error("short")) table.struct_size = offsetof(halyard_channel_table_t, channel_fail);
  if (makes_error("long")) table.struct_size += 64;
  if (makes_error("no initialize")) table.initialize = NULL;
  if (makes_error("no shutdown")) table.shutdown = NULL;
  if (makes_error("no world")) table.world = NULL;
  if (makes_error("no channel_open")) table.channel_open = NULL;
  if (makes_error("no import")) table.import = NULL;
  if (makes_error("no channel_split")) table.channel_split = NULL;
  if (makes_error("no channel_place")) table.channel_place = NULL;
  if (makes_error("no channel_close")) table.channel_close = NULL;
  if (makes_error("no submit")) table.submit = NULL;
  return 1;
}
