/* Drivers and devices from C: how drivers were looked for, one tried out, what a device is and answers. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "halyard/halyard.h"

static char kNullDriver[4096];
static char kFolder[4096];

static halyard_instance_t make_instance(const char* library, const char* folder) {
  halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS,
      .driver_libraries = &library,
      .driver_library_count = library != NULL,
      .driver_folders = &folder,
      .driver_folder_count = folder != NULL};
  halyard_instance_t instance = NULL;
  OK(halyard_instance_create(&options, &instance));
  return instance;
}

static halyard_search_entry_t entry_at(halyard_search_t search, size_t index) {
  halyard_search_entry_t entry = {.struct_size = sizeof entry, .path = "", .reason = ""};
  OK(halyard_search_entry(search, index, &entry));
  return entry;
}

static void search(void) {
  halyard_instance_t instance = make_instance("/none/such/halyard-driver-gone.so", "/none/such");
  halyard_search_t found = NULL;
  if (!OK(halyard_instance_search(instance, &found))) return;
  halyard_release(instance);
  halyard_search_entry_t entry = entry_at(found, 0);
  EXPECT(strcmp(entry.path, "/none/such/halyard-driver-gone.so") == 0);
  EXPECT(entry.origin == HALYARD_ORIGIN_EMBEDDER && !entry.is_folder);
  EXPECT(entry.outcome == HALYARD_SEARCH_REFUSED && strstr(entry.reason, "NOT_FOUND; ") == entry.reason);
  EXPECT(strcmp(entry.library, "") == 0 && strcmp(entry.drivers, "") == 0 && entry.abi_max == 0);
  entry = entry_at(found, 1);
  EXPECT(entry.is_folder && entry.outcome == HALYARD_SEARCH_SKIPPED);
  EXPECT(strstr(entry.reason, "no such folder") != NULL);
  FAILS(halyard_search_entry(found, 2, &entry), HALYARD_OUT_OF_RANGE, "entry 2");
  entry.struct_size = 0;
  FAILS(halyard_search_entry(found, 0, &entry), HALYARD_INVALID_ARGUMENT, "struct_size");
  halyard_release(found);

  instance = make_instance(NULL, kFolder);
  if (!OK(halyard_instance_search(instance, &found))) return;
  entry = entry_at(found, 0);
  EXPECT(entry.is_folder && entry.outcome == HALYARD_SEARCH_ACCEPTED && strcmp(entry.reason, "") == 0);
  size_t null_at = 0;
  for (size_t i = 1; null_at == 0; ++i) {
    entry = entry_at(found, i);
    if (strcmp(entry.library, "null") == 0 || failures) null_at = i;
  }
  EXPECT(entry.outcome == HALYARD_SEARCH_ACCEPTED && !entry.loaded);
  EXPECT(strcmp(entry.drivers, "null") == 0 && strcmp(entry.serves, "null") == 0);
  EXPECT(strcmp(entry.version, "1.0") == 0 && entry.abi_min == 1 && entry.abi_max == 1);
  /* A search does not change; another one knows what has happened since. */
  halyard_device_t device = NULL;
  OK(halyard_device_open(instance, "null", &device));
  EXPECT(!entry_at(found, null_at).loaded);
  halyard_release(found);
  if (OK(halyard_instance_search(instance, &found))) EXPECT(entry_at(found, null_at).loaded);
  RELEASE(found, device, instance);
  EXPECT(strcmp(halyard_sanitizer_name(0), "no sanitizer") == 0);
  EXPECT(strcmp(halyard_sanitizer_name(1), "AddressSanitizer") == 0);
  EXPECT(strcmp(halyard_sanitizer_name(77), "an unknown sanitizer") == 0);
}

static void collect(void* user, const char* step) {
  strcat(user, step);
  strcat(user, " ");
}

