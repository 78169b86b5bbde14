// Linking: dependencies, imports, __init and __deinit. Specified by module-format.md, sections 5, 7, 8
// and 10.
#include "vm/run/context.h"

#include "machine_testing.h"
#include "module_builder.h"
#include "vm/compile/loaded_module.h"

namespace halyard::vm::test {
namespace {

const char* const kLibrary = R"(
vm.module @lib version 3
vm.func @value() -> (i32) {
  %i0 = vm.const.i32 VALUE
  vm.return %i0
}
)";

std::string library(const std::string& value) {
  std::string text = kLibrary;
  return text.replace(text.find("VALUE"), 5, value);
}

std::string importer(const std::string& name, const std::string& import) {
  return fmt::format(R"(
vm.module @{}
vm.import {}
vm.func @f() -> () {{
  vm.return
}}
)",
                     name, import);
}

TEST(Imports, NamesSplitAtTheFirstDot) {
  Machine machine("vm.module @a\nvm.export @b.c\nvm.func @b.c() -> () {\n vm.return\n}\n");
  EXPECT_TRUE(machine.try_add(importer("m", "@a.b.c cconv \"0v_v\"")));
  for (const char* name : {"@plain", "@.f", "@a."}) {
    for (const char* optional : {"", "optional "}) {
      EXPECT_FAILS(INVALID_ARGUMENT, "",
                   machine.try_add(importer("bad", fmt::format("{}{} cconv \"0v_v\"", optional, name))));
    }
  }
}

TEST(Imports, FailuresNameWhatIsThere) {
  Machine machine(library("1"));
  const auto failure = [&](const std::string& import) { return machine.try_add(importer("m", import)); };
  EXPECT_FAILS(
      NOT_FOUND,
      "module 'lob', which import 'lob.value' needs, is not loaded; load it first; did you mean 'lib'?",
      failure("@lob.value cconv \"0v_i\""));
  EXPECT_TRUE(
      failure("@lob.value cconv \"0v_i\"").error().text().ends_with("; linking the imports of module 'm'"));
  EXPECT_FAILS(NOT_FOUND, "did you mean 'value'?", failure("@lib.valeu cconv \"0v_i\""));
  // Strings must be equal, even if they have the same meaning, and even for optional imports.
  EXPECT_FAILS(INCOMPATIBLE, "", failure("@lib.value cconv \"0_i\""));
  EXPECT_FAILS(INCOMPATIBLE, "", failure("optional @lib.value cconv \"0i_i\""));
  EXPECT_EQ(machine.context->modules().size(), 1u);
}

TEST(Imports, TheNewestModuleOfANameProvides) {
  Machine machine(library("1"));
  machine.add(library("2"));
  machine.add(R"(
vm.module @m
vm.import @lib.value cconv "0v_i"
vm.func @f() -> (i32) {
  %i0 = vm.call @lib.value()
  vm.return %i0
}
)");
  machine.expect("m.f", {}, {i32(2)});
  machine.expect("lib.value", {}, {i32(2)});
}

// Calls of an import that states no signature are checked against the provider's.
TEST(Imports, UnstatedSignaturesAreCheckedWhenLinked) {
  Machine machine("vm.module @lib\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n vm.return %i0\n}\n");
  const auto caller = [](const char* call) {
    return fmt::format(R"(
vm.module @m
vm.import @lib.f cconv ""
vm.func @g(%i0: i32) -> (i32) {{
  {}
  vm.return %i1
}}
)",
                       call);
  };
  machine.add(caller("%i1 = vm.call @lib.f(%i0)"));
  machine.expect("g", {i32(5)}, {i32(5)});
  for (const char* call : {"%i1 = vm.call @lib.f()", "vm.call @lib.f(%i0)", "%i1 = vm.call @lib.f(%r0)"}) {
    EXPECT_FALSE(machine.try_add(caller(call))) << call;
  }
}

TEST(Imports, SignaturesBeyondTheLimitAreRefused) {
  Machine machine;
  for (const size_t count : {2048u, 2049u}) {
    ModuleParts parts;
    parts.name = "lib";
    parts.exports.emplace_back("f", 0);
    const std::string convention = "0" + std::string(count, 'I') + "_v";
    parts.functions.push_back({CodeBuilder().block().ret().bytes(), convention, 8192, 0});
    machine.add(parts.build());
    const Result<> added = machine.try_add(importer("m", fmt::format("@lib.f cconv \"{}\"", convention)));
    EXPECT_TRUE(count == 2048 ? succeeds(added) : fails_with(added, Code::INVALID_ARGUMENT, "")) << count;
  }
}

