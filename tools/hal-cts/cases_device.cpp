// Opening devices, and querying their properties.
#include <algorithm>
#include <bit>
#include <cstring>

#include "cases.h"

namespace halyard::cts {

namespace {

Outcome open_with(Session& s, const halyard_device_open_args_t& args, halyard_driver_device_t* device) {
  return s.take(s.table().device_open(s.instance(), &args, device));
}

halyard_device_open_args_t args_of(const Target& target) {
  return {.struct_size = sizeof(halyard_device_open_args_t),
          .kind = text(target.kind),
          .path = text(target.path)};
}

void is_not_opened(Session& s, std::string_view rule, const std::string& what, halyard_status_code_t code,
                   std::string_view named, const halyard_device_open_args_t& args) {
  auto* const untouched = reinterpret_cast<halyard_driver_device_t>(0x5EED);
  halyard_driver_device_t device = untouched;
  const Outcome outcome = open_with(s, args, &device);
  s.refused_naming(rule, what, code, named, outcome);
  if (outcome.ok()) {
    s.table().device_close(device);
  } else {
    s.check("R50", device == untouched, "*device after " + what, "untouched", "changed");
  }
}

halyard_device_properties_t properties_of(Session& s, halyard_driver_device_t device) {
  halyard_device_properties_t properties = {.struct_size = sizeof properties};
  s.must("device_properties", "device_properties", s.take(s.table().device_properties(device, &properties)));
  return properties;
}

}  // namespace

void device_opens_twice(Session& s) {
  halyard_driver_device_t other = s.open(s.instance());
  s.check("R25", other != s.device(), "opening a device twice", "two handles", "one handle twice");
  // Each device works while the other exists, and after the other has been closed.
  halyard_driver_semaphore_t semaphore = nullptr;
  s.must("R25", "semaphore_create on the second of two devices",
         s.take(s.table().semaphore_create(other, 5, &semaphore)));
  s.value_is("R25", "a semaphore of the second device", semaphore, 5);
  s.table().semaphore_destroy(other, semaphore);
  s.table().device_close(other);
  s.value_is("R25", "a semaphore of a device after another one was closed", s.semaphore(3), 3);
}

void device_opens_often(Session& s) {
  for (int i = 0; i < 20; ++i) {
    halyard_driver_device_t device = s.open(s.instance());
    static_cast<void>(properties_of(s, device));
    s.table().device_close(device);
  }
}

void device_unknown_path(Session& s) {
  Target wrong = s.target();
  wrong.path = "no-device-has-this-path";
  is_not_opened(s, "device_open", "device_open of " + wrong.uri(), HALYARD_NOT_FOUND, wrong.path,
                args_of(wrong));
}

void device_unknown_option(Session& s) {
  const halyard_option_t options[] = {{text("no-device-has-this-option"), text("1")}};
  halyard_device_open_args_t args = args_of(s.target());
  args.options = options;
  args.option_count = 1;
  is_not_opened(s, "device_open", "device_open with an unknown option", HALYARD_INVALID_ARGUMENT,
                "no-device-has-this-option", args);
}

void device_open_extensions(Session& s) {
  const halyard_extension_t may = extension(0), must = extension(1);
  halyard_device_open_args_t args = args_of(s.target());
  args.extensions = &must;
  is_not_opened(s, "R13", "device_open with an unknown extension that must be understood",
                HALYARD_UNIMPLEMENTED, fmt::format("{}", kUnknownExtension), args);
  args.extensions = &may;
  halyard_driver_device_t device = nullptr;
  s.must("R13", "device_open with an unknown extension that need not be understood",
         open_with(s, args, &device));
  s.table().device_close(device);
}

void device_properties_make_sense(Session& s) {
  const halyard_device_properties_t& it = s.properties();
  s.check("device_properties", it.queue_count >= 1 && it.queue_count <= 64, "queue_count", "1 to 64",
          fmt::format("{}", it.queue_count));
  s.check("device_properties", std::has_single_bit(it.memory_alignment), "memory_alignment", "a power of two",
          fmt::format("{}", it.memory_alignment));
  s.check("device_properties", it.maximum_allocation > 0, "maximum_allocation", "above 0", "0");
  s.check("device_properties", it.import_alignment == 0 || std::has_single_bit(it.import_alignment),
          "import_alignment", "0 or a power of two", fmt::format("{}", it.import_alignment));
  s.check("R68", s.does(HALYARD_OPERATION_BARRIER) && s.does(HALYARD_OPERATION_EXECUTE), "operations",
          "barrier and execute among them", fmt::format("0x{:x}", it.operations));
  const bool has_alloca = s.has(HALYARD_DEVICE_QUEUE_ALLOCA);
  s.check("R68",
          s.does(HALYARD_OPERATION_ALLOCA) == has_alloca && s.does(HALYARD_OPERATION_DEALLOCA) == has_alloca,
          "operations alloca and dealloca", "both with QUEUE_ALLOCA, none without",
          fmt::format("0x{:x}", it.operations));
  s.check("R75", it.import_alignment == 0 || s.table().memory_import,
          "memory_import of a device with import_alignment", "there", "null");
  s.check("R68", !s.has(HALYARD_DEVICE_SEMAPHORE_EXPORT) || s.table().semaphore_export,
          "semaphore_export of a device with SEMAPHORE_EXPORT", "there", "null");
  const halyard_device_properties_t again = properties_of(s, s.device());
  s.check("device_properties", std::memcmp(&again, &it, sizeof it) == 0, "properties asked again", "the same",
          "others");
}

void device_properties_for_newer_hosts(Session& s) {
  struct {
    halyard_device_properties_t properties;
    uint8_t behind[64];
  } guarded = {};
  constexpr size_t kFirst = HALYARD_FIELD_END(halyard_device_properties_t, import_alignment);
  std::memset(static_cast<void*>(&guarded), 0xA5, sizeof guarded);
  guarded.properties.struct_size = kFirst;
  s.must("R11", "device_properties", s.take(s.table().device_properties(s.device(), &guarded.properties)));
  s.equal<size_t>("R11", "bytes behind the properties that were left alone", sizeof guarded.behind,
                  std::ranges::count(guarded.behind, 0xA5));
  guarded.properties.struct_size = sizeof guarded;
  s.must("R11", "device_properties of a newer host",
         s.take(s.table().device_properties(s.device(), &guarded.properties)));
  s.equal<size_t>("R11", "struct_size of a newer host's properties afterwards", sizeof guarded,
                  guarded.properties.struct_size);
  s.equal<uint32_t>("R11", "queue_count as a newer host sees it", s.properties().queue_count,
                    guarded.properties.queue_count);
}

void device_queries(Session& s) {
  int32_t known = 7;
  int64_t value = 0;
  s.must("device_query_i64", "a query that no device knows",
         s.take(s.table().device_query_i64(s.device(), text("no.such.category"), text("no.such.key"), &known,
                                           &value)));
  s.equal("device_query_i64", "*known of a query that no device knows", 0, known);
  for (const char* category : {"hal.device", "hal.dispatch"}) {
    known = 7;
    s.must(
        "device_query_i64", fmt::format("query of {}, concurrency", category),
        s.take(s.table().device_query_i64(s.device(), text(category), text("concurrency"), &known, &value)));
    s.check("device_query_i64", known == 0 || value >= 1, fmt::format("{}, concurrency", category),
            "at least 1, or unknown", fmt::format("{}", value));
  }
}

void device_two_kinds_of_one_instance(Session& s) {
  uint32_t count = 0;
  s.must("enumerate_devices", "enumerate_devices",
         s.take(s.table().enumerate_devices(s.instance(), 0, nullptr, &count)));
  std::vector<halyard_device_info_t> infos(count);
  for (halyard_device_info_t& info : infos) info.struct_size = sizeof info;
  s.must("enumerate_devices", "enumerate_devices",
         s.take(s.table().enumerate_devices(s.instance(), count, infos.data(), &count)));
  // All devices are open at the same time, and are closed in the order of opening.
  std::vector<halyard_driver_device_t> devices;
  for (const halyard_device_info_t& info : infos) {
    const Target target = {info.kind, info.path, {}};
    halyard_driver_device_t device = nullptr;
    s.must("R25", "device_open of " + target.uri() + " beside others",
           open_with(s, args_of(target), &device));
    devices.push_back(device);
  }
  for (halyard_driver_device_t device : devices) s.table().device_close(device);
}

}  // namespace halyard::cts
