// Of the kit (halyard/driver.hpp): the functions of the driver ABI, implemented over its classes;
// negotiation.
#ifndef HALYARD_DRIVER_TABLE_HPP_
#define HALYARD_DRIVER_TABLE_HPP_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "halyard/driver/device.hpp"

namespace halyard::kit {

// The functions of the driver ABI, implemented over the classes of a driver. `D` names them:
//
//   Instance, Device, Memory, Semaphore, Executable, CommandList   their addresses are the handles
//   TaskList   the ready tasks, which a function of the table runs before it returns
//   static Result<owner of Instance> create(const Services&)   an owner is a smart pointer with release()
//
// Kit<I> below names the kit's own classes. A driver with classes of its own gives them the member functions
// that are called here, with the meanings of Instance, Device, Memory and so on in device.hpp and of
// BasicTimeline. Results may be the kit's or the driver's own: see to_status(). Some members are optional,
// and a class without one leaves the entry of the table null: flush(), invalidate() and export_to() of
// Memory, import_semaphore() and help() of Device, export_fd() and
// underway() of Semaphore. Memory has either bytes(), or map() and unmap(), which are told of each mapping.
template <typename D>
struct Entries {
  using Instance = typename D::Instance;
  using Device = typename D::Device;
  using Memory = typename D::Memory;
  using Semaphore = typename D::Semaphore;
  using Executable = typename D::Executable;
  using CommandList = typename D::CommandList;
  using TaskList = typename D::TaskList;

  static constexpr bool kTellsMappings = requires(Memory& memory) { memory.map(0u, uint64_t{}, uint64_t{}); };

  static Instance& of(halyard_driver_instance_t handle) { return *reinterpret_cast<Instance*>(handle); }
  static Device& of(halyard_driver_device_t handle) { return *reinterpret_cast<Device*>(handle); }
  static Memory& of(halyard_driver_memory_t handle) { return *reinterpret_cast<Memory*>(handle); }
  static Semaphore& of(halyard_driver_semaphore_t handle) { return *reinterpret_cast<Semaphore*>(handle); }
  static Executable& of(halyard_driver_executable_t handle) { return *reinterpret_cast<Executable*>(handle); }

  // Calls `body`, which returns a Result, and passes its value to `take`. Outputs are written last [R50].
  template <typename Body, typename Take>
  static halyard_status_t give(const Services& services, Body&& body, Take&& take) {
    return guarded(services,
                   [&] {
                     auto result = body();
                     auto status = to_status(services, result);
                     if (result) [[likely]]
                       take(*std::move(result));
                     return status;
                   })
        .release();
  }
  // The same for a function that creates a handle.
  template <typename Handle, typename Make>
  static halyard_status_t make(const Services& services, Handle* handle,
                               const halyard_extension_t* extensions, Make&& make) {
    if (extensions) [[unlikely]]
      if (Result<> known = check_extensions(extensions); !known) return to_status(services, known).release();
    return give(services, make, [&](auto made) { *handle = reinterpret_cast<Handle>(made.release()); });
  }

