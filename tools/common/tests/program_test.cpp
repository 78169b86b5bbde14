// Programs from flags: options of instances, modules and contexts, the function that is called.
#include "common/program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "common/program_flags.h"
#include "common/ranks.h"
#include "fixtures.h"
#include "in_child.h"

namespace halyard::tools {
namespace {

constexpr const Flag* kRunFlags[] = {&flag::capture, &flag::print_stats};
constexpr FlagGroup kProgramGroups[] = {
    {"Program", kProgramFlags},
    {"Loading", kLoadingFlags},
    {"Devices", kDeviceFlags},
    {"Ranks", kRankFlags},
    {"", kRunFlags},
};
constexpr ToolDescription kProgramTool = {"tool", "tool", "A tool.", kProgramGroups, ""};

Flags parsed_flags(const std::vector<std::string>& words) {
  std::vector<const char*> arguments = {"tool"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return Flags::parse(kProgramTool, static_cast<int>(arguments.size()), arguments.data()).value();
}

template <typename T>
std::string failure_of(const Result<T>& result) {
  return result ? "no failure" : result.error().text;
}

#define EXPECT_IN(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class Programs : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"XDG_CACHE_HOME", "HOME"})
      if (const char* const value = std::getenv(name)) before_.emplace_back(name, value);
  }
  void TearDown() override {
    for (const char* name : {"XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::string module(std::string_view name, std::string_view text) { return folder_.write(name, text); }
  Instance instance() {
    return Instance::create({.flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS})
        .value();
  }

  const TemporaryFolder folder_;
  std::vector<std::pair<std::string, std::string>> before_;
};

constexpr std::string_view kTwoFunctions = R"(
vm.module @two
vm.export @first
vm.export @second
vm.func @first() -> (i32) {
  %i0 = vm.const.i32 1
  vm.return %i0
}
vm.func @second() -> (i32) {
  %i0 = vm.const.i32 2
  vm.return %i0
}
)";

TEST_F(Programs, CompiledCodeIsKeptInTheUsersFolder) {
  ::setenv("XDG_CACHE_HOME", "/caches", 1);
  ::setenv("HOME", "/home/user", 1);
  const auto cache = [](std::vector<std::string> words) {
    words.emplace_back("--jit=always");
    return instance_options(parsed_flags(words)).jit_cache;
  };
  EXPECT_EQ(cache({}), "/caches/halyard/jit");
  EXPECT_EQ(cache({"--jit_cache=/mine"}), "/mine");
  EXPECT_EQ(cache({"--jit_cache="}), "");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache({}), "/home/user/.cache/halyard/jit");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache({}), "/home/user/.cache/halyard/jit");
  ::setenv("HOME", "relative", 1);
  EXPECT_EQ(cache({}), "");
  ::unsetenv("HOME");
  EXPECT_EQ(cache({}), "");
  EXPECT_EQ(instance_options(parsed_flags({"--jit=off", "--jit_cache=/mine"})).jit_cache, "");
}

TEST_F(Programs, TheCompilerIsUsedAsTheFlagsSay) {
  constexpr uint32_t kJit =
      HALYARD_INSTANCE_JIT_AUTO | HALYARD_INSTANCE_JIT_ALWAYS | HALYARD_INSTANCE_JIT_FAST_MATH;
  const auto jit = [](const std::vector<std::string>& words) {
    return instance_options(parsed_flags(words)).flags & kJit;
  };
  EXPECT_EQ(jit({"--jit=off"}), 0u);
  EXPECT_EQ(jit({"--jit=always"}), HALYARD_INSTANCE_JIT_ALWAYS);
  EXPECT_EQ(jit({"--jit=always", "--jit_math=fast"}),
            uint32_t{HALYARD_INSTANCE_JIT_ALWAYS} | HALYARD_INSTANCE_JIT_FAST_MATH);
  EXPECT_EQ(jit({"--untrusted"}), 0u);
  EXPECT_EQ(jit({"--untrusted", "--jit=always"}), HALYARD_INSTANCE_JIT_ALWAYS);
  const uint32_t automatic = find_compiler() ? uint32_t{HALYARD_INSTANCE_JIT_AUTO} : 0u;
  EXPECT_EQ(jit({}), automatic);
  EXPECT_EQ(jit({"--jit=auto"}), automatic);
}

TEST_F(Programs, ModulesAreLoadedAsTheFlagsSay) {
  const auto options = [](const std::vector<std::string>& words) {
    return *module_options(parsed_flags(words));
  };
  EXPECT_EQ(options({}), uint32_t{HALYARD_MODULE_NATIVE} | HALYARD_MODULE_PRELOAD);
  EXPECT_EQ(options({"--module_mode=mmap"}), uint32_t{HALYARD_MODULE_NATIVE});
  EXPECT_EQ(options({"--module_mode=mmap", "--verify=eager"}),
            uint32_t{HALYARD_MODULE_NATIVE} | HALYARD_MODULE_VERIFY_EAGERLY);
  EXPECT_EQ(options({"--untrusted", "--module_mode=mmap"}), 0u);
}

TEST_F(Programs, AMissingModuleHasASuggestion) {
  EXPECT_EQ(*module_paths(parsed_flags({"--module=a", "--module=b"})), (std::vector<std::string>{"a", "b"}));
  EXPECT_IN(failure_of(module_paths(parsed_flags({"a.vmfb"}))), "did you mean --module=a.vmfb?");
  EXPECT_IN(failure_of(module_paths(parsed_flags({}))), "name one with --module=FILE");
}

TEST_F(Programs, NativeModulesAreRefusedInTermsOfTheFlag) {
  const std::string library = folder_.write("module.so", "\177ELF");
  const Instance own = instance();
  EXPECT_IN(failure_of(load_module(parsed_flags({"--untrusted"}), own, library)), "remove --untrusted");
  EXPECT_EQ(failure_of(load_module(parsed_flags({}), own, library)).find("--untrusted"), std::string::npos);
  EXPECT_IN(failure_of(load_module(parsed_flags({}), own, "/nonexistent.vmfb")), "/nonexistent.vmfb");
}

TEST_F(Programs, TheOnlyFunctionIsChosen) {
  const Instance own = instance();
  const auto chosen = [&](std::string_view text, const std::vector<std::string>& words) {
    const Module loaded = load_module(parsed_flags({}), own, module("m.vmasm", text)).value();
    const Result<std::string> name = chosen_function(parsed_flags(words), loaded);
    return name ? *name : name.error().text;
  };
  EXPECT_EQ(chosen(kTwoFunctions, {"--function=second"}), "second");
  EXPECT_EQ(chosen(kTwoFunctions, {"--function=third"}), "third") << "looked up when it is called";
  EXPECT_EQ(chosen(kTwoFunctions, {}),
            "module 'two' exports several functions: first, second; select one with --function=NAME");
  EXPECT_EQ(chosen(kTwoFunctions, {"--function="}), chosen(kTwoFunctions, {}));
  // Initializers and the second form of asynchronous functions are not for callers.
  std::string one(kTwoFunctions);
  for (size_t at = 0; (at = one.find("@second", at)) != std::string::npos; ++at)
    one.replace(at, 7, "@__second");
  EXPECT_EQ(chosen(one, {}), "first");
  EXPECT_IN(chosen("vm.module @none\nvm.func @f() -> () {\n vm.return\n}\n", {}),
            "module 'none' exports no function that can be called");
}

TEST_F(Programs, AFunctionIsDescribedByItsName) {
  const Module two = load_module(parsed_flags({}), instance(), module("m.vmasm", kTwoFunctions)).value();
  EXPECT_EQ(view(describe(two, "second")->name), "second");
  EXPECT_EQ(failure_of(describe(two, "third")), "no function 'third' in module 'two'");
  EXPECT_FALSE(describe(two, ""));
}

TEST_F(Programs, ContextsHaveTheOptionsOfTheFlags) {
  Program program;
  const ContextOptions usual = context_options(parsed_flags({}), program).value();
  EXPECT_EQ(usual.flags & HALYARD_CONTEXT_PRELOAD_PARAMETERS, 0u);
  EXPECT_EQ(usual.max_memory, 0u);
  EXPECT_EQ(usual.max_time, std::chrono::nanoseconds(0));
  EXPECT_EQ(usual.lead_device, 0u);
  const ContextOptions given =
      context_options(
          parsed_flags({"--parameters=model=a=b.irpa", "--parameters=c.irpa", "--parameter_mode=preload",
                        "--max_memory=1MiB", "--timeout=2s", "--capture=c.hycap"}),
          program)
          .value();
  ASSERT_EQ(given.parameters.size(), 2u);
  EXPECT_EQ(given.parameters[0].scope, "model");
  EXPECT_EQ(given.parameters[0].path, "a=b.irpa");
  EXPECT_EQ(given.parameters[1].scope, "");
  EXPECT_EQ(given.parameters[1].path, "c.irpa");
  EXPECT_NE(given.flags & HALYARD_CONTEXT_PRELOAD_PARAMETERS, 0u);
  EXPECT_EQ(given.max_memory, uint64_t{1} << 20);
  EXPECT_EQ(given.max_time, std::chrono::seconds(2));
  EXPECT_EQ(given.capture_path, "c.hycap");
  program.warnings = nullptr;
  EXPECT_FALSE(context_options(parsed_flags({}), program)->warning) << "nobody asks for warnings";
  EXPECT_IN(failure_of(context_options(parsed_flags({"--timeout=soon"}), program)), "--timeout");
  EXPECT_IN(failure_of(context_options(parsed_flags({"--max_memory=much"}), program)), "--max_memory");
  EXPECT_IN(failure_of(context_options(parsed_flags({"--rank=x"}), program)), "--rank");
}

TEST_F(Programs, LoadersHaveTheOptionsOfLocalDevices) {
  const auto settings = [](const std::vector<std::string>& words, bool is_profiled = false) {
    Program program;
    program.is_profiled = is_profiled;
    std::string text;
    const ContextOptions options = context_options(parsed_flags(words), program).value();
    for (const auto& [key, value] : options.loader_settings) text += key + "=" + value + " ";
    return text;
  };
  EXPECT_EQ(settings({"--jit=off"}), "jit=off ");
  EXPECT_EQ(settings({"--jit=always", "--jit_cache=/c", "--jit_math=fast"}),
            "jit=always jit_cache=/c jit_math=fast ");
  EXPECT_EQ(settings({"--jit=off"}, true), "jit=off profile=1 ");
  EXPECT_EQ(settings({"--jit=off", "--allow_native=no"}), "jit=off native=0 ");
  EXPECT_EQ(settings({"--untrusted"}), "jit=off native=0 ");
  EXPECT_EQ(settings({"--jit=off", "--executable_plugin=a.so", "--executable_plugin=b.so"}),
            "jit=off plugin=a.so plugin=b.so ");
}

TEST_F(Programs, TheLeadDeviceMustBeThere) {
  Program program;
  EXPECT_IN(failure_of(context_options(parsed_flags({"--device_lead_allocator=0"}), program)),
            "expected the index of a --device, counted from 0; there are 0");
  program.devices.emplace_back();
  EXPECT_EQ(context_options(parsed_flags({"--device_lead_allocator=0"}), program)->lead_device, 1u);
  EXPECT_IN(failure_of(context_options(parsed_flags({"--device_lead_allocator=1"}), program)), "there is 1");
  EXPECT_IN(failure_of(context_options(parsed_flags({"--device_lead_allocator=-1"}), program)),
            "--device_lead_allocator");
  program.devices.clear();
}

TEST_F(Programs, TheWorkersAreThoseOfTheFlagsOrOfTheMachine) {
  const auto dumped = [](const std::vector<std::string>& words) {
    return in_child([&] {
      const Result<> done = dump_workers(parsed_flags(words));
      return done ? std::string() : done.error().text;
    });
  };
  EXPECT_IN(dumped({"--task_topology_group_count=3"}), "--device=local-task?workers=3\n");
  EXPECT_IN(dumped({"--task_topology_group_count=3", "--task_topology_max_group_count=1"}), "?workers=3\n");
  EXPECT_IN(dumped({"--task_topology_max_group_count=1"}), "?workers=1\n");
  EXPECT_EQ(dumped({"--task_topology_max_group_count=100000"}), dumped({}));
  EXPECT_IN(dumped({"--task_topology_group_count=x"}), "--task_topology_group_count");
  EXPECT_IN(dumped({"--task_topology_max_group_count=x"}), "--task_topology_max_group_count");
}

TEST_F(Programs, TracesNeedAName) {
  Program unnamed;
  EXPECT_IN(failure_of(make_instance(parsed_flags({"--trace="}), unnamed)),
            "--trace needs the name of a file");
  Program nowhere;
  EXPECT_IN(failure_of(make_instance(parsed_flags({"--trace=/nonexistent/t"}), nowhere)), "/nonexistent/t");
  Program refused;
  EXPECT_IN(failure_of(make_instance(parsed_flags({"--untrusted", "--executable_plugin=a.so"}), refused)),
            "--untrusted");
  Program traced;
  const std::string file = folder_ / "run.perfetto";
  EXPECT_TRUE(make_instance(parsed_flags({"--trace=" + file, "--print_stats"}), traced));
  EXPECT_TRUE(traced.trace);
  ASSERT_TRUE(traced.phases);
  {
    const Phase phase(traced, "wait");
  }
  ASSERT_EQ(traced.phases->size(), 1u);
  EXPECT_EQ(traced.phases->front().name, "wait");
  Program profiled;
  profiled.is_profiled = true;
  EXPECT_TRUE(make_instance(parsed_flags({}), profiled));
  EXPECT_TRUE(profiled.trace) << "a profile reads a trace";
  EXPECT_FALSE(profiled.phases);
}

TEST_F(Programs, AProgramWithoutDevicesHasNone) {
  Program program;
  const Flags flags = parsed_flags({"--module=" + module("m.vmasm", kTwoFunctions), "--jit=off"});
  ASSERT_TRUE(make_instance(flags, program));
  ASSERT_TRUE(load_modules(flags, program));
  ASSERT_TRUE(open_devices(flags, program));
  EXPECT_TRUE(program.devices.empty());
  EXPECT_FALSE(program.device());
  EXPECT_TRUE(print_warnings(program, "tool"));
  EXPECT_TRUE(print_statistics(program));
  ASSERT_TRUE(make_context(flags, program));
  EXPECT_TRUE(program.context);
}

}  // namespace
}  // namespace halyard::tools