TEST(Dependencies, VersionsAndFlags) {
  enum : uint32_t { kNone = 0, kRequired = 1, kOptional = 2 };
  struct Case {
    const char* name;
    uint32_t version;
    uint32_t flags;
    const char* failure;
  };
  const Case cases[] = {
      {"lib", 3, kRequired, nullptr},
      {"lib", 4, kRequired, "module 'lib' has version 3; expected 4 or later"},
      {"lib", 4, kNone, nullptr},
      {"lib", 4, kOptional, nullptr},
      {"lib", 4, kOptional | kRequired, "module 'lib' has version 3; expected 4 or later"},
      {"other", 0, kRequired, "module 'other', which this module depends on, is not loaded"},
      {"other", 0, kNone, "module 'other', which this module depends on, is not loaded"},
      {"other", 0, kOptional, nullptr},
  };
  Machine machine(library("1"));
  for (const Case& each : cases) {
    ModuleParts parts;
    parts.dependencies = {{each.name, each.version, each.flags}};
    parts.functions.emplace_back();
    const auto module = ASSERT_VALUE(LoadedModule::load(Bytes::own(parts.build()), machine.types));
    const Result<> added = machine.context->add(module);
    EXPECT_TRUE(each.failure ? fails_with(added, Code::NOT_FOUND, each.failure) : succeeds(added))
        << each.name << each.version << " " << each.flags;
  }
}

// If modules share a name, dependencies refer to the oldest.
TEST(Dependencies, TheOldestModuleCounts) {
  Machine machine("vm.module @lib version 1\nvm.func @f() -> () {\n vm.return\n}\n");
  machine.add(library("1"));
  ModuleParts parts;
  parts.dependencies = {{"lib", 2, 1}};
  parts.functions.emplace_back();
  const auto module = ASSERT_VALUE(LoadedModule::load(Bytes::own(parts.build()), machine.types));
  EXPECT_FAILS(NOT_FOUND, "", machine.context->add(module));
}

// A native module that logs its calls.
Result<> log_number(std::vector<int32_t>& log, int32_t number) {
  log.push_back(number);
  return {};
}

std::string logging_module(const std::string& name, int init, int deinit,
                           const std::string& after_init = "") {
  return fmt::format(R"(
vm.module @{}
vm.import @log.number cconv "0i_v"
vm.func @__init() -> () {{
  %i0 = vm.const.i32 {}
  vm.call @log.number(%i0)
  {}
  vm.return
}}
vm.func @__deinit() -> () {{
  %i0 = vm.const.i32 {}
  vm.call @log.number(%i0)
  vm.fail %i0, "ignored"
}}
)",
                     name, init, after_init, deinit);
}

TEST(Lifetime, InitInOrderDeinitInReverse) {
  std::vector<int32_t> log;
  Machine machine;
  machine.add_native("log", {{"number", convention_of<&log_number>, bind<&log_number>}}, &log);
  machine.add(logging_module("a", 1, 11));
  machine.add(logging_module("b", 2, 12));
  EXPECT_EQ(log, (std::vector<int32_t>{1, 2}));
  machine.context = nullptr;
  EXPECT_EQ(log, (std::vector<int32_t>{1, 2, 12, 11}));
}

// An __init can use the results of earlier modules' __init; a __deinit still can.
TEST(Lifetime, InitAndDeinitMayCallModulesBefore) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    std::vector<int32_t> log;
    Machine machine;
    machine.add_native("log", {{"number", convention_of<&log_number>, bind<&log_number>}}, &log);
    machine.add(R"(
vm.module @a
vm.global.i32 mutable @count
vm.func @__init() -> () {
  %i0 = vm.const.i32 40
  vm.global.store.i32 %i0, @count
  vm.return
}
vm.func @next() -> (i32) {
  %i0 = vm.global.load.i32 @count
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @count
  vm.return %i0
}
)",
                version);
    for (const char* name : {"b", "c"}) {
      machine.add(fmt::format(R"(
vm.module @{}
vm.import @log.number cconv "0i_v"
vm.import @a.next cconv "0v_i"
vm.func @__init() -> () {{
  %i0 = vm.call @a.next()
  vm.call @log.number(%i0)
  vm.return
}}
vm.func @__deinit() -> () {{
  %i0 = vm.call @a.next()
  vm.call @log.number(%i0)
  vm.return
}}
)",
                              name),
                  version);
    }
    EXPECT_EQ(log, (std::vector<int32_t>{41, 42}));
    machine.context = nullptr;
    EXPECT_EQ(log, (std::vector<int32_t>{41, 42, 43, 44}));
  }
}

