// Of the kit (halyard/driver.hpp): the functions of the driver ABI over its classes, and negotiation.
#ifndef HALYARD_DRIVER_TABLE_HPP_
#define HALYARD_DRIVER_TABLE_HPP_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halyard/driver/device.hpp"

namespace halyard::kit {

namespace entries {

// A handle is the address of the base class of what it stands for.
inline Instance& of(halyard_driver_instance_t handle) { return *reinterpret_cast<Instance*>(handle); }
inline Device& of(halyard_driver_device_t handle) { return *reinterpret_cast<Device*>(handle); }
inline Memory& of(halyard_driver_memory_t handle) { return *reinterpret_cast<Memory*>(handle); }
inline Timeline& of(halyard_driver_semaphore_t handle) { return *reinterpret_cast<Timeline*>(handle); }
inline Executable& of(halyard_driver_executable_t handle) { return *reinterpret_cast<Executable*>(handle); }

// What `make`, a function that gives a Result of a unique_ptr, has made, as a handle; outputs are written
// last [R50].
template <typename Handle, typename Make>
halyard_status_t make_handle(const Services& services, Handle* out, Make&& make) {
  return guarded(services,
                 [&]() -> Result<> {
                   auto made = make();
                   if (!made) return std::move(made.failure());
                   *out = reinterpret_cast<Handle>(made->release());
                   return {};
                 })
      .release();
}

template <typename I>
halyard_status_t initialize(const halyard_driver_init_args_t* args, halyard_driver_instance_t* instance) {
  const Services& services = *args->services;
  return make_handle(services, instance, [&]() -> Result<std::unique_ptr<Instance>> {
    if (Result<> known = check_extensions(args->extensions); !known) return std::move(known.failure());
    std::unique_ptr<Instance> made = std::make_unique<I>(services);
    if (Result<> started = made->start(); !started) return std::move(started.failure());
    return made;
  });
}
inline void shutdown(halyard_driver_instance_t* instance) {
  if (!instance || !*instance) return;
  delete &of(*instance);
  *instance = nullptr;
}
inline halyard_status_t enumerate_devices(halyard_driver_instance_t instance, uint32_t capacity,
                                          halyard_device_info_t* infos, uint32_t* count) {
  return guarded(of(instance).services(),
                 [&]() -> Result<> {
                   const std::vector<halyard_device_info_t> devices = of(instance).devices();
                   for (uint32_t i = 0; i < capacity && i < devices.size();
                        ++i)  // as far apart as the first says [R12]
                     fill_sized(*reinterpret_cast<halyard_device_info_t*>(reinterpret_cast<char*>(infos) +
                                                                          size_t{i} * infos->struct_size),
                                devices[i]);
                   *count = static_cast<uint32_t>(devices.size());
                   return {};
                 })
      .release();
}
inline halyard_status_t device_open(halyard_driver_instance_t instance,
                                    const halyard_device_open_args_t* args, halyard_driver_device_t* device) {
  return make_handle(of(instance).services(), device, [&]() -> Result<std::unique_ptr<Device>> {
    if (Result<> known = check_extensions(args->extensions); !known) return std::move(known.failure());
    return of(instance).open(*args);
  });
}
inline void device_close(halyard_driver_device_t device) { delete &of(device); }
inline halyard_status_t device_properties(halyard_driver_device_t device,
                                          halyard_device_properties_t* properties) {
  return guarded(of(device).services(),
                 [&]() -> Result<> { return fill_sized(*properties, of(device).properties()), Result<>(); })
      .release();
}
inline halyard_status_t device_query_i64(halyard_driver_device_t device, halyard_text_t category,
                                         halyard_text_t key, int32_t* known, int64_t* value) {
  return guarded(of(device).services(),
                 [&]() -> Result<> {
                   const std::optional<int64_t> answer = of(device).query(view(category), view(key));
                   *known = answer.has_value();
                   *value = answer.value_or(0);
                   return {};
                 })
      .release();
}
inline halyard_status_t device_trim(halyard_driver_device_t device) {
  return guarded(of(device).services(), [&]() -> Result<> { return of(device).trim(), Result<>(); })
      .release();
}
inline halyard_status_t device_memory_statistics(halyard_driver_device_t device,
                                                 halyard_memory_statistics_t* statistics) {
  return guarded(of(device).services(),
                 [&]() -> Result<> { return fill_sized(*statistics, of(device).statistics()), Result<>(); })
      .release();
}

inline halyard_status_t memory_allocate(halyard_driver_device_t device,
                                        const halyard_memory_request_t* request,
                                        halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  return make_handle(of(device).services(), memory, [&] {
    halyard_memory_info_t given = {sizeof given, 0, 0, 0, 0};
    auto made = of(device).allocate(*request, false, given);
    if (made) fill_sized(*info, given);
    return made;
  });
}
inline void memory_free(halyard_driver_device_t, halyard_driver_memory_t memory) { delete &of(memory); }
inline halyard_status_t memory_map(halyard_driver_device_t device, halyard_driver_memory_t memory, uint32_t,
                                   uint64_t offset, uint64_t, void** pointer) {
  return guarded(of(device).services(),
                 [&]() -> Result<> {
                   Result<uint8_t*> bytes = of(memory).bytes();
                   if (!bytes) return std::move(bytes.failure());
                   *pointer = *bytes + offset;
                   return {};
                 })
      .release();
}
inline void memory_unmap(halyard_driver_device_t, halyard_driver_memory_t) {}
inline halyard_status_t memory_flush(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                     uint64_t offset, uint64_t length) {
  return guarded(of(device).services(), [&] { return of(memory).flush(offset, length); }).release();
}
inline halyard_status_t memory_invalidate(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                          uint64_t offset, uint64_t length) {
  return guarded(of(device).services(), [&] { return of(memory).invalidate(offset, length); }).release();
}
inline halyard_status_t memory_import(halyard_driver_device_t device, const halyard_memory_request_t* request,
                                      const halyard_external_memory_t* external,
                                      halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  return make_handle(of(device).services(), memory, [&] {
    halyard_memory_info_t given = {sizeof given, 0, 0, 0, 0};
    auto made = of(device).import_memory(*request, copy_sized(*external), given);
    if (made) fill_sized(*info, given);
    return made;
  });
}

inline halyard_status_t semaphore_create(halyard_driver_device_t device, uint64_t initial,
                                         halyard_driver_semaphore_t* semaphore) {
  return make_handle(of(device).services(), semaphore, [&]() -> Result<std::unique_ptr<Timeline>> {
    return std::make_unique<Timeline>(of(device).services(), initial);
  });
}
inline void semaphore_destroy(halyard_driver_device_t, halyard_driver_semaphore_t semaphore) {
  delete &of(semaphore);
}
inline halyard_status_t semaphore_query(halyard_driver_semaphore_t semaphore, uint64_t* value) {
  if (of(semaphore).progress(0) == Progress::failed) return of(semaphore).failure().release();
  *value = of(semaphore).value();
  return nullptr;
}
inline halyard_status_t semaphore_signal(halyard_driver_semaphore_t semaphore, uint64_t value) {
  const Services& services = of(semaphore).services();
  DueList due;  // done when it goes: the semaphore may be gone by then
  return guarded(services, [&] { return of(semaphore).signal(value, due); }).release();
}
inline void semaphore_fail(halyard_driver_semaphore_t semaphore, halyard_status_t status) {
  DueList due;
  of(semaphore).fail(Status(of(semaphore).services(), status), due);
}
inline halyard_status_t semaphore_wait(halyard_driver_device_t device,
                                       const halyard_semaphore_wait_args_t* args) {
  return guarded(of(device).services(),
                 [&] {
                   return wait_for(of(device).services(), {args->timepoints, args->timepoint_count},
                                   args->any != 0, args->deadline_ns);
                 })
      .release();
}
inline halyard_status_t semaphore_subscribe(halyard_driver_semaphore_t semaphore, uint64_t value,
                                            halyard_subscriber_fn subscriber, void* user) {
  DueList due;
  return guarded(
             of(semaphore).services(),
             [&]() -> Result<> { return of(semaphore).subscribe(value, subscriber, user, due), Result<>(); })
      .release();
}
inline int32_t semaphore_unsubscribe(halyard_driver_semaphore_t semaphore, halyard_subscriber_fn subscriber,
                                     void* user) {
  return of(semaphore).unsubscribe(subscriber, user) ? 1 : 0;
}

inline void executable_grade(halyard_driver_device_t device, halyard_text_t format, const void* data,
                             uint64_t size, halyard_executable_grade_t* grade) {
  halyard_executable_grade_t given = {};
  given.grade = HALYARD_GRADE_NO;
  Status failed = guarded(of(device).services(), [&]() -> Result<> {
    const auto* const bytes = static_cast<const uint8_t*>(data);
    std::string reason;
    given.grade = of(device).grade(view(format), {bytes, bytes ? static_cast<size_t>(size) : 0}, reason);
    std::snprintf(given.reason, sizeof given.reason, "%s", reason.c_str());
    return {};
  });
  fill_sized(*grade, given);
}
inline halyard_status_t executable_create(halyard_driver_device_t device,
                                          const halyard_executable_args_t* args,
                                          halyard_driver_executable_t* executable) {
  return make_handle(of(device).services(), executable, [&]() -> Result<std::unique_ptr<Executable>> {
    if (Result<> known = check_extensions(args->extensions); !known) return std::move(known.failure());
    return of(device).load(*args);
  });
}
inline void executable_destroy(halyard_driver_device_t, halyard_driver_executable_t executable) {
  delete &of(executable);
}
inline uint32_t executable_function_count(halyard_driver_executable_t executable) {
  return of(executable).function_count();
}
inline halyard_status_t executable_function_info(halyard_driver_executable_t executable, uint32_t function,
                                                 halyard_function_info_t* info) {
  return guarded(of(executable).services(),
                 [&]() -> Result<> {
                   Result<halyard_function_info_t> known = of(executable).function_info(function);
                   if (!known) return std::move(known.failure());
                   fill_sized(*info, *known);
                   return {};
                 })
      .release();
}

inline halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  return make_handle(of(device).services(), list, [&]() -> Result<std::unique_ptr<CommandList>> {
    if (Result<> known = check_extensions(args->extensions); !known) return std::move(known.failure());
    auto made = std::make_unique<CommandList>();
    const auto* at = reinterpret_cast<const char*>(args->commands);
    for (uint32_t i = 0; i < args->command_count; ++i) {
      const auto& command = *reinterpret_cast<const halyard_command_t*>(at);
      if (Result<> taken = of(device).check(command); !taken) return std::move(taken.failure());
      made->commands.push_back(&command);
      at += command.size;
    }
    return made;
  });
}
inline void command_list_destroy(halyard_driver_device_t, halyard_driver_command_list_t list) {
  delete reinterpret_cast<CommandList*>(list);
}

inline halyard_status_t queue_submit(halyard_driver_device_t handle, const halyard_submission_t* submission) {
  Device& device = of(handle);
  DueList due;  // what the work makes due is done when the list goes
  return guarded(
             device.services(),
             [&]() -> Result<> {
               if (Result<> known = check_extensions(submission->extensions); !known) return known;
               const halyard_operation_t& operation = *submission->operation;
               const uint64_t operations = device.properties().operations;
               if (operation.kind >= 64 || !(operations >> operation.kind & 1))
                 return Failure{HALYARD_UNIMPLEMENTED, "operation of kind " + std::to_string(operation.kind) +
                                                           " is not among those that "
                                                           "this device offers"};
               std::unique_ptr<Memory> transient;
               halyard_memory_info_t info = {sizeof info, 0, 0, 0, 0};
               if (operation.kind == HALYARD_OPERATION_ALLOCA) {
                 auto made = device.allocate(*operation.alloca_.request, true, info);
                 if (!made) return std::move(made.failure());
                 transient = std::move(*made);
               }
               Work* const work = new Work(device, *submission, transient.get());
               if (transient) {  // accepted: nothing fails from here on [R60, R73]
                 fill_sized(*operation.alloca_.info, info);
                 *operation.alloca_.memory = reinterpret_cast<halyard_driver_memory_t>(transient.release());
               }
               work->hold(due);
               return {};
             })
      .release();
}

}  // namespace entries

