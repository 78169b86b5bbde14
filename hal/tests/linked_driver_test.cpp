// Drivers that are linked into the program: those that negotiate wrongly, each mandatory function that one
// may lack, and the registry's devices of one. The driver is the sample's, whose answers are changed on the
// way.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>

#include "hal/registry/driver_registry.h"
#include "sample_drivers.h"
#include "status_testing.h"

namespace halyard::hal {
namespace {

// The sample driver as a linked one. `change` edits what it answers.
using Change = std::function<void(halyard_driver_reply_t& reply, halyard_driver_table_t& table)>;
Change linked_change;
int32_t linked_outcome;

int32_t negotiate_linked(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) {
  static const auto sample = reinterpret_cast<halyard_driver_negotiate_fn>(
      ::dlsym(::dlopen(sample_path("sample").c_str(), RTLD_NOW | RTLD_LOCAL), "halyard_driver_negotiate"));
  static halyard_driver_table_t table;
  if (!sample || sample(request, reply) == 0) return 0;
  table = {};
  std::memcpy(&table, reply->table, std::min<size_t>(reply->table->struct_size, sizeof table));
  reply->table = &table;
  if (linked_change) linked_change(*reply, table);
  return linked_outcome;
}

LinkedDriver linked(Change change = {}, int32_t outcome = 1, std::string name = "sample") {
  linked_change = std::move(change);
  linked_outcome = outcome;
  return {std::move(name), negotiate_linked};
}

halyard_driver_note_t note_of_sample() { return negotiated_note(linked()).value(); }

TEST(LinkedDriver, HasDevices) {
  RegistryOptions options;
  options.linked = {linked()};
  options.use_environment = options.use_default_folders = false;
  const auto registry = DriverRegistry::create(std::move(options));
  const auto device = ASSERT_VALUE(registry->open_device("sample://slack"));
  EXPECT_EQ(seen(*device, "open_devices"), 1);
}

TEST(LinkedDriver, NegotiatesTheNoteThatAFileHas) {
  const halyard_driver_note_t note = note_of_sample();
  EXPECT_STREQ(note.library, "sample");
  EXPECT_STREQ(note.kinds, "sample,sample-b");
  static const halyard_driver_kind_t kinds[] = {{"first", "1"}, {"second", "2"}};
  const auto two = [](halyard_driver_reply_t& reply, halyard_driver_table_t&) {
    reply.kinds = kinds;
    reply.kind_count = 2;
  };
  EXPECT_STREQ(ASSERT_VALUE(negotiated_note(linked(two))).kinds, "first,second");
}

TEST(LinkedDriver, WithoutKindsIsRefused) {
  const Change changes[] = {
      [](halyard_driver_reply_t& reply, halyard_driver_table_t&) { reply.kinds = nullptr; },
      [](halyard_driver_reply_t& reply, halyard_driver_table_t&) { reply.kind_count = 0; },
  };
  for (const Change& change : changes)
    EXPECT_FAILS(INCOMPATIBLE, "has no device kinds for it", negotiated_note(linked(change)));
  EXPECT_FAILS(INCOMPATIBLE, "has no device kinds for it", negotiated_note(linked({}, 0)));
  // The registry knows the driver, and says why it is of no use.
  RegistryOptions options;
  options.linked = {linked({}, 0)};
  options.use_environment = options.use_default_folders = false;
  EXPECT_FAILS(NOT_FOUND, "driver 'sample', which is part of this program",
               DriverRegistry::create(std::move(options))->open_device("sample"));
}

TEST(LinkedDriver, NamesFitIntoANote) {
  const halyard_driver_note_t note = note_of_sample();
  EXPECT_TRUE(negotiated_note(linked({}, 1, std::string(31, 'n'))));
  EXPECT_FAILS(INCOMPATIBLE, "are too long: 'sample,sample-b'",
               negotiated_note(linked({}, 1, std::string(32, 'n'))));
  static const std::string long_name(191, 'k');
  static const halyard_driver_kind_t kinds[] = {{long_name.c_str(), ""}, {"x", ""}, {nullptr, nullptr}};
  for (const uint32_t count : {1u, 2u}) {
    const auto named = negotiated_note(linked([=](halyard_driver_reply_t& reply, halyard_driver_table_t&) {
      reply.kinds = kinds;
      reply.kind_count = count;
    }));
    if (count == 1) {
      EXPECT_EQ(ASSERT_VALUE(named).kinds, long_name);
    } else {
      EXPECT_FAILS(INCOMPATIBLE, "expected at most 191 bytes of kinds", named);
    }
  }
  const auto nameless = [](halyard_driver_reply_t& reply, halyard_driver_table_t&) {
    reply.kinds = kinds + 2;
    reply.kind_count = 1;
  };
  EXPECT_STREQ(ASSERT_VALUE(negotiated_note(linked(nameless))).kinds, "");
  EXPECT_FAILS(INCOMPATIBLE, "negotiated the kinds '', its note says 'sample,sample-b'",
               DriverLibrary::start(linked(nameless), note));
}

TEST(LinkedDriver, ErrorsOfNegotiation) {
  const halyard_driver_note_t note = note_of_sample();
  struct {
    Change change;
    int32_t outcome;
    const char* part;
  } const cases[] = {
      {[](halyard_driver_reply_t& reply, halyard_driver_table_t&) {
         std::strcpy(reply.refusal, "not today");
       },
       0, "refuses this host, which supports driver ABI"},
      {[](halyard_driver_reply_t& reply, halyard_driver_table_t&) {
         std::strcpy(reply.refusal, "not today");
       },
       0, ": not today"},
      {{}, 0, "it gives no reason"},
      {[](halyard_driver_reply_t& reply, halyard_driver_table_t&) { reply.abi_version = 0; }, 1,
       "chose driver ABI 0"},
      {[](halyard_driver_reply_t& reply, halyard_driver_table_t&) { ++reply.abi_version; }, 1,
       "chose driver ABI"},
      {[](halyard_driver_reply_t& reply, halyard_driver_table_t&) { reply.table = nullptr; }, 1,
       "gave no table of functions"},
      {[](halyard_driver_reply_t& reply, halyard_driver_table_t&) { reply.kinds = nullptr; }, 1,
       "negotiated the kinds '', its note says 'sample,sample-b'"},
      {[](halyard_driver_reply_t&, halyard_driver_table_t& table) { table.struct_size = 16; }, 1,
       "lacks functions"},
  };
  for (const auto& [change, outcome, part] : cases)
    EXPECT_FAILS(INCOMPATIBLE, part, DriverLibrary::start(linked(change, outcome), note));
}

TEST(LinkedDriver, ErrorsOfInitialization) {
  const halyard_driver_note_t note = note_of_sample();
  EXPECT_FAILS(INTERNAL, "was initialized but gave no instance",
               DriverLibrary::start(linked([](halyard_driver_reply_t&, halyard_driver_table_t& table) {
                                      table.initialize = [](const halyard_driver_init_args_t*,
                                                            halyard_driver_instance_t*) {
                                        return halyard_status_t{};
                                      };
                                    }),
                                    note));
  EXPECT_FAILS(UNAVAILABLE, "no card; while initializing driver 'sample'",
               DriverLibrary::start(linked([](halyard_driver_reply_t&, halyard_driver_table_t& table) {
                                      table.initialize = [](const halyard_driver_init_args_t*,
                                                            halyard_driver_instance_t*) {
                                        return Status(Code::UNAVAILABLE, "no card").release();
                                      };
                                    }),
                                    note));
}

struct LinkedFunction {
  const char* name;
  size_t offset;
  bool is_mandatory;
};
constexpr LinkedFunction kLinkedFunctions[] = {
#define HALYARD_DRIVER_FUNCTION(name, mandatory) {#name, offsetof(halyard_driver_table_t, name), mandatory},
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
};

TEST(LinkedDriver, LacksAFunction) {
  const halyard_driver_note_t note = note_of_sample();
  for (const LinkedFunction& function : kLinkedFunctions) {
    SCOPED_TRACE(function.name);
    const auto started = DriverLibrary::start(
        linked([&](halyard_driver_reply_t&, halyard_driver_table_t& table) {
          std::memset(reinterpret_cast<char*>(&table) + function.offset, 0, sizeof(void (*)()));
        }),
        note);
    if (function.is_mandatory) {
      EXPECT_FAILS(INCOMPATIBLE, fmt::format("demands: {}", function.name), started);
    } else {
      EXPECT_TRUE(started) << started.error().text();
    }
  }
}

}  // namespace
}  // namespace halyard::hal