static void probe(void) {
  char steps[256] = "";
  OK(halyard_driver_probe(kNullDriver, collect, steps));
  EXPECT(strcmp(steps, "load negotiate initialize enumerate_devices device_open shutdown ") == 0);
  OK(halyard_driver_probe(kNullDriver, NULL, NULL));
  steps[0] = 0;
  FAILS(halyard_driver_probe("/none/halyard-driver-x.so", collect, steps), HALYARD_NOT_FOUND, "/none");
  FAILS(halyard_driver_probe(NULL, collect, steps), HALYARD_INVALID_ARGUMENT, "");
  EXPECT(strcmp(steps, "") == 0);
}

static void describe(halyard_device_t device) {
  halyard_device_description_t is = {.struct_size = sizeof is};
  if (OK(halyard_device_describe(device, &is))) {
    EXPECT(is.struct_size == sizeof is);
    EXPECT(is.capabilities & HALYARD_CAPABILITY_UNIFIED_MEMORY);
    EXPECT(!(is.capabilities & HALYARD_CAPABILITY_COLLECTIVES));
    EXPECT(is.operations & 1u << 9);
    EXPECT(is.queue_count == 1 && is.memory_alignment == 64 && is.import_alignment == 1);
    EXPECT(is.maximum_allocation > 1 << 20);
    EXPECT(strcmp(is.driver, "null") == 0 && strcmp(is.library, kNullDriver) == 0);
    EXPECT(strcmp(is.library_version, "1.0") == 0);
  }
  /* A caller that knows the first fields only. */
  halyard_device_description_t shorter = {.struct_size = offsetof(halyard_device_description_t, operations),
                                          .queue_count = 77};
  if (OK(halyard_device_describe(device, &shorter))) {
    EXPECT(shorter.capabilities == is.capabilities && shorter.queue_count == 77);
  }
  EXPECT(strcmp(halyard_capability_name(0), "runs in caller") == 0);
  EXPECT(strcmp(halyard_capability_name(5), "collectives") == 0);
  EXPECT(strcmp(halyard_capability_name(7), "stops work") == 0 && !halyard_capability_name(8));
  EXPECT(strcmp(halyard_operation_name(1), "alloca") == 0);
  EXPECT(strcmp(halyard_operation_name(9), "execute") == 0 && !halyard_operation_name(10));
}

static void describe_build(void) {
  halyard_build_t build = {.struct_size = sizeof build};
  if (OK(halyard_build_describe(&build))) {
    EXPECT(strcmp(build.version, halyard_version()) == 0);
    EXPECT(build.driver_abi_min <= 1 && build.driver_abi_max >= 1);
    EXPECT(build.module_abi_min <= 1 && build.module_abi_max >= 1);
    EXPECT(build.compiler[0] != 0 && build.type[0] != 0 && build.processor[0] != 0);
  }
  /* A caller that knows the first fields only. */
  halyard_build_t shorter = {.struct_size = offsetof(halyard_build_t, module_abi_min), .module_abi_min = 77};
  if (OK(halyard_build_describe(&shorter))) {
    EXPECT(shorter.driver_abi_max == build.driver_abi_max && shorter.module_abi_min == 77);
  }
}

static void ask(halyard_device_t device) {
  int32_t known = 7;
  int64_t value = 7;
  OK(halyard_device_query(device, "hal.device", "concurrency", &known, &value));
  EXPECT(known == 1 && value == 1);
  OK(halyard_device_query(device, "hal.device.id", "nu*", &known, &value));
  EXPECT(known == 1 && value == 1);
  OK(halyard_device_query(device, "hal.device", "colour", &known, &value));
  EXPECT(known == 0 && value == 0);

  halyard_executable_fit_t fit = {.struct_size = sizeof fit};
  OK(halyard_device_judge(device, "vmvx-bytecode-fb", NULL, 0, &fit));
  EXPECT(fit.fit == HALYARD_FIT_NO && strlen(fit.reason) > 10);
}