  static halyard_status_t initialize(const halyard_driver_init_args_t* args,
                                     halyard_driver_instance_t* instance) {
    return make(*args->services, instance, args->extensions, [&] { return D::create(*args->services); });
  }
  static void shutdown(halyard_driver_instance_t* instance) {
    if (!instance || !*instance) return;
    delete &of(*instance);
    *instance = nullptr;
  }
  static halyard_status_t enumerate_devices(halyard_driver_instance_t instance, uint32_t capacity,
                                            halyard_device_info_t* infos, uint32_t* count) {
    return guarded(of(instance).services(),
                   [&]() -> Result<> {
                     const std::vector<halyard_device_info_t> devices = of(instance).devices();
                     // Entries are as far apart as the first one's size says [R12].
                     for (uint32_t i = 0; i < capacity && i < devices.size(); ++i)
                       fill_sized(*reinterpret_cast<halyard_device_info_t*>(reinterpret_cast<char*>(infos) +
                                                                            size_t{i} * infos->struct_size),
                                  devices[i]);
                     *count = static_cast<uint32_t>(devices.size());
                     return {};
                   })
        .release();
  }
  static halyard_status_t device_open(halyard_driver_instance_t instance,
                                      const halyard_device_open_args_t* args,
                                      halyard_driver_device_t* device) {
    return make(of(instance).services(), device, args->extensions, [&] { return of(instance).open(*args); });
  }
  static void device_close(halyard_driver_device_t device) { delete &of(device); }
  static halyard_status_t device_properties(halyard_driver_device_t device,
                                            halyard_device_properties_t* properties) {
    return guarded(of(device).services(),
                   [&]() -> Result<> { return fill_sized(*properties, of(device).properties()), Result<>(); })
        .release();
  }
  static halyard_status_t device_query_i64(halyard_driver_device_t device, halyard_text_t category,
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
  static halyard_status_t device_trim(halyard_driver_device_t device) {
    return guarded(of(device).services(), [&]() -> Result<> { return of(device).trim(), Result<>(); })
        .release();
  }
  static halyard_status_t device_memory_statistics(halyard_driver_device_t device,
                                                   halyard_memory_statistics_t* statistics) {
    return guarded(of(device).services(),
                   [&]() -> Result<> { return fill_sized(*statistics, of(device).statistics()), Result<>(); })
        .release();
  }

  // ---- Memory

  static halyard_status_t memory_allocate(halyard_driver_device_t device,
                                          const halyard_memory_request_t* request,
                                          halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
    halyard_memory_info_t given = {sizeof given, 0, 0, 0, 0};
    return give(
        of(device).services(), [&] { return of(device).allocate(*request, false, given); },
        [&](auto made) {
          fill_sized(*info, given);
          *memory = reinterpret_cast<halyard_driver_memory_t>(made.release());
        });
  }
  static void memory_free(halyard_driver_device_t device, halyard_driver_memory_t memory) {
    of(device).destroy(&of(memory));
  }
  // Memory with map() and unmap() is told of each mapping; the bytes of other memory stay where they are.
  static halyard_status_t memory_map(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                     uint32_t access, uint64_t offset, uint64_t length, void** pointer) {
    if constexpr (kTellsMappings) {
      return give(
          of(device).services(), [&] { return of(memory).map(access, offset, length); },
          [&](uint8_t* bytes) { *pointer = bytes; });
    } else {
      return give(
          of(device).services(), [&] { return of(memory).bytes(); },
          [&](uint8_t* bytes) { *pointer = bytes + offset; });
    }
  }
  static void memory_unmap(halyard_driver_device_t, halyard_driver_memory_t memory) {
    if constexpr (kTellsMappings) of(memory).unmap();
  }
  static halyard_status_t memory_read(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                      uint64_t offset, uint64_t length, void* target) {
    return guarded(of(device).services(),
                   [&] {
                     return of(memory).read_now(
                         offset, std::span(static_cast<uint8_t*>(target), static_cast<size_t>(length)));
                   })
        .release();
  }
  static halyard_status_t memory_write(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                       uint64_t offset, uint64_t length, const void* source) {
    return guarded(of(device).services(),
                   [&] {
                     return of(memory).write_now(
                         offset, std::span(static_cast<const uint8_t*>(source), static_cast<size_t>(length)));
                   })
        .release();
  }
  static halyard_status_t memory_flush(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                       uint64_t offset, uint64_t length) {
    return guarded(of(device).services(), [&] { return of(memory).flush(offset, length); }).release();
  }
  static halyard_status_t memory_invalidate(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                            uint64_t offset, uint64_t length) {
    return guarded(of(device).services(), [&] { return of(memory).invalidate(offset, length); }).release();
  }
  static halyard_status_t memory_import(halyard_driver_device_t device,
                                        const halyard_memory_request_t* request,
                                        const halyard_external_memory_t* external,
                                        halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
    halyard_memory_info_t given = {sizeof given, 0, 0, 0, 0};
    return give(
        of(device).services(),
        [&] { return of(device).import_memory(*request, copy_sized(*external), given); },
        [&](auto made) {
          fill_sized(*info, given);
          *memory = reinterpret_cast<halyard_driver_memory_t>(made.release());
        });
  }
  static halyard_status_t memory_export(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                        uint32_t kind, halyard_external_memory_t* external) {
    return give(
        of(device).services(), [&] { return of(memory).export_to(kind); },
        [&](const halyard_external_memory_t& given) { fill_sized(*external, given); });
  }

  // ---- Semaphores

  static halyard_status_t semaphore_create(halyard_driver_device_t device, uint64_t initial,
                                           halyard_driver_semaphore_t* semaphore) {
    return make(of(device).services(), semaphore, nullptr,
                [&] { return of(device).create_semaphore(initial); });
  }
  static void semaphore_destroy(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore) {
    of(device).destroy(&of(semaphore));
  }
  static halyard_status_t semaphore_query(halyard_driver_semaphore_t semaphore, uint64_t* value) {
    // A program may call this in a loop: the lock of the failure is taken only if there is one.
    if (of(semaphore).progress(0) == Progress::failed) return of(semaphore).failure().release();
    *value = of(semaphore).seen_value();
    return nullptr;
  }
  // The tasks that become ready run in the destructor of the list; the semaphore may be gone by then.
  static halyard_status_t semaphore_signal(halyard_driver_semaphore_t semaphore, uint64_t value) {
    const Services& services = of(semaphore).services();
    TaskList ready;
    return guarded(services, [&] { return of(semaphore).signal(value, ready); }).release();
  }
  static void semaphore_fail(halyard_driver_semaphore_t semaphore, halyard_status_t status) {
    TaskList ready;
    of(semaphore).fail(Status(of(semaphore).services(), status), ready);
  }
  static halyard_status_t semaphore_wait(halyard_driver_device_t device,
                                         const halyard_semaphore_wait_args_t* args) {
    return guarded(of(device).services(),
                   [&] {
                     return of(device).wait({args->timepoints, args->timepoint_count}, args->any != 0,
                                            args->deadline_ns);
                   })
        .release();
  }
  static halyard_status_t semaphore_subscribe(halyard_driver_semaphore_t semaphore, uint64_t value,
                                              halyard_subscriber_fn subscriber, void* user) {
    const Services& services = of(semaphore).services();
    TaskList ready;
    return guarded(services,
                   [&] {
                     using Subscribed = decltype(of(semaphore).subscribe(value, subscriber, user, ready));
                     if constexpr (std::is_void_v<Subscribed>) {
                       return of(semaphore).subscribe(value, subscriber, user, ready), Result<>();
                     } else {
                       return of(semaphore).subscribe(value, subscriber, user, ready);
                     }
                   })
        .release();
  }
  static int32_t semaphore_unsubscribe(halyard_driver_semaphore_t semaphore, halyard_subscriber_fn subscriber,
                                       void* user) {
    return of(semaphore).unsubscribe(subscriber, user) ? 1 : 0;
  }
  static halyard_status_t semaphore_import(halyard_driver_device_t device, int32_t fd,
                                           halyard_driver_semaphore_t* semaphore) {
    return make(of(device).services(), semaphore, nullptr, [&] { return of(device).import_semaphore(fd); });
  }
  static halyard_status_t semaphore_export(halyard_driver_semaphore_t semaphore, int32_t* fd) {
    if (of(semaphore).progress(0) == Progress::failed) return of(semaphore).failure().release();
    return give(
        of(semaphore).services(), [&] { return of(semaphore).export_fd(); },
        [&](int32_t given) { *fd = given; });
  }
  static int32_t semaphore_underway(halyard_driver_semaphore_t semaphore, uint64_t value) {
    return of(semaphore).underway(value) ? 1 : 0;
  }

  // ---- Executables and command lists

  static void executable_grade(halyard_driver_device_t device, halyard_text_t format, const void* data,
                               uint64_t size, halyard_executable_grade_t* grade) {
    halyard_executable_grade_t given = {};
    given.grade = HALYARD_GRADE_NO;
    (void)guarded(of(device).services(), [&]() -> Result<> {
      const auto* const bytes = static_cast<const uint8_t*>(data);
      std::string reason;
      given.grade = of(device).grade(view(format), {bytes, bytes ? static_cast<size_t>(size) : 0}, reason);
      std::snprintf(given.reason, sizeof given.reason, "%s", reason.c_str());
      return {};
    });
    fill_sized(*grade, given);
  }
  static halyard_status_t executable_create(halyard_driver_device_t device,
                                            const halyard_executable_args_t* args,
                                            halyard_driver_executable_t* executable) {
    return make(of(device).services(), executable, args->extensions, [&] { return of(device).load(*args); });
  }
  static void executable_destroy(halyard_driver_device_t, halyard_driver_executable_t executable) {
    delete &of(executable);
  }
  static uint32_t executable_function_count(halyard_driver_executable_t executable) {
    return of(executable).function_count();
  }
  static halyard_status_t executable_function_info(halyard_driver_executable_t executable, uint32_t function,
                                                   halyard_function_info_t* info) {
    return give(
        of(executable).services(), [&] { return of(executable).function_info(function); },
        [&](const halyard_function_info_t& known) { fill_sized(*info, known); });
  }
  static halyard_status_t command_list_create(halyard_driver_device_t device,
                                              const halyard_command_list_args_t* args,
                                              halyard_driver_command_list_t* list) {
    return make(of(device).services(), list, args->extensions, [&] { return of(device).create_list(*args); });
  }
  static void command_list_destroy(halyard_driver_device_t, halyard_driver_command_list_t list) {
    delete reinterpret_cast<CommandList*>(list);
  }

  // ---- Queue work

  static halyard_status_t queue_submit(halyard_driver_device_t device,
                                       const halyard_submission_t* submission) {
    const Services& services = of(device).services();
    TaskList ready;  // its destructor runs the tasks that become ready
    return guarded(services,
                   [&] {
                     if (submission->extensions) [[unlikely]]
                       if (Result<> known = check_extensions(submission->extensions); !known)
                         return to_status(services, known);
                     return to_status(services, of(device).submit(*submission, ready));
                   })
        .release();
  }
  static void device_help(halyard_driver_device_t device, const halyard_semaphore_wait_args_t* args) {
    of(device).help({args->timepoints, args->timepoint_count}, args->any != 0);
  }

  static constexpr halyard_driver_table_t table() {
    halyard_driver_table_t table = {};
    table.struct_size = sizeof table;
#define HALYARD_KIT_ENTRY_(name) table.name = name
    HALYARD_KIT_ENTRY_(initialize);
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
    if constexpr (requires(Memory& memory) { memory.flush(0, 0); }) {
      HALYARD_KIT_ENTRY_(memory_flush);
      HALYARD_KIT_ENTRY_(memory_invalidate);
    }
    HALYARD_KIT_ENTRY_(memory_import);
    if constexpr (requires(Memory& memory) { memory.export_to(0); }) HALYARD_KIT_ENTRY_(memory_export);
    HALYARD_KIT_ENTRY_(semaphore_create);
    HALYARD_KIT_ENTRY_(semaphore_destroy);
    HALYARD_KIT_ENTRY_(semaphore_query);
    HALYARD_KIT_ENTRY_(semaphore_signal);
    HALYARD_KIT_ENTRY_(semaphore_fail);
    HALYARD_KIT_ENTRY_(semaphore_wait);
    HALYARD_KIT_ENTRY_(semaphore_subscribe);
    HALYARD_KIT_ENTRY_(semaphore_unsubscribe);
    if constexpr (requires(Device& device) { device.import_semaphore(0); })
      HALYARD_KIT_ENTRY_(semaphore_import);
    if constexpr (requires(Semaphore& semaphore) { semaphore.export_fd(); })
      HALYARD_KIT_ENTRY_(semaphore_export);
    HALYARD_KIT_ENTRY_(executable_grade);
    HALYARD_KIT_ENTRY_(executable_create);
    HALYARD_KIT_ENTRY_(executable_destroy);
    HALYARD_KIT_ENTRY_(executable_function_count);
    HALYARD_KIT_ENTRY_(executable_function_info);
    HALYARD_KIT_ENTRY_(command_list_create);
    HALYARD_KIT_ENTRY_(command_list_destroy);
    HALYARD_KIT_ENTRY_(queue_submit);
    if constexpr (requires(Semaphore& semaphore) { semaphore.underway(0); })
      HALYARD_KIT_ENTRY_(semaphore_underway);
    if constexpr (requires(Device& device) { device.help({}, false); }) HALYARD_KIT_ENTRY_(device_help);
    if constexpr (requires(Memory& memory) { memory.read_now(0, std::span<uint8_t>()); }) {
      HALYARD_KIT_ENTRY_(memory_read);
      HALYARD_KIT_ENTRY_(memory_write);
    }
#undef HALYARD_KIT_ENTRY_
    return table;
  }
};

// For a driver that defines the structs of driver.h itself, which makes its handles typed. It derives from
// this class and adds create().
template <typename List>
struct OwnClasses {
  using Instance = halyard_driver_instance;
  using Device = halyard_driver_device;
  using Memory = halyard_driver_memory;
  using Semaphore = halyard_driver_semaphore;
  using Executable = halyard_driver_executable;
  using CommandList = halyard_driver_command_list;
  using TaskList = List;
};

// The kit's own classes, with `I` as the instance.
template <typename I>
struct Kit {
  using Instance = kit::Instance;
  using Device = kit::Device;
  using Memory = kit::Memory;
  using Semaphore = Timeline;
  using Executable = kit::Executable;
  using CommandList = kit::CommandList;
  using TaskList = kit::TaskList;
  static Result<std::unique_ptr<Instance>> create(const Services& services) {
    std::unique_ptr<Instance> made = std::make_unique<I>(services);
    HALYARD_KIT_TRY(made->start());
    return made;
  }
};

// There is one version so far: either both ranges contain it, or they do not overlap [R6].
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
  if (request.sanitizer != HALYARD_SANITIZER_KIND)
    std::snprintf(filled.refusal, sizeof filled.refusal,
                  "driver %s was built for sanitizer kind %u, the host for %u", name,
                  unsigned{HALYARD_SANITIZER_KIND}, request.sanitizer);
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
