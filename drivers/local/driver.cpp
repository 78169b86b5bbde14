// The driver as the host sees it: the note, negotiation and the table of functions. Each function unpacks its
// arguments, calls the part that does the work and turns what comes of it into a status of the host's.
#include <iterator>
#include <memory>

#include "commands.h"
#include "device.h"
#include "executable.h"
#include "queue.h"
#include "status.h"
#include "timeline.h"

HALYARD_DRIVER_NOTE("local", "0.1.0", "local-sync,local-task");

namespace halyard::local {

namespace {

// ---- Instance and devices

halyard_status_t initialize(const halyard_driver_init_args_t* args, halyard_driver_instance_t* instance) {
  return guarded(*args->services,
                 [&]() -> Result<> {
                   HALYARD_TRY(check_extensions(args->extensions));
                   *instance = new halyard_driver_instance{{*args->services}};
                   return {};
                 })
      .release();
}

void shutdown(halyard_driver_instance_t* instance) {
  delete *instance;
  *instance = nullptr;
}

halyard_status_t enumerate_devices(halyard_driver_instance_t, uint32_t capacity, halyard_device_info_t* infos,
                                   uint32_t* count) {
  *count = std::size(kDeviceKinds);
  auto* bytes = reinterpret_cast<uint8_t*>(infos);
  for (uint32_t i = 0; i < capacity && i < std::size(kDeviceKinds); ++i) {
    // As far apart as the host's infos are large.
    auto& info = *reinterpret_cast<halyard_device_info_t*>(bytes + uint64_t{i} * infos->struct_size);
    info.kind = kDeviceKinds[i].name;
    info.path = "";
    info.name = kDeviceKinds[i].description;
  }
  return nullptr;
}

halyard_status_t device_open(halyard_driver_instance_t instance, const halyard_device_open_args_t* args,
                             halyard_driver_device_t* device) {
  return guarded(instance->services,
                 [&]() -> Result<> {
                   const DeviceOptions options = HALYARD_TRY(DeviceOptions::parse(*args));
                   auto made = std::make_unique<halyard_driver_device>(*instance, options);
                   HALYARD_TRY(made->start());
                   *device = made.release();
                   return {};
                 })
      .release();
}

void device_close(halyard_driver_device_t device) { delete device; }

halyard_status_t device_properties(halyard_driver_device_t device, halyard_device_properties_t* properties) {
  device->describe(*properties);
  return nullptr;
}

halyard_status_t device_query_i64(halyard_driver_device_t device, halyard_text_t category, halyard_text_t key,
                                  int32_t* known, int64_t* value) {
  const std::optional<int64_t> answer = device->query(view(category), view(key));
  *known = answer.has_value();
  *value = answer.value_or(0);
  return nullptr;
}

halyard_status_t device_trim(halyard_driver_device_t device) {
  device->heap.trim();
  device->instance.nodes.trim();
  return nullptr;
}

halyard_status_t device_memory_statistics(halyard_driver_device_t device,
                                          halyard_memory_statistics_t* statistics) {
  device->heap.statistics(*statistics);
  return nullptr;
}

// ---- Memory

halyard_status_t memory_allocate(halyard_driver_device_t device, const halyard_memory_request_t* request,
                                 halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  return guarded(device->services(),
                 [&]() -> Result<> {
                   HALYARD_TRY(check_type(*request));
                   auto made =
                       device->instance.nodes.make<halyard_driver_memory>(device->heap, *request, false);
                   HALYARD_TRY(made->commit());
                   made->describe(*info);
                   *memory = made.release();
                   return {};
                 })
      .release();
}

void memory_free(halyard_driver_device_t device, halyard_driver_memory_t memory) {
  device->instance.nodes.destroy(memory);
}

halyard_status_t memory_map(halyard_driver_device_t device, halyard_driver_memory_t memory, uint32_t,
                            uint64_t offset, uint64_t, void** pointer) {
  return guarded(device->services(),
                 [&]() -> Result<> {
                   *pointer = HALYARD_TRY(memory->bytes()) + offset;
                   return {};
                 })
      .release();
}

void memory_unmap(halyard_driver_device_t, halyard_driver_memory_t) {}  // bytes stay where they are

halyard_status_t memory_import(halyard_driver_device_t device, const halyard_memory_request_t* request,
                               const halyard_external_memory_t* external, halyard_driver_memory_t* memory,
                               halyard_memory_info_t* info) {
  return guarded(device->services(),
                 [&]() -> Result<> {
                   if (external->kind != HALYARD_EXTERNAL_HOST_ALLOCATION)
                     return fail(
                         Code::UNIMPLEMENTED,
                         "cannot import external memory of kind {}; this device imports host allocations",
                         external->kind);
                   auto* bytes = static_cast<uint8_t*>(external->pointer);
                   if (reinterpret_cast<uintptr_t>(bytes) % BlockCache::kAlignment != 0)
                     return fail(Code::OUT_OF_RANGE,
                                 "cannot import host memory at {}; expected a multiple of {} bytes",
                                 external->pointer, BlockCache::kAlignment);
                   if (!bytes || request->size > external->size)
                     return fail(Code::INVALID_ARGUMENT,
                                 "cannot import {} bytes from the {} bytes of host memory at {}",
                                 request->size, external->size, external->pointer);
                   HALYARD_TRY(check_type(*request));
                   auto made = device->instance.nodes.make<halyard_driver_memory>(device->heap, bytes,
                                                                                  external->access, *request);
                   made->describe(*info);
                   *memory = made.release();
                   return {};
                 })
      .release();
}

halyard_status_t memory_export(halyard_driver_device_t device, halyard_driver_memory_t memory, uint32_t kind,
                               halyard_external_memory_t* external) {
  return guarded(device->services(),
                 [&]() -> Result<> {
                   if (kind != HALYARD_EXTERNAL_HOST_ALLOCATION)
                     return fail(
                         Code::UNIMPLEMENTED,
                         "cannot export memory as external kind {}; this device exports host allocations",
                         kind);
                   external->pointer = HALYARD_TRY(memory->bytes());
                   external->kind = kind;
                   external->fd = -1;
                   external->access = HALYARD_MAP_READ;
                   if (!memory->is_constant()) external->access |= HALYARD_MAP_WRITE;
                   external->size = memory->size();
                   return {};
                 })
      .release();
}

// ---- Semaphores

halyard_status_t semaphore_create(halyard_driver_device_t device, uint64_t initial,
                                  halyard_driver_semaphore_t* semaphore) {
  return guarded(device->services(),
                 [&]() -> Result<> {
                   *semaphore = device->instance.nodes
                                    .make<halyard_driver_semaphore>(device->services(),
                                                                    device->instance.nodes, initial)
                                    .release();
                   return {};
                 })
      .release();
}

void semaphore_destroy(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore) {
  device->instance.nodes.destroy(semaphore);
}

halyard_status_t semaphore_query(halyard_driver_semaphore_t semaphore, uint64_t* value) {
  // What a program asks while it spins: no lock unless it has failed.
  if (semaphore->progress(0) == Progress::failed) return semaphore->failure().release();
  *value = semaphore->value();
  return nullptr;
}

halyard_status_t semaphore_signal(halyard_driver_semaphore_t semaphore, uint64_t value) {
  const Services& services = semaphore->services();
  DueList due;
  HostStatus status = guarded(services, [&] { return semaphore->signal(value, due); });
  due.run();
  return std::move(status).release();
}

void semaphore_fail(halyard_driver_semaphore_t semaphore, halyard_status_t status) {
  DueList due;
  semaphore->fail(HostStatus::adopt(semaphore->services(), status), due);
  due.run();
}

void device_help(halyard_driver_device_t device, const halyard_semaphore_wait_args_t* args) {
  help(*device, {args->timepoints, args->timepoint_count}, args->any != 0);
}

halyard_status_t semaphore_wait(halyard_driver_device_t device, const halyard_semaphore_wait_args_t* args) {
  const Services& services = device->services();
  return guarded(services,
                 [&] {
                   return wait_for(services, {args->timepoints, args->timepoint_count}, args->any != 0,
                                   args->deadline_ns);
                 })
      .release();
}

halyard_status_t semaphore_subscribe(halyard_driver_semaphore_t semaphore, uint64_t value,
                                     halyard_subscriber_fn subscriber, void* user) {
  const Services& services = semaphore->services();
  DueList due;
  HostStatus status = guarded(services, [&]() -> Result<> {
    semaphore->subscribe(value, subscriber, user, due);
    return {};
  });
  due.run();
  return std::move(status).release();
}

int32_t semaphore_unsubscribe(halyard_driver_semaphore_t semaphore, halyard_subscriber_fn subscriber,
                              void* user) {
  return semaphore->unsubscribe(subscriber, user) ? 1 : 0;
}

// ---- Executables and command lists

void executable_grade(halyard_driver_device_t device, halyard_text_t format, const void* data,
                      uint64_t data_size, halyard_executable_grade_t* grade) {
  grade_executable(*device, view(format),
                   {static_cast<const uint8_t*>(data), data ? static_cast<size_t>(data_size) : 0}, *grade);
}

halyard_status_t executable_create(halyard_driver_device_t device, const halyard_executable_args_t* args,
                                   halyard_driver_executable_t* executable) {
  return guarded(device->services(),
                 [&]() -> Result<> {
                   *executable = HALYARD_TRY(Executable::create(*device, *args)).release();
                   return {};
                 })
      .release();
}

void executable_destroy(halyard_driver_device_t, halyard_driver_executable_t executable) {
  delete executable;
}

uint32_t executable_function_count(halyard_driver_executable_t executable) {
  return executable->function_count();
}

halyard_status_t executable_function_info(halyard_driver_executable_t executable, uint32_t function,
                                          halyard_function_info_t* info) {
  return guarded(executable->services(), [&] { return executable->describe(function, *info); }).release();
}

halyard_status_t command_list_create(halyard_driver_device_t device, const halyard_command_list_args_t* args,
                                     halyard_driver_command_list_t* list) {
  return guarded(device->services(),
                 [&]() -> Result<> {
                   HALYARD_TRY(CommandList::check(*args));
                   *list = new halyard_driver_command_list(*args);
                   return {};
                 })
      .release();
}

void command_list_destroy(halyard_driver_device_t, halyard_driver_command_list_t list) { delete list; }

// ---- Queue

halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  const Services& services = device->services();
  DueList due;
  HostStatus status = guarded(services, [&] { return submit(*device, *submission, due); });
  due.run();
  return std::move(status).release();
}

// What is not here is left to the host: flushing and invalidating coherent memory, semaphores of other
// drivers, flushing a queue that collects nothing.
constexpr halyard_driver_table_t kTable = {
    .struct_size = sizeof(halyard_driver_table_t),
    .initialize = initialize,
    .shutdown = shutdown,
    .enumerate_devices = enumerate_devices,
    .device_open = device_open,
    .device_close = device_close,
    .device_properties = device_properties,
    .device_query_i64 = device_query_i64,
    .device_trim = device_trim,
    .device_memory_statistics = device_memory_statistics,
    .memory_allocate = memory_allocate,
    .memory_free = memory_free,
    .memory_map = memory_map,
    .memory_unmap = memory_unmap,
    .memory_import = memory_import,
    .memory_export = memory_export,
    .semaphore_create = semaphore_create,
    .semaphore_destroy = semaphore_destroy,
    .semaphore_query = semaphore_query,
    .semaphore_signal = semaphore_signal,
    .semaphore_fail = semaphore_fail,
    .semaphore_wait = semaphore_wait,
    .semaphore_subscribe = semaphore_subscribe,
    .semaphore_unsubscribe = semaphore_unsubscribe,
    .executable_grade = executable_grade,
    .executable_create = executable_create,
    .executable_destroy = executable_destroy,
    .executable_function_count = executable_function_count,
    .executable_function_info = executable_function_info,
    .command_list_create = command_list_create,
    .command_list_destroy = command_list_destroy,
    .queue_submit = queue_submit,
    .device_help = device_help,
};

struct Kinds {
  halyard_driver_kind_t list[std::size(kDeviceKinds)];
};
constexpr Kinds kKinds = [] {
  Kinds kinds = {};
  for (size_t i = 0; i < std::size(kDeviceKinds); ++i)
    kinds.list[i] = {kDeviceKinds[i].name, kDeviceKinds[i].description};
  return kinds;
}();

}  // namespace

}  // namespace halyard::local

int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) {
  using namespace halyard::local;
  const auto refuse = [&]<typename... Args>(fmt::format_string<Args...> format, Args... args) {
    *fmt::format_to_n(reply->refusal, sizeof reply->refusal - 1, format, std::move(args)...).out = 0;
    return 0;
  };
  if (request->abi_min > HALYARD_DRIVER_ABI_V1 || request->abi_max < HALYARD_DRIVER_ABI_V1)
    return refuse("this driver speaks ABI version {}, the host {} to {}; use a driver made for this Halyard",
                  HALYARD_DRIVER_ABI_V1, request->abi_min, request->abi_max);
  if (request->sanitizer != HALYARD_SANITIZER_KIND)
    return refuse("this driver was built for sanitizer kind {}, the host for {}", HALYARD_SANITIZER_KIND,
                  request->sanitizer);
  for (const halyard_extension_t* extension = request->extensions; extension; extension = extension->next)
    if (extension->must_understand)
      return refuse("this driver does not know extension kind {}", extension->kind);
  reply->abi_version = HALYARD_DRIVER_ABI_V1;
  reply->table = &kTable;
  reply->kinds = kKinds.list;
  reply->kind_count = std::size(kKinds.list);
  return 1;
}
