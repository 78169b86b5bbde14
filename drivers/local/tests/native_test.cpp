// Native executables: accepted files, the arguments and failures of functions, and the host's checks before
// any code runs.
#include <cfenv>

#include "allocation_count.h"
#include "base/cpu_features.h"
#include "elf_writer.h"
#include "native/processor.h"
#include "native_harness.h"

namespace halyard::local_tests {
namespace {

HALYARD_ON_EVERY_DEVICE(NativeTest);

// With each kind of library. The test parameter is the kind of device with the kind of library behind it.
class LibraryTest : public NativeTest {
 public:
  std::string_view kind() const { return kind_of_library(GetParam()); }
  static std::string_view kind_of_library(std::string_view parameter) {
    return parameter.substr(parameter.find('?') + 1);
  }
  std::vector<uint8_t> bytes_of(std::string_view name) const { return library(kind(), name); }
  Executable load_library(std::string_view name, const std::vector<uint32_t>& constants = {}) {
    return load_native(kind(), name, constants);
  }
  Outcome create_library(std::string_view name) { return create_native(kind(), name); }

  const std::string format_ = format(kind());
};
INSTANTIATE_TEST_SUITE_P(Devices, LibraryTest,
                         testing::Values("local-sync?embedded", "local-sync?system", "local-task?embedded",
                                         "local-task?system"),
                         [](const auto& test) {
                           return fmt::format("{}_{}", name_of_kind(test),
                                              LibraryTest::kind_of_library(test.param));
                         });

// ---- Formats and grades

TEST_P(NativeTest, Formats) {
  const std::string embedded = format("embedded");
  const std::string system = format("system");
  for (const std::string& good : {embedded, system, embedded + "-foo", system + "xyz"})
    EXPECT_EQ(grade(good).grade, unsigned{HALYARD_GRADE_NATIVE}) << good;
  for (const char* architecture :
       {"x86_64", "x86_32", "arm_64", "arm_32", "riscv_64", "riscv_32", "wasm_64"}) {
    if (architecture == host_name()) continue;
    const std::string other = fmt::format("embedded-elf-{}", architecture);
    expect_grade(HALYARD_GRADE_RECOMPILE, architecture, grade(other));
    EXPECT_FAILS(NOT_FOUND, host_name(), create(library("embedded", "rev6"), other));
  }
  for (const std::string& unknown :
       {std::string("embedded-elf-"), std::string("embedded-elf-z80"), "x" + embedded,
        "system-dll-" + host_name(), "system-dylib-" + host_name(), std::string("static")}) {
    EXPECT_EQ(grade(unknown).grade, unsigned{HALYARD_GRADE_NO}) << unknown;
    EXPECT_FAILS(NOT_FOUND, "'" + embedded + "'", create(library("embedded", "rev6"), unknown))
        << "names the formats of this driver";
  }
}

TEST_P(LibraryTest, GradesOfData) {
  const std::vector<uint8_t> good = bytes_of("rev6");
  EXPECT_EQ(grade(format_, good).grade, unsigned{HALYARD_GRADE_NATIVE});
  const std::vector<uint8_t> cut(good.begin(), good.begin() + 60);
  EXPECT_EQ(grade(format_, cut).grade, unsigned{HALYARD_GRADE_NO});
  std::vector<uint8_t> other = good;
  other[18] = 2;  // e_machine
  EXPECT_EQ(grade(format_, other).grade, unsigned{HALYARD_GRADE_NO});
  other[18] = host_name() == "x86_64" ? EM_AARCH64 : EM_X86_64;
  const bool is_embedded = kind() == "embedded";  // otherwise the system's loader gives the reason
  expect_grade(HALYARD_GRADE_NO, is_embedded ? "expected code for " + host_name() : "",
               grade(format_, other));
  expect_grade(HALYARD_GRADE_NO, is_embedded ? host_name() == "x86_64" ? "arm_64" : "x86_64" : "",
               grade(format_, other));
  ElfWriter elf(local::host_architecture()->machine, "another_function");
  const std::vector<uint8_t> nothing = elf.build();
  EXPECT_EQ(grade(format("embedded"), nothing).grade, unsigned{HALYARD_GRADE_NO});
  const std::vector<uint8_t> fat = fat_elf({{0x1234}}, {nothing});
  EXPECT_EQ(grade(format("embedded"), fat).grade, unsigned{HALYARD_GRADE_RECOMPILE});
}

#if defined(__x86_64__)
TEST_P(LibraryTest, ALibraryForAnotherProcessorIsRefusedBeforeItRuns) {
  ElfWriter elf;
  // The initializer is an illegal instruction, so it would crash.
  elf.code = {0x0F, 0x0B};
  elf[DT_INIT] = ElfWriter::kCodeAddress;
  elf.add_levels(1u << 9);
  const std::vector<uint8_t> data = elf.build();
  EXPECT_CODE(INCOMPATIBLE, create(data, format_));
  EXPECT_EQ(grade(format_, data).grade, unsigned{HALYARD_GRADE_RECOMPILE});
  EXPECT_TRUE(local::check_processor_levels(0));
  EXPECT_TRUE(local::check_processor_levels(1));
  EXPECT_EQ(local::check_processor_levels(4).has_value(), __builtin_cpu_supports("x86-64-v3") != 0);
  EXPECT_EQ(local::check_processor_levels(8).has_value(), __builtin_cpu_supports("x86-64-v4") != 0);
}
#endif

TEST_P(LibraryTest, ADeviceCanRefuseNativeCode) {
  reopen({{"native", "0"}});
  EXPECT_FAILS(PERMISSION_DENIED, "native=0", create(bytes_of("rev6"), format_));
  EXPECT_EQ(grade(format_).grade, unsigned{HALYARD_GRADE_NO});
  EXPECT_EQ(grade("vmvx-bytecode-fb").grade, unsigned{HALYARD_GRADE_NATIVE});
  reopen({{"native", "1"}});
  EXPECT_NE(load_native("embedded", "rev6"), nullptr);
}

// ---- The library's records

TEST_P(LibraryTest, FunctionsAreDescribed) {
  for (const char* name : {"rev6", "rev5"}) {
    Executable executable = load_library(name);
    ASSERT_NE(executable, nullptr);
    ASSERT_EQ(table_.executable_function_count(executable), 6u);
    expect_function(executable, 0, "record", 1, 1, 4096);
    expect_function(executable, 4, "in_turn", 2, 0, 0, name == std::string_view("rev6") ? 4 : 0);
    std::vector<std::string> sources;
    for (uint32_t function = 0; function < 6; ++function) {
      const halyard_text_t source = info(executable, function).source;
      sources.emplace_back(source.data, source.size);
    }
    EXPECT_EQ(sources, (std::vector<std::string>{"f.mlir:12", "", "", "", "x:0", ""}));
    halyard_function_info_t none = {.struct_size = sizeof none};
    EXPECT_CODE(OUT_OF_RANGE, host_.take(table_.executable_function_info(executable, 6, &none)));
  }
  for (const char* name : {"rev6_nameless", "rev5_nameless"}) {
    Executable executable = load_library(name);
    ASSERT_NE(executable, nullptr);
    EXPECT_EQ(info(executable, 0).name.size, 0u);
    EXPECT_EQ(info(executable, 0).source.size, 0u);
    EXPECT_EQ(record(executable)[kBindings], 1u);
    EXPECT_FAILS(INTERNAL, "number 1", dispatch(executable, {.function = 1, .constants = {7, 0}}));
  }
}

TEST_P(LibraryTest, FunctionsMayHaveUndeclaredCounts) {
  Executable executable = load_library("rev5_without_attributes");
  ASSERT_NE(executable, nullptr);
  EXPECT_EQ(info(executable, 0).binding_count, HALYARD_COUNT_UNDECLARED);
  EXPECT_EQ(info(executable, 0).constant_count, HALYARD_COUNT_UNDECLARED);
  const std::vector<uint32_t> words = record(executable);
  EXPECT_EQ(words[kLocalBytes], 0u);
  EXPECT_EQ(words[kLocalAlignment], 999u) << "none is null";
  EXPECT_CODE(FAILED_PRECONDITION, create_library("rev6_without_attributes"));
  // More than the records can express.
  Memory memory = allocate(16);
  std::vector<halyard_range_t> many(256, range(memory, 0, 16));
  EXPECT_CODE(INVALID_ARGUMENT, dispatch(executable, {.constants = {0}, .bindings = many}));
  EXPECT_CODE(INVALID_ARGUMENT, dispatch(executable, {.constants = std::vector<uint32_t>(65536),
                                                      .bindings = {range(memory, 0, 16)}}));
}

TEST_P(NativeTest, UnsupportedLibrariesAreRefused) {
  struct Case {
    const char* name;
    Code code;
  };
  const Case cases[] = {{"sanitized", Code::UNAVAILABLE},
                        {"features", Code::UNIMPLEMENTED},
                        {"other_revision", Code::FAILED_PRECONDITION},
                        {"many_bindings", Code::OUT_OF_RANGE},
                        {"required_import", Code::NOT_FOUND},
                        {"two_imports", Code::NOT_FOUND},
                        {"broken_import", Code::NOT_FOUND}};
  for (const char* kind : kLibraryKinds)
    for (const Case& each : cases)
      EXPECT_TRUE(has_code(each.code, create_native(kind, each.name))) << kind << " " << each.name;
}

TEST_P(LibraryTest, ConstantsOfTheExecutable) {
  for (const char* name : {"rev6_constants", "rev5_constants"}) {
    Executable one = load_library(name, {5, 77});
    Executable other = load_library(name, {5, 78});
    ASSERT_TRUE(one && other);
    EXPECT_EQ(record(one)[kConstant], 77u);
    EXPECT_EQ(record(other)[kConstant], 78u);
    EXPECT_EQ(record(one)[kConstant], 77u);
    Executable executable = nullptr;
    // Without constants, the query of the test library has nothing to read and returns null.
    EXPECT_CODE(FAILED_PRECONDITION, create_native(kind(), name, &executable, {}));
    EXPECT_FAILS(FAILED_PRECONDITION, "takes 2 constants, but 3 were given",
                 create_native(kind(), name, &executable, {1, 2, 3}));
  }
}

// ---- Arguments of a function

TEST_P(LibraryTest, FunctionsGetAllArguments) {
  const ProcessorData processor = processor_data();
  for (const char* name : {"rev6", "rev5"}) {
    Executable executable = load_library(name);
    const std::vector<uint32_t> words = record(executable, 3, 2, 2);
    for (uint32_t i = 0; i < 12; ++i) {
      const uint32_t* w = &words[kRecord * i];
      EXPECT_EQ((std::vector<uint32_t>{w[kX], w[kY], w[kZ]}),
                (std::vector<uint32_t>{i % 3, i / 3 % 2, i / 6}));
      EXPECT_EQ((std::vector<uint32_t>{w[kCountX], w[kCountY], w[kCountZ]}),
                (std::vector<uint32_t>{3, 2, 2}));
      EXPECT_EQ(w[kSize], 111u);
      EXPECT_EQ(w[kConstants], 1u);
      EXPECT_EQ(w[kBindings], 1u);
      EXPECT_EQ(w[kBytes], 4 * (kRecord * 12 + 1));
      EXPECT_EQ(w[kLocalBytes], 4096u);
      EXPECT_EQ(w[kLocalAlignment], 0u);
      EXPECT_EQ(w[kConcurrency], runs_in_caller() ? 1u : 3u);
      EXPECT_EQ(w[kReserved], 0u);
      EXPECT_EQ(w[kThunk], 0u);
      EXPECT_EQ(w[kFunction], 0u);
      EXPECT_EQ(w[kProcessorLow], static_cast<uint32_t>(processor[0]));
      EXPECT_EQ(w[kProcessorHigh], static_cast<uint32_t>(processor[0] >> 32));
      EXPECT_EQ(w[kProcessorRest], 0u);
      EXPECT_EQ(w[kCounter], 40u);
      EXPECT_EQ(w[kZeros], 0u);
      EXPECT_EQ(w[kEnvironment], words[kEnvironment]) << "at one address";
    }
  }
}

TEST_P(NativeTest, ProcessorDataAgreesWithQueries) {
  const ProcessorData data = processor_data();
  for (size_t i = 1; i < data.size(); ++i) EXPECT_EQ(data[i], 0u);
#if defined(__x86_64__)
  const std::pair<const char*, int> features[] = {
      {"sse3", 0},        {"ssse3", 1},       {"sse4.1", 2},    {"sse4.2", 3},
      {"sse4a", 4},       {"avx", 10},        {"fma", 11},      {"f16c", 14},
      {"avx2", 15},       {"avx512f", 20},    {"avx512bw", 24}, {"avx512vnni", 28},
      {"avx512bf16", 31}, {"avx512fp16", 32}, {"amx-tile", 50}, {"amx-bf16", 52}};
  for (const auto& [name, bit] : features) {
    int32_t known = 0;
    int64_t value = -1;
    EXPECT_OK(host_.take(table_.device_query_i64(device_, text("hal.cpu"), text(name), &known, &value)));
    EXPECT_EQ(known, 1) << name;
    EXPECT_EQ(value, static_cast<int64_t>(data[0] >> bit & 1)) << name;
  }
  EXPECT_FALSE(cpu_feature("sve"));
#endif
}

TEST_P(LibraryTest, NoWorkgroupsAndTooMany) {
  Executable executable = load_library("rev6");
  EXPECT_OK(dispatch(executable, {.function = 1, .x = 5, .y = 0, .constants = {9, 0}}));
  EXPECT_OK(dispatch(executable, {.function = 1, .z = 65535, .constants = {9, 1}}));
  EXPECT_FAILS(OUT_OF_RANGE, "65536", dispatch(executable, {.function = 1, .z = 65536, .constants = {9, 1}}));
}

TEST_P(LibraryTest, FailuresNameTheWorkgroup) {
  Executable executable = load_library("rev6");
  for (const uint32_t code : {1u, 7u, 0xFFFFFFFFu}) {
    expect_fails(Code::INTERNAL, {"'refuse'", fmt::format("{}", static_cast<int32_t>(code)), "321,0,0"},
                 dispatch(executable, {.function = 1, .x = 400, .constants = {code, 321}}));
  }
  EXPECT_OK(dispatch(executable, {.function = 1, .x = 400, .constants = {5, 400}}));
}

TEST_P(LibraryTest, WorkersHaveTheirOwnLocalMemory) {
  Executable executable = load_library("rev6");
  constexpr uint32_t kCount = 300;
  Memory memory = zeros(kCount);
  EXPECT_OK(dispatch(executable, {.function = 3, .x = kCount, .bindings = {range(memory, 0, 4 * kCount)}}));
  EXPECT_EQ(content<uint32_t>(memory, kCount), std::vector<uint32_t>(kCount, 7));
}

TEST_P(NativeTest, WorkgroupsOfSequentialFunctionsRunInOrder) {
  Executable executable = load_native("embedded", "rev6");
  constexpr uint32_t kCount = 40;
  Memory order = allocate(std::vector<uint32_t>(kCount, 99));
  Memory running = zeros(3);
  std::atomic<uint32_t> sharing = HALYARD_SHARING_UNKNOWN;
  host_.trace([&](const halyard_trace_span_t& span) { sharing = span.sharing; });
  EXPECT_OK(dispatch(
      executable,
      {.function = 4, .x = kCount, .bindings = {range(order, 0, 4 * kCount), range(running, 0, 12)}}));
  EXPECT_EQ(sharing, runs_in_caller() ? HALYARD_SHARING_ONE_THREAD : HALYARD_SHARING_SEQUENTIAL);
  std::vector<uint32_t> expected(kCount);
  for (uint32_t i = 0; i < kCount; ++i) expected[i] = i;
  EXPECT_EQ(content<uint32_t>(order, kCount), expected);
  EXPECT_EQ(content<uint32_t>(running, 3), (std::vector<uint32_t>{0, 0, kCount}));
}

TEST_P(LibraryTest, DenormalsAreFlushedWhileAFunctionRuns) {
#if !defined(__x86_64__) && !defined(__aarch64__)
  GTEST_SKIP() << "no such mode";
#endif
  Executable executable = load_library("rev6");
  const float smallest = 1.17549435e-38f;  // half of it is denormal
  const float denormal = 1e-39f;           // read as 0
  Memory from = allocate(std::vector<float>{smallest, denormal, 8.0f, -smallest, 1, 1, 1, 1});
  Memory to = allocate(std::vector<float>(8, 9.0f));
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  EXPECT_OK(dispatch(executable, {.function = 2, .bindings = {range(from, 0, 32), range(to, 0, 32)}}));
  EXPECT_EQ(std::fegetround(), FE_UPWARD) << "restored";
  std::fesetround(FE_TONEAREST);
  volatile float tiny = smallest;
  EXPECT_NE(tiny * 0.5f, 0.0f) << "restored";
  EXPECT_EQ(content<float>(to, 8), (std::vector<float>{0, 0, 4, 0, 0.5, 0.5, 0.5, 0.5}));
}

TEST_P(NativeTest, FunctionsReadReadOnlyBytes) {
  alignas(64) static const float constants[8] = {2, 4, 6, 8, 10, 12, 14, 16};
  Memory from = import_memory(constants, sizeof constants, HALYARD_MAP_READ);
  ASSERT_NE(from, nullptr);
  Memory to = allocate(32);
  Executable executable = load_native("embedded", "rev6");
  EXPECT_OK(dispatch(executable, {.function = 2, .bindings = {range(from, 0, 32), range(to, 0, 32)}}));
  EXPECT_EQ(content<float>(to, 8), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(NativeTest, AWarmDispatchAllocatesNothing) {
  if (!driver_tests::kCountsAllocations) GTEST_SKIP() << "under a sanitizer";
  if (!runs_in_caller()) GTEST_SKIP() << "workers come and go";
  Executable executable = load_native("embedded", "rev6");
  Memory from = allocate(std::vector<float>(8, 1));
  Memory to = allocate(32);
  const Dispatch d = {.function = 2, .bindings = {range(from, 0, 32), range(to, 0, 32)}};
  const halyard_command_dispatch_t recorded = command(executable, d);
  const halyard_operation_t result = dispatch_operation(&recorded);
  EXPECT_OK(run(result));
  const int64_t before = driver_tests::allocation_count().made;
  for (int i = 0; i < 10; ++i) EXPECT_OK(run(result));
  EXPECT_EQ(driver_tests::allocation_count().made, before);
}

// ---- Imports

TEST_P(LibraryTest, OptionalImportsMayBeMissing) {
  Executable executable = load_library("optional_import");
  EXPECT_EQ(record(executable)[kThunk], 1u);
  EXPECT_EQ(record(executable)[kFunction], 0u);
}

TEST_P(NativeTest, PluginsProvideImports) {
  const std::string empty = library_path("empty_plugin.so");
  for (const std::string& plugin :
       {library_path("plugin.so"), library_path("plugin.sos"), "embedded:" + library_path("plugin.sos")}) {
    const std::string adding = plugin + "&other=x&add=10&flag";
    for (const auto& [given, step] : {std::pair{plugin, 1u}, {adding, 10u}}) {
      reopen({{"plugin", empty}, {"plugin", given}});
      for (const char* kind : kLibraryKinds) {
        for (const char* name : {"required_import", "optional_import"}) {
          Executable executable = load_native(kind, name);
          EXPECT_EQ(record(executable)[kFunction], 1u);
          Memory words = allocate(std::vector<uint32_t>{1, 2, 3});
          EXPECT_OK(dispatch(executable, {.function = 5, .bindings = {range(words, 0, 12)}}));
          EXPECT_EQ(content<uint32_t>(words, 3), (std::vector<uint32_t>{1 + step, 2 + step, 3 + step}));
          destroy(executable);
        }
        EXPECT_FAILS(NOT_FOUND, "'add_two'", create_native(kind, "two_imports"));
        EXPECT_FAILS(DATA_LOSS, "plugin", create_native(kind, "broken_import"));
      }
    }
  }
}

TEST_P(NativeTest, PluginsThatCannotBeUsed) {
  const auto open_with = [&](const std::string& plugin, const char* native = "1") {
    halyard_driver_device_t device = nullptr;
    Outcome outcome = try_open(kind_, "", {{"plugin", plugin}, {"native", native}}, &device);
    EXPECT_EQ(device, nullptr);
    if (device) table_.device_close(device);
    EXPECT_NE(outcome.message().find(plugin.substr(0, plugin.find('&'))), std::string::npos)
        << outcome.text();
    return outcome;
  };
  EXPECT_CODE(NOT_FOUND, open_with("/nowhere/plugin.so"));
  EXPECT_CODE(NOT_FOUND, open_with("no-such-plugin.so")) << "the system's folders are not searched";
  EXPECT_CODE(NOT_FOUND, open_with("embedded:/nowhere/plugin.so"));
  EXPECT_CODE(FAILED_PRECONDITION, open_with(library_path("rev6.system.so"))) << "no plugin";
  EXPECT_CODE(FAILED_PRECONDITION, open_with(library_path("future_plugin.so")));
  for (const char* part : {"plugin", "header"})
    EXPECT_FAILS(FAILED_PRECONDITION, "a plugin of version 0; expected version 1",
                 open_with(library_path(fmt::format("plugin_without_{}.so", part))));
  for (const char* part : {"load", "unload", "resolve"})
    EXPECT_FAILS(FAILED_PRECONDITION, "it lacks one of its functions",
                 open_with(library_path(fmt::format("plugin_without_{}.so", part))));
  EXPECT_FAILS(UNAVAILABLE, "sanitizer 4 (undefined behavior)",
               open_with(library_path("sanitized_plugin.so")));
  EXPECT_CODE(FAILED_PRECONDITION, open_with(library_path("libraries.txt"))) << "no library";
  EXPECT_CODE(NOT_FOUND, open_with("embedded:/proc/self/mem")) << "a file that cannot be read";
  EXPECT_CODE(FAILED_PRECONDITION, open_with("embedded:" + library_path("libraries.txt")));
  EXPECT_CODE(RESOURCE_EXHAUSTED, open_with(library_path("plugin.so") + "&fail=8"));
  EXPECT_CODE(UNKNOWN, open_with(library_path("plugin.so") + "&fail=123456"));
  EXPECT_CODE(INVALID_ARGUMENT, open_with(library_path("plugin.so"), "0"));
}

// ---- Loaders

TEST_P(LibraryTest, InitializersRunOnce) {
  for (int i = 0; i < 2; ++i) {
    Executable executable = load_library("initializer");
    EXPECT_EQ(record(executable)[kCounter], 42u) << kind();
    EXPECT_EQ(record(executable)[kZeros], 1u);
  }
}

TEST_P(LibraryTest, DataAtAnyAlignmentWhichMayChangeLater) {
  const std::vector<uint8_t> data = bytes_of("rev6");
  for (const size_t shift : {0, 1, 7, 8}) {
    Executable executable = load_shifted(data, shift, format_);
    EXPECT_EQ(record(executable)[kCounter], 40u);
    destroy(executable);
  }
}

// The system's loader identifies libraries by name; it must not mistake a library for an earlier one.
TEST_P(LibraryTest, LibrariesComeAndGo) {
  for (int i = 0; i < 6; ++i) {
    const bool second = i % 2 != 0;
    Executable executable = load_library(second ? "initializer" : "rev6");
    EXPECT_EQ(record(executable)[kCounter], second ? 42u : 40u) << kind() << " " << i;
    destroy(executable);
  }
}

TEST_P(NativeTest, SystemLibrariesUseOtherLibraries) {
  Executable executable = nullptr;
  EXPECT_OK(create(library_bytes("outside.system.so"), &executable, format("system")));
  const std::vector<uint32_t> words = record(executable, 2);
  EXPECT_EQ(words[kOutside], 5u);
  EXPECT_EQ(words[kRecord + kOutside], 6u);
  // Built for the system's loader: without the table that embedded libraries need, or with external symbols.
  executable = nullptr;
  const Outcome outcome = create(library_bytes("outside.system.so"), &executable, format("embedded"));
  EXPECT_TRUE(outcome.code() == Code::FAILED_PRECONDITION || outcome.code() == Code::UNAVAILABLE)
      << outcome.text();
}

TEST_P(NativeTest, ADebugFooterIsNotPartOfTheLibrary) {
  std::vector<uint8_t> data = library("system", "rev6");
  const uint64_t size = data.size();
  data.insert(data.end(), 100, 0xDD);
  struct {
    char magic[8] = {'I', 'R', 'E', 'E', 'D', 'B', 'G', 0};
    uint32_t version = 0, flags = 0;
    uint64_t library_offset = 0, library_size = 0, debug_offset = 0, debug_size = 100;
  } footer;
  footer.library_size = footer.debug_offset = size;
  const auto with = [&] {
    std::vector<uint8_t> all = data;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&footer);
    all.insert(all.end(), bytes, bytes + sizeof footer);
    return all;
  };
  Executable executable = nullptr;
  EXPECT_OK(create(with(), &executable, format("system")));
  EXPECT_EQ(record(executable)[kCounter], 40u);
  executable = nullptr;
  footer.library_offset = 64;  // no ELF header there
  footer.library_size = 100;
  EXPECT_CODE(FAILED_PRECONDITION, create(with(), &executable, format("system")));
  footer.library_size = UINT64_MAX;
  EXPECT_CODE(FAILED_PRECONDITION, create(with(), &executable, format("system")));
}

TEST_P(NativeTest, AContainerWithSeveralArchitectures) {
  const std::vector<uint8_t> own = library("embedded", "rev6");
  const uint16_t machine = local::host_architecture()->machine;
  Executable executable = nullptr;
  EXPECT_OK(create(fat_elf({{0x1234}, {machine}}, {{1, 2, 3}, own}), &executable, format("embedded")));
  EXPECT_EQ(record(executable)[kCounter], 40u);
  executable = nullptr;
  EXPECT_CODE(INCOMPATIBLE, create(fat_elf({{0x1234}}, {own}), &executable, format("embedded")));
}

TEST_P(NativeTest, NoMemoryIsWritableAndExecutable) {
  Executable executable = load_native("embedded", "rev6");
  ASSERT_NE(executable, nullptr);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(" rwx"), std::string::npos) << line;
}

TEST_P(LibraryTest, DamagedLibrariesFailCleanly) {
  // Only libraries that are rejected before any of their code runs.
  const std::vector<uint8_t> data = bytes_of("rev6");
  for (const ptrdiff_t size : {0, 1, 15, 16, 63, 64, 100, 400})
    EXPECT_CODE(FAILED_PRECONDITION, create(std::vector(data.begin(), data.begin() + size), format_));
  EXPECT_CODE(FAILED_PRECONDITION, create(std::vector<uint8_t>(5000, 0x7F), format_));
  ElfWriter elf(local::host_architecture()->machine, "another_function");
  EXPECT_FAILS(FAILED_PRECONDITION, "iree_hal_executable_library_query",
               create(elf.build(), format("embedded")));
  // The name of data instead of code.
  elf.add_symbol("iree_hal_executable_library_query", ElfWriter::kDataAddress);
  EXPECT_CODE(FAILED_PRECONDITION, create(elf.build(), format("embedded")));
  // An initializer whose relocation refers to no function.
  elf[DT_INIT_ARRAY] = ElfWriter::kDataAddress;
  elf[DT_INIT_ARRAYSZ] = 8;
  EXPECT_CODE(FAILED_PRECONDITION, create(elf.build(), format("embedded")));
}

#if defined(__x86_64__)
TEST_P(NativeTest, ALibraryThatAnswersNull) {
  ElfWriter elf(EM_X86_64, "iree_hal_executable_library_query");  // its code returns null
  EXPECT_FAILS(FAILED_PRECONDITION, "revision 6 nor 5", create(elf.build(), format("embedded")));
  // An alignment larger than a page, and addresses far from 0.
  for (Elf64_Phdr& program : elf.programs) program.p_align = std::max<uint64_t>(program.p_align, 0x1000);
  elf.programs[ElfWriter::kReadOnly].p_align = 0x40000;
  EXPECT_CODE(FAILED_PRECONDITION, create(elf.build(), format("embedded")));
}
#endif

}  // namespace
}  // namespace halyard::local_tests