template <typename I>
constexpr halyard_driver_table_t make_table() {
  halyard_driver_table_t table = {};
  table.struct_size = sizeof table;
  table.initialize = entries::initialize<I>;
#define HALYARD_KIT_ENTRY_(name) table.name = entries::name
  HALYARD_KIT_ENTRY_(shutdown);
  HALYARD_KIT_ENTRY_(enumerate_devices);
  HALYARD_KIT_ENTRY_(device_open);
  HALYARD_KIT_ENTRY_(device_close);
  HALYARD_KIT_ENTRY_(device_properties);
  HALYARD_KIT_ENTRY_(device_query_i64);
  HALYARD_KIT_ENTRY_(device_trim);
  HALYARD_KIT_ENTRY_(device_memory_statistics);
  HALYARD_KIT_ENTRY_(memory_allocate);
  HALYARD_KIT_ENTRY_(memory_free);
  HALYARD_KIT_ENTRY_(memory_map);
  HALYARD_KIT_ENTRY_(memory_unmap);
  HALYARD_KIT_ENTRY_(memory_flush);
  HALYARD_KIT_ENTRY_(memory_invalidate);
  HALYARD_KIT_ENTRY_(memory_import);
  HALYARD_KIT_ENTRY_(semaphore_create);
  HALYARD_KIT_ENTRY_(semaphore_destroy);
  HALYARD_KIT_ENTRY_(semaphore_query);
  HALYARD_KIT_ENTRY_(semaphore_signal);
  HALYARD_KIT_ENTRY_(semaphore_fail);
  HALYARD_KIT_ENTRY_(semaphore_wait);
  HALYARD_KIT_ENTRY_(semaphore_subscribe);
  HALYARD_KIT_ENTRY_(semaphore_unsubscribe);
  HALYARD_KIT_ENTRY_(executable_grade);
  HALYARD_KIT_ENTRY_(executable_create);
  HALYARD_KIT_ENTRY_(executable_destroy);
  HALYARD_KIT_ENTRY_(executable_function_count);
  HALYARD_KIT_ENTRY_(executable_function_info);
  HALYARD_KIT_ENTRY_(command_list_create);
  HALYARD_KIT_ENTRY_(command_list_destroy);
  HALYARD_KIT_ENTRY_(queue_submit);
#undef HALYARD_KIT_ENTRY_
  return table;
}

