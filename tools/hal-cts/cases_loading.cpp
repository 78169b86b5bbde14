// The file, the negotiation, and the driver's description of itself.
#include <algorithm>
#include <cstring>
#include <thread>

#include "cases.h"

namespace halyard::cts {

namespace {

struct Reply {
  int32_t agreed = 0;
  halyard_driver_reply_t reply = {};
};

Reply negotiate(Session& s, const halyard_driver_request_t& request) {
  Reply made;
  made.reply.struct_size = sizeof made.reply;
  made.agreed = s.negotiator()(&request, &made.reply);
  return made;
}

void is_refused(Session& s, std::string_view rule, const std::string& what, const Reply& made) {
  if (!s.check(rule, made.agreed == 0, what, "0, a refusal",
               fmt::format("{}, ABI {}", made.agreed, made.reply.abi_version)))
    return;
  const bool terminated = std::memchr(made.reply.refusal, 0, sizeof made.reply.refusal) != nullptr;
  s.check("R6", terminated && made.reply.refusal[0], what + ": the refusal's text",
          "terminated text that says why", terminated ? "an empty text" : "256 bytes without a 0");
}

}  // namespace

void loading_accepted_by_host(Session& s) {
  const Result<> verdict = host_verdict(s.driver());
  if (!verdict)
    s.problem("R1-R9", "libhalyard.so given this driver", "that it takes it",
              "'" + verdict.error().text + "'");
}

void loading_exports_one_symbol(Session& s) {
  const Result<std::vector<std::string>> names = exported_symbols(s.driver());
  if (!names) s.stop("R5", "symbols of the library", "a list of them", names.error().line());
  for (const std::string& name : *names)
    s.check("R5", name == HALYARD_DRIVER_NEGOTIATE_SYMBOL, "symbols that the library exports",
            HALYARD_DRIVER_NEGOTIATE_SYMBOL " alone", name);
}

void loading_has_every_mandatory_function(Session& s) {
  const Reply made = negotiate(s, plain_request());
  if (!made.agreed || !made.reply.table) s.stop("R6", "negotiation", "a table", "a refusal");
  s.check("R10", made.reply.table->struct_size >= HALYARD_FIELD_END(halyard_driver_table_t, queue_flush),
          "struct_size of the table", "at least the size of version 1",
          fmt::format("{}", made.reply.table->struct_size));
  // libhalyard.so has checked the mandatory functions of version 1. These two functions are optional, but
  // only together.
  const halyard_driver_table_t& table = s.table();
  s.check("R79", !table.memory_read == !table.memory_write, "memory_read and memory_write", "both or none",
          "one of them");
  s.check("R7", !table.memory_map == !table.memory_unmap, "memory_map and memory_unmap", "both or none",
          "one of them");
  s.check("R68", !table.semaphore_export == !table.semaphore_import, "semaphore_export and semaphore_import",
          "both or none", "one of them");
}

void loading_negotiates_any_number_of_times(Session& s) {
  const halyard_driver_request_t request = plain_request();
  const Reply first = negotiate(s, request);
  const auto repeat = [&] {
    for (int i = 0; i < 100; ++i) {
      const Reply again = negotiate(s, request);
      const bool same = again.agreed == first.agreed && again.reply.table == first.reply.table &&
                        again.reply.kind_count == first.reply.kind_count &&
                        again.reply.abi_version == first.reply.abi_version;
      if (!s.check("R5", same, "a further negotiation", "the answer of the first", "another one")) return;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(repeat);
  for (std::thread& thread : threads) thread.join();
}

void loading_refuses_version_zero(Session& s) {
  halyard_driver_request_t request = plain_request();
  request.abi_min = request.abi_max = 0;
  is_refused(s, "R6", "negotiation with a host of version 0", negotiate(s, request));
}

void loading_refuses_versions_it_does_not_speak(Session& s) {
  halyard_driver_request_t request = plain_request();
  request.abi_min = request.abi_max = 0x7FFFFFFF;
  is_refused(s, "R6", "negotiation with a host of version 2147483647", negotiate(s, request));
}

void loading_takes_newer_hosts(Session& s) {
  struct {
    halyard_driver_request_t request;
    uint64_t later[8];
  } grown = {plain_request(), {}};
  std::ranges::fill(grown.later, 0xEEEEEEEEEEEEEEEE);
  grown.request.struct_size = sizeof grown;
  grown.request.abi_max = 1000;
  const Reply made = negotiate(s, grown.request);
  if (!s.check("R6", made.agreed != 0, "negotiation with a host of versions 1 to 1000", "agreement",
               fmt::format("'{}'", made.reply.refusal)))
    return;
  s.check("R6", made.reply.abi_version >= 1 && made.reply.abi_version <= 1000, "the version agreed on",
          "1 to 1000", fmt::format("{}", made.reply.abi_version));
}

void loading_writes_no_further_than_the_reply(Session& s) {
  struct {
    halyard_driver_reply_t reply;
    uint8_t behind[256];
  } guarded = {};
  for (const bool refused : {false, true}) {
    std::memset(static_cast<void*>(&guarded), 0xA5, sizeof guarded);
    guarded.reply.struct_size = sizeof guarded.reply;
    halyard_driver_request_t request = plain_request();
    if (refused) request.abi_min = request.abi_max = 0;
    s.negotiator()(&request, &guarded.reply);
    s.equal<size_t>("R11", "bytes behind the reply that were left alone", sizeof guarded.behind,
                    std::ranges::count(guarded.behind, 0xA5));
    s.equal<size_t>("R11", "struct_size of the reply afterwards", sizeof guarded.reply,
                    guarded.reply.struct_size);
  }
}

void loading_negotiation_extensions(Session& s) {
  const halyard_extension_t may = extension(0), must = extension(1), both = extension(0, &must);
  halyard_driver_request_t request = plain_request();
  request.extensions = &may;
  const Reply skipped = negotiate(s, request);
  s.check("R13", skipped.agreed != 0, "an unknown extension that need not be understood", "agreement",
          fmt::format("'{}'", skipped.reply.refusal));
  request.extensions = &both;
  is_refused(s, "R13", "an unknown extension that must be understood", negotiate(s, request));
}

void loading_kinds_are_described(Session& s) {
  const Reply made = negotiate(s, plain_request());
  for (uint32_t i = 0; made.agreed && i < made.reply.kind_count; ++i) {
    const char* const description = made.reply.kinds[i].description;
    s.check("R3", description && *description,
            fmt::format("the description of kind '{}'", made.reply.kinds[i].name), "a line for lists",
            "none");
  }
}

// ---- Instances

void instance_initialize_extensions(Session& s) {
  const halyard_extension_t may = extension(0), must = extension(1);
  halyard_driver_init_args_t args = {.struct_size = sizeof args,
                                     .abi_version = HALYARD_DRIVER_ABI_V1,
                                     .services = &s.services().table(),
                                     .extensions = &must};
  auto* const untouched = reinterpret_cast<halyard_driver_instance_t>(0x5EED);
  halyard_driver_instance_t instance = untouched;
  s.refused("R13", "initialize with an unknown extension that must be understood", HALYARD_UNIMPLEMENTED,
            s.take(s.table().initialize(&args, &instance)));
  s.check("R50", instance == untouched, "*instance after initialize failed", "untouched", "changed");
  args.extensions = &may;
  instance = nullptr;
  s.must("R13", "initialize with an unknown extension that need not be understood",
         s.take(s.table().initialize(&args, &instance)));
  s.table().shutdown(&instance);
}

void instance_several_at_once(Session& s) {
  halyard_driver_instance_t first = s.initialize(), second = s.initialize();
  s.check("R9", first != second, "two instances", "two handles", "one handle twice");
  uint32_t count = 0;
  s.must("R25", "enumerate_devices of the second of two instances",
         s.take(s.table().enumerate_devices(second, 0, nullptr, &count)));
  s.table().shutdown(&first);
  s.must("R25", "enumerate_devices after another instance was shut down",
         s.take(s.table().enumerate_devices(second, 0, nullptr, &count)));
  if (count > 0) s.table().device_close(s.open(second));
  s.table().shutdown(&second);
}

void instance_one_after_the_other(Session& s) {
  for (int i = 0; i < 3; ++i) {
    halyard_driver_instance_t instance = s.initialize();
    if (!s.target().kind.empty()) s.table().device_close(s.open(instance));
    s.table().shutdown(&instance);
    s.check("R9", instance == nullptr, "the handle after shutdown", "null", "not null");
  }
}

void instance_shutdown_of_null(Session& s) {
  halyard_driver_instance_t instance = nullptr;
  s.table().shutdown(&instance);
  instance = s.initialize();
  s.table().shutdown(&instance);
  s.table().shutdown(&instance);
  s.check("R9", instance == nullptr, "the handle after two shutdowns", "null", "not null");
}

namespace {

std::string or_null(const char* text) { return text ? text : "(null)"; }

std::string to_text(const halyard_device_info_t& info) {
  return fmt::format("{}://{} {}", or_null(info.kind), or_null(info.path), or_null(info.name));
}

std::vector<std::string> enumerate(Session& s, halyard_driver_instance_t instance) {
  uint32_t count = 0;
  s.must("enumerate_devices", "enumerate_devices with capacity 0",
         s.take(s.table().enumerate_devices(instance, 0, nullptr, &count)));
  std::vector<halyard_device_info_t> infos(count);
  for (halyard_device_info_t& info : infos) info.struct_size = sizeof info;
  uint32_t again = 0;
  s.must("enumerate_devices", "enumerate_devices",
         s.take(s.table().enumerate_devices(instance, count, infos.data(), &again)));
  s.equal("enumerate_devices", "the number of devices, asked with room for all", count, again);
  std::vector<std::string> devices;
  for (const halyard_device_info_t& info : infos) devices.push_back(to_text(info));
  return devices;
}

}  // namespace

void loading_lists_devices(Session& s) {
  halyard_driver_instance_t instance = s.initialize();
  const Reply made = negotiate(s, plain_request());
  uint32_t count = 0;
  s.must("enumerate_devices", "enumerate_devices with capacity 0",
         s.take(s.table().enumerate_devices(instance, 0, nullptr, &count)));
  std::vector<halyard_device_info_t> infos(count);
  for (halyard_device_info_t& info : infos) info.struct_size = sizeof info;
  if (count > 0)
    s.must("enumerate_devices", "enumerate_devices",
           s.take(s.table().enumerate_devices(instance, count, infos.data(), &count)));
  for (const halyard_device_info_t& info : infos) {
    if (!info.kind || !info.path)
      s.stop("enumerate_devices", "kind and path of a device", "two texts", to_text(info));
    s.check("enumerate_devices", info.name && *info.name, "the name of " + to_text(info), "text for people",
            "none");
    bool known = false;
    for (uint32_t i = 0; i < made.reply.kind_count; ++i)
      known = known || std::strcmp(made.reply.kinds[i].name, info.kind) == 0;
    s.check("R3", known, "the kind of a device", "one that the driver negotiated",
            fmt::format("'{}'", info.kind));
    s.note(fmt::format("{}\n{}\n{}", info.kind, info.path, info.name));
  }
  s.table().shutdown(&instance);
}

void instance_enumerates_the_same_twice(Session& s) {
  halyard_driver_instance_t instance = s.initialize();
  const std::vector<std::string> first = enumerate(s, instance), second = enumerate(s, instance);
  s.check("enumerate_devices", first == second, "a second enumeration",
          "the devices of the first, in that order",
          fmt::format("{} of them, or another order", second.size()));
  s.table().shutdown(&instance);
}

void instance_enumerates_into_small_arrays(Session& s) {
  halyard_driver_instance_t instance = s.initialize();
  const std::vector<std::string> all = enumerate(s, instance);
  for (uint32_t capacity = 0; capacity <= all.size() + 1; ++capacity) {
    std::vector<halyard_device_info_t> infos(all.size() + 2);
    for (halyard_device_info_t& info : infos) info = {.struct_size = sizeof info, .reserved = 7};
    uint32_t count = 0;
    const std::string what = fmt::format("enumerate_devices with room for {}", capacity);
    s.must("enumerate_devices", what,
           s.take(s.table().enumerate_devices(instance, capacity, infos.data(), &count)));
    s.equal<uint32_t>("enumerate_devices", what + ": the number there are", all.size(), count);
    for (size_t i = std::min<size_t>(capacity, all.size()); i < infos.size(); ++i)
      s.check("R12", !infos[i].kind && !infos[i].path && !infos[i].name,
              what + fmt::format(": element {}", i), "untouched", to_text(infos[i]));
  }
  s.table().shutdown(&instance);
}

void instance_enumerates_for_newer_hosts(Session& s) {
  halyard_driver_instance_t instance = s.initialize();
  const std::vector<std::string> all = enumerate(s, instance);
  struct Grown {
    halyard_device_info_t info;
    uint64_t later[5];
  };
  std::vector<Grown> infos(all.size());
  for (Grown& grown : infos) grown.info.struct_size = sizeof grown;
  uint32_t count = 0;
  s.must("R12", "enumerate_devices with longer elements",
         s.take(s.table().enumerate_devices(instance, static_cast<uint32_t>(infos.size()),
                                            infos.empty() ? nullptr : &infos[0].info, &count)));
  for (size_t i = 0; i < all.size(); ++i) {
    s.equal("R12", fmt::format("device {} in an array of longer elements", i), all[i],
            to_text(infos[i].info));
    s.equal<size_t>("R11", "struct_size of a device's info afterwards", sizeof(Grown),
                    infos[i].info.struct_size);
  }
  s.table().shutdown(&instance);
}

}  // namespace halyard::cts
