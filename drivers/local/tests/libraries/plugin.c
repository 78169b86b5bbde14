/* A plugin for the tests of native executables, which provides the function "add_one" or,
 * with PROVIDES 0, none. Its options: `fail=N` makes loading fail with N, `add=N` adds N instead of 1. LACKS
 * names a part that is null: plugin, header, load, unload or resolve. */
#include "abi.h"

#ifndef PROVIDES
#define PROVIDES 1
#endif
#ifndef VERSION
#define VERSION 1
#endif
#ifndef SANITIZER
#define SANITIZER 0
#endif
#ifndef LACKS
#define LACKS 0
#endif
enum part { PLUGIN = 1, HEADER, LOAD, UNLOAD, RESOLVE };

struct option {
  const char* key;
  size key_size;
  const char* value;
  size value_size;
};
struct resolve {
  size count;
  const char* const* names;
  import_function** functions;
  void** contexts;
};
struct plugin_header {
  u32 version;
  const char *name, *description;
  u32 features, sanitizer;
  u64 reserved[8];
};
struct plugin {
  const struct plugin_header* header;
  size (*load)(const struct environment*, size, const struct option*, void**);
  void (*unload)(void*);
  size (*resolve)(void*, const struct resolve*, u32*);
};

static u32 step = 1;

static int same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}
static int is(const struct option* option, char first) { return option->key_size && option->key[0] == first; }
static size number(const struct option* option) {
  size result = 0;
  for (size i = 0; i < option->value_size; ++i) result = result * 10 + (size)(option->value[i] - '0');
  return result;
}

struct parameters {
  u32 result;
  u32* words;
  u32 count;
};
static int add_one(void* parameters, void* context, void* reserved) {
  struct parameters* p = parameters;
  if (reserved) return 77;
  for (u32 i = 0; i < p->count; ++i) p->words[i] += *(const u32*)context;
  p->result = p->count;
  return 0;
}

static size load(const struct environment* e, size count, const struct option* options, void** self) {
  (void)e;
  *self = &step;
  for (size i = 0; i < count; ++i) {
    if (is(&options[i], 'f')) return number(&options[i]);
    if (is(&options[i], 'a')) step = (u32)number(&options[i]);
  }
  return 0;
}
static void unload(void* self) { *(u32*)self = 0; }
static size resolve(void* self, const struct resolve* wanted, u32* resolution) {
  size missing = 0;
  for (size i = 0; i < wanted->count; ++i) {
    const int optional = wanted->names[i][0] == '?';
    if (wanted->functions[i]) continue;
    if (same(wanted->names[i] + optional, "broken")) return 15;
    if (PROVIDES && same(wanted->names[i] + optional, "add_one")) {
      wanted->functions[i] = add_one;
      wanted->contexts[i] = self;
    } else if (optional) {
      *resolution |= 1;
    } else {
      missing = 5;
    }
  }
  return missing;
}

static const struct plugin_header header = {.version = VERSION, .name = "plugin", .sanitizer = SANITIZER};
static const struct plugin plugin = {LACKS == HEADER ? 0 : &header, LACKS == LOAD ? 0 : load,
                                     LACKS == UNLOAD ? 0 : unload, LACKS == RESOLVE ? 0 : resolve};

PUBLIC const struct plugin* iree_hal_executable_plugin_query(u32 version, void* reserved) {
  return version == 1 && !reserved && LACKS != PLUGIN ? &plugin : 0;
}