// One version so far: both ranges hold it, or they have nothing in common [R6].
inline int32_t negotiate(const halyard_driver_request_t& request, halyard_driver_reply_t& reply,
                         const char* name, const halyard_driver_table_t& table,
                         std::span<const halyard_driver_kind_t> kinds) {
  constexpr uint32_t kOnly = HALYARD_DRIVER_ABI_V1;
  halyard_driver_reply_t filled = {};
  filled.abi_version = kOnly;
  filled.table = &table;
  filled.kinds = kinds.data();
  filled.kind_count = static_cast<uint32_t>(kinds.size());
  if (request.abi_min > kOnly || request.abi_max < kOnly)
    std::snprintf(filled.refusal, sizeof filled.refusal,
                  "driver %s speaks driver ABI %u, the host %u to %u; install the driver made for this host",
                  name, kOnly, request.abi_min, request.abi_max);
  if (HALYARD_HAS_FIELD(&request, halyard_driver_request_t, extensions))
    for (const halyard_extension_t* it = request.extensions; it; it = it->next)
      if (it->must_understand)
        std::snprintf(filled.refusal, sizeof filled.refusal, "driver %s does not know extension kind %u",
                      name, it->kind);
  fill_sized(reply, filled);
  return filled.refusal[0] == 0;
}

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_TABLE_HPP_
