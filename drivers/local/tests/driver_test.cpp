// Properties of the driver and its devices.
#include <optional>
#include <sstream>

#include "harness.h"

namespace halyard::local_tests {
namespace {

halyard_driver_request_t request(uint32_t abi_min, uint32_t abi_max,
                                 uint32_t sanitizer = HALYARD_SANITIZER_KIND) {
  return {.struct_size = sizeof(halyard_driver_request_t),
          .abi_min = abi_min,
          .abi_max = abi_max,
          .sanitizer = sanitizer,
          .host_version = "test"};
}

TEST(Negotiate, GivesVersionTableAndKinds) {
  const halyard_driver_request_t ours = request(1, 7);
  halyard_driver_reply_t reply = {.struct_size = sizeof reply};
  ASSERT_EQ(halyard_driver_negotiate(&ours, &reply), 1);
  EXPECT_EQ(reply.abi_version, 1u);
  EXPECT_GE(reply.table->struct_size, HALYARD_FIELD_END(halyard_driver_table_t, queue_flush));
  ASSERT_EQ(reply.kind_count, 2u);
  EXPECT_STREQ(reply.kinds[0].name, "local-sync");
  EXPECT_STREQ(reply.kinds[1].name, "local-task");
  for (uint32_t i = 0; i < reply.kind_count; ++i) EXPECT_STRNE(reply.kinds[i].description, "");
}

TEST(Negotiate, RefusesWithAReason) {
  halyard_driver_reply_t reply = {.struct_size = sizeof reply};
  const halyard_driver_request_t newer = request(2, 3);
  EXPECT_EQ(halyard_driver_negotiate(&newer, &reply), 0);
  EXPECT_TRUE(std::string_view(reply.refusal).contains(" 1, the host 2 to 3")) << reply.refusal;
  const halyard_driver_request_t zero = request(0, 0);
  EXPECT_EQ(halyard_driver_negotiate(&zero, &reply), 0);
  const halyard_driver_request_t instrumented = request(1, 1, HALYARD_SANITIZER_KIND + 1);
  EXPECT_EQ(halyard_driver_negotiate(&instrumented, &reply), 0);
  EXPECT_NE(std::string_view(reply.refusal).find("sanitizer"), std::string_view::npos);

  const halyard_extension_t needed = {.struct_size = sizeof needed, .kind = 9, .must_understand = 1};
  halyard_driver_request_t extended = request(1, 1);
  extended.extensions = &needed;
  EXPECT_EQ(halyard_driver_negotiate(&extended, &reply), 0);
  EXPECT_TRUE(std::string_view(reply.refusal).contains("extension kind 9")) << reply.refusal;
}

TEST(Negotiate, EveryMandatoryFunctionIsThere) {
#define HALYARD_DRIVER_FUNCTION(name, mandatory) EXPECT_TRUE(!(mandatory) || table().name) << #name;
#include "halyard/driver_functions.inc"
#undef HALYARD_DRIVER_FUNCTION
  EXPECT_TRUE(table().memory_map && table().memory_unmap);
}

class Devices : public LocalTest {
 public:
  // Tries whether a device can be opened.
  Outcome open_with(std::string_view kind, std::string_view path, const Options& options = {},
                    const halyard_extension_t* extensions = nullptr) {
    halyard_driver_device_t device = nullptr;
    Outcome outcome = try_open(kind, path, options, &device, extensions);
    EXPECT_EQ(device != nullptr, outcome.ok());
    if (device) table_.device_close(device);
    return outcome;
  }
  // No value if the device does not know the key.
  std::optional<int64_t> ask(std::string_view category, std::string_view key) {
    int32_t known = 7;
    int64_t value = 7;
    EXPECT_OK(host_.take(table_.device_query_i64(device_, text(category), text(key), &known, &value)));
    EXPECT_TRUE(known == 1 || (known == 0 && value == 0)) << known << " " << value;
    return known ? std::optional(value) : std::nullopt;
  }
};
HALYARD_ON_EVERY_DEVICE(Devices);

TEST_P(Devices, AreEnumerated) {
  uint32_t count = 0;
  EXPECT_OK(host_.take(table_.enumerate_devices(instance_, 0, nullptr, &count)));
  ASSERT_EQ(count, 2u);
  halyard_device_info_t infos[3] = {};
  for (halyard_device_info_t& info : infos) info.struct_size = sizeof info;
  EXPECT_OK(host_.take(table_.enumerate_devices(instance_, 3, infos, &count)));
  EXPECT_EQ(count, 2u);
  EXPECT_STREQ(infos[0].kind, "local-sync");
  EXPECT_STREQ(infos[1].kind, "local-task");
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_STREQ(infos[i].path, "");
    EXPECT_STRNE(infos[i].name, "");
  }
  EXPECT_EQ(infos[2].kind, nullptr);
}

TEST_P(Devices, OpenByKindAndEmptyPath) {
  EXPECT_OK(open_with(kind_, ""));
  EXPECT_CODE(NOT_FOUND, open_with(kind_, "1"));
  EXPECT_CODE(NOT_FOUND, open_with("local", ""));
}

TEST_P(Devices, HaveOptions) {
  EXPECT_OK(open_with(kind_, "", {{"validate", "1"}}));
  EXPECT_OK(open_with(kind_, "", {{"validate", "0"}}));
  const Outcome unknown = open_with(kind_, "", {{"validate", "1"}, {"threads", "4"}});
  expect_fails(Code::INVALID_ARGUMENT, {"'threads'", "'validate'"}, unknown);
  EXPECT_EQ(unknown.message().find("'workers'") != std::string::npos, !runs_in_caller()) << unknown.text();

  for (const char* value : {"", "2", "-1", "yes", "1 "})
    EXPECT_CODE(INVALID_ARGUMENT, open_with(kind_, "", {{"validate", value}})) << value;
  for (const char* value : {"best", "baseline", "scalar"}) EXPECT_OK(open_with(kind_, "", {{"isa", value}}));
  expect_fails(Code::INVALID_ARGUMENT, {"'isa'", "'abacus'", "'best'", "'baseline'", "'scalar'"},
               open_with(kind_, "", {{"isa", "abacus"}}));
  for (const char* value : {"off", "auto"}) EXPECT_OK(open_with(kind_, "", {{"jit", value}}));
  expect_fails(Code::INVALID_ARGUMENT, {"'jit'", "'sometimes'", "'off', 'auto' or 'always'"},
               open_with(kind_, "", {{"jit", "sometimes"}}));
  for (const char* value : {"exact", "fast"}) EXPECT_OK(open_with(kind_, "", {{"jit_math", value}}));
  expect_fails(Code::INVALID_ARGUMENT, {"'jit_math'", "'rough'", "'exact' or 'fast'"},
               open_with(kind_, "", {{"jit_math", "rough"}}));
  if (runs_in_caller()) {
    EXPECT_CODE(INVALID_ARGUMENT, open_with(kind_, "", {{"workers", "1"}}));
    return;
  }
  EXPECT_OK(open_with(kind_, "", {{"workers", "1024"}, {"queues", "64"}}));
  for (const char* value : {"0", "1025", "99999999999999999999", "two", "", "0x2"}) {
    EXPECT_FAILS(INVALID_ARGUMENT, "'workers'", open_with(kind_, "", {{"workers", value}})) << value;
  }
  for (const char* value : {"0", "65"})
    EXPECT_CODE(INVALID_ARGUMENT, open_with(kind_, "", {{"queues", value}})) << value;
}

TEST_P(Devices, SkipOrRefuseUnknownExtensions) {
  halyard_extension_t extension = {.struct_size = sizeof extension, .kind = 12, .must_understand = 0};
  EXPECT_OK(open_with(kind_, "", {}, &extension));
  const halyard_extension_t first = {.struct_size = sizeof first, .kind = 11, .next = &extension};
  extension.must_understand = 1;
  EXPECT_FAILS(UNIMPLEMENTED, "12", open_with(kind_, "", {}, &first));
}

TEST_P(Devices, HaveProperties) {
  const halyard_device_properties_t properties = this->properties();
  uint32_t expected = HALYARD_DEVICE_UNIFIED_MEMORY | HALYARD_DEVICE_HOST_COHERENT |
                      HALYARD_DEVICE_QUEUE_ALLOCA | HALYARD_DEVICE_WRITES_CONSTANTS |
                      HALYARD_DEVICE_STOPS_WORK;
  if (runs_in_caller()) expected |= HALYARD_DEVICE_RUNS_IN_CALLER;
  EXPECT_EQ(properties.capabilities, expected);
  EXPECT_EQ(properties.queue_count, 1u);
  EXPECT_EQ(properties.operations, 0x3FFu);
  EXPECT_EQ(properties.memory_alignment, 64u);
  EXPECT_EQ(properties.import_alignment, 64u);
  EXPECT_GT(properties.maximum_allocation, uint64_t{1} << 20);
}

TEST_P(Devices, AnswerQueries) {
  EXPECT_EQ(ask("hal.device", "concurrency"), 1);
  EXPECT_EQ(ask("hal.dispatch", "concurrency"), runs_in_caller() ? 1 : 3) << "the workers";
  for (const char* key : {"Concurrency", "concurrency ", ""}) EXPECT_FALSE(ask("hal.device", key)) << key;
  EXPECT_FALSE(ask("vulkan.device", "concurrency"));
}

TEST_P(Devices, DescribeTheProcessor) {
#if defined(__x86_64__)
  std::istringstream keys(
      "sse3 ssse3 sse4.1 sse4.2 sse4a avx fma fma4 xop f16c avx2 avx512f avx512cd avx512vl avx512dq avx512bw "
      "avx512ifma avx512vbmi avx512vpopcntdq avx512vnni avx512vbmi2 avx512bitalg avx512bf16 avx512fp16 "
      "amx-tile "
      "amx-int8 amx-bf16");
  for (std::string key; keys >> key;) {
    const std::optional<int64_t> value = ask("hal.cpu", key);
    EXPECT_TRUE(value == 0 || value == 1) << key;
  }
  EXPECT_EQ(ask("hal.cpu", "avx2"), __builtin_cpu_supports("avx2") ? 1 : 0);
  EXPECT_FALSE(ask("hal.cpu", "dotprod")) << "a name of another architecture";
#endif
  EXPECT_FALSE(ask("hal.cpu", "no-such-feature"));
}

}  // namespace
}  // namespace halyard::local_tests