static void count_memory(halyard_device_t device) {
  halyard_memory_use_t before = {.struct_size = sizeof before};
  halyard_memory_use_t after = {.struct_size = sizeof after};
  OK(halyard_device_memory(device, &before));
  const int64_t shape[] = {1000};
  halyard_object_t view = NULL;
  uint8_t bytes[4000] = {0};
  if (OK(halyard_view_create(device, 0x21000020 /* f32 */, shape, 1, bytes, sizeof bytes, &view))) {
    OK(halyard_device_memory(device, &after));
    EXPECT(after.host_live + after.device_live >= before.host_live + before.device_live + 4000);
    halyard_release(view);
    OK(halyard_device_memory(device, &after));
    EXPECT(after.host_live == before.host_live && after.device_live == before.device_live);
    EXPECT(after.host_peak + after.device_peak >= 4000);
  }
  OK(halyard_device_trim(device));
}

/* Each of two instances has a driver of its own. */
static void share(halyard_device_t device) {
  halyard_instance_t instance = make_instance(kNullDriver, NULL);
  halyard_device_t other = NULL;
  if (OK(halyard_device_open(instance, "null", &other)))
    EXPECT(halyard_device_sharing(device, other) == HALYARD_SHARING_HOST_MEMORY);
  RELEASE(other, instance);
}

/* Settings come behind the URI's options, may be repeated, and hold any characters. */
static void open_with(void) {
  char library[4200];
  snprintf(library, sizeof library, "%.4000s/halyard-driver-local.so", kFolder);
  halyard_instance_t instance = make_instance(library, NULL);
  halyard_device_t device = NULL;
  const halyard_device_setting_t settings[] = {{"native", "1"}, {"native", "0"}, {"validate", "1"}};
  if (OK(halyard_device_open_with(instance, "local-sync?native=1", settings, 3, &device))) {
    halyard_executable_fit_t fit = {.struct_size = sizeof fit};
    OK(halyard_device_judge(device, "embedded-elf-x86_64", NULL, 0, &fit));
    EXPECT(fit.fit == HALYARD_FIT_NO && strstr(fit.reason, "native=0") != NULL);
    EXPECT(strcmp(halyard_device_uri(device), "local-sync://") == 0);
  }
  halyard_release(device);
  device = NULL;
  if (OK(halyard_device_open_with(instance, "local-sync", NULL, 0, &device))) halyard_release(device);
  device = NULL;
  const halyard_device_setting_t unknown = {"a&b=c", "1"};
  FAILS(halyard_device_open_with(instance, "local-sync", &unknown, 1, &device), HALYARD_INVALID_ARGUMENT,
        "'a&b=c'");
  const halyard_device_setting_t plugin = {"plugin", "/no/such/file&with=options?"};
  FAILS(halyard_device_open_with(instance, "local-sync", &plugin, 1, &device), HALYARD_NOT_FOUND,
        "'/no/such/file'");
  EXPECT(device == NULL);
  halyard_release(instance);
}

int main(void) {
  snprintf(kFolder, sizeof kFolder, "%s/lib/halyard/drivers", HALYARD_BUILD_DIR);
  snprintf(kNullDriver, sizeof kNullDriver, "%.4000s/halyard-driver-null.so", kFolder);
  search();
  probe();
  open_with();
  halyard_instance_t instance = make_instance(kNullDriver, NULL);
  halyard_device_t device = NULL;
  if (OK(halyard_device_open(instance, "null", &device))) {
    describe(device);
    describe_build();
    ask(device);
    count_memory(device);
    halyard_device_t other = NULL;
    if (OK(halyard_device_open(instance, "null", &other)))
      EXPECT(halyard_device_sharing(device, other) == HALYARD_SHARING_SAME_DRIVER);
    halyard_release(other);
    share(device);
  }
  RELEASE(device, instance);
  return failures != 0;
}