// Both are optional. Any empty signature is accepted, another is not.
TEST(Lifetime, SpecialFunctionsTakeNothing) {
  for (const char* convention : {"", "0", "0_", "0v", "0v_v", "0_v"}) {
    Machine machine;
    ModuleParts parts;
    parts.functions.push_back({.convention = convention});
    parts.exports = {{"__init", 0}, {"__deinit", 0}};
    const auto module = LoadedModule::load(Bytes::own(parts.build()), machine.types);
    ASSERT_TRUE(module) << convention;
    EXPECT_TRUE(machine.context->add(*module)) << convention;
  }
  Machine machine;
  ModuleParts parts;
  parts.functions.push_back({.convention = "0i_v", .values = 1});
  parts.exports = {{"__init", 0}};
  const auto module = ASSERT_VALUE(LoadedModule::load(Bytes::own(parts.build()), machine.types));
  EXPECT_FAILS(INVALID_ARGUMENT, "", machine.context->add(module));
}

TEST(Lifetime, AFailingInitTakesTheModuleOutAgain) {
  std::vector<int32_t> log;
  Machine machine;
  machine.add_native("log", {{"number", convention_of<&log_number>, bind<&log_number>}}, &log);
  EXPECT_FAILS(
      PERMISSION_DENIED, "in the call of function '__init'",
      machine.try_add(logging_module(
          "a", 1, 11, "vm.br ^bb1\n^bb1:\n %i0 = vm.const.i32 7\n vm.fail %i0, \"not today\"\n^bb2:")));
  EXPECT_EQ(log, (std::vector<int32_t>{1, 11}));
  EXPECT_EQ(machine.context->modules().size(), 1u);
  EXPECT_FAILS(NOT_FOUND, "", machine.context->find("a", "f"));
}

TEST(Lifetime, StatesAreDestroyedInReverse) {
  static std::vector<int> destroyed;  // accessible to `destroy`, a plain function
  destroyed.clear();
  static int numbers[] = {0, 1, 2};
  Machine machine;
  for (int& number : numbers) {
    const auto create = [&number]() -> Result<NativeState> {
      return NativeState{.pointer = &number,
                         .destroy = [](void* state) { destroyed.push_back(*static_cast<int*>(state)); }};
    };
    ASSERT_TRUE(machine.context->add(
        NativeModule::create({.name = fmt::format("m{}", number), .exports = {}, .create_state = create})));
  }
  machine.context = nullptr;
  EXPECT_EQ(destroyed, (std::vector<int>{2, 1, 0}));
}

TEST(Lifetime, AStateThatCannotBeMadeKeepsTheModuleOut) {
  Machine machine;
  const Result<> added = machine.context->add(
      NativeModule::create({.name = "m", .exports = {}, .create_state = []() -> Result<NativeState> {
                              return fail(Code::UNAVAILABLE, "no");
                            }}));
  EXPECT_FAILS(UNAVAILABLE, "", added);
  EXPECT_TRUE(machine.context->modules().empty());
  EXPECT_FAILS(INVALID_ARGUMENT, "", machine.context->add(nullptr));
}

TEST(Lifetime, ContextsOfOneModuleShareNothingButConstants) {
  TypeRegistry types;
  const auto bytes = ASSERT_VALUE(assemble(R"(
vm.module @m
vm.rodata[0] = 01
vm.global.i32 mutable @g
vm.export @count
vm.export @constant
vm.func @count() -> (i32) {
  %i0 = vm.global.load.i32 @g
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @g
  vm.return %i0
}
vm.func @constant() -> (!vm.buffer) {
  %r0 = vm.const.ref.rodata 0
  vm.return %R0
}
)",
                                           {17, "t"}));
  const auto module = ASSERT_VALUE(LoadedModule::load(Bytes::copy(bytes), types));
  Machine first;
  Machine second;
  ASSERT_TRUE(first.context->add(module));
  ASSERT_TRUE(second.context->add(module));
  first.expect("count", {}, {i32(1)});
  first.expect("count", {}, {i32(2)});
  second.expect("count", {}, {i32(1)});
  EXPECT_EQ((*first.call("constant"))[0].object(), (*second.call("constant"))[0].object());
}

TEST(Find, NamesNearOnes) {
  Machine machine(library("1"));
  EXPECT_TRUE(machine.context->find("lib", "value"));
  EXPECT_FAILS(NOT_FOUND, "did you mean 'value'?", machine.context->find("lib", "valeu"));
  EXPECT_FAILS(NOT_FOUND, "did you mean 'lib'?", machine.context->find("lbi", "value"));
}

}  // namespace
}  // namespace halyard::vm::test
