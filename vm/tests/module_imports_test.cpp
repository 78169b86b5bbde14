// Native modules that import functions of other modules: calls, waits with data that is kept, the stop word,
// and definitions that are refused.
#include <thread>

#include "native_definition.h"
#include "vm/native/module_services.h"
#include "vm/object/value.h"

namespace halyard::vm::test {
namespace {

halyard_module_import_t import(const char* name, const char* convention, uint32_t flags = 0) {
  return {name, convention, flags, 0};
}

// A definition of module `importer` with these functions and imports.
struct Importer : Definition {
  Importer(std::vector<halyard_module_export_t> exported, std::vector<halyard_module_import_t> imported)
      : Definition(std::move(exported)), list(std::move(imported)) {
    name = "importer";
    imports = list.data();
    import_count = static_cast<uint32_t>(list.size());
    import_size = sizeof(halyard_module_import_t);
    dependency_size = sizeof(halyard_module_dependency_t);
  }
  Result<> try_add(Machine& machine) const {
    Ref<NativeModule> module = HALYARD_TRY(create_native_module(this, {}, machine.types));
    return machine.context->add(module);
  }
  std::vector<halyard_module_import_t> list;
};

// The call of import 0 with the arguments, results and spans of `call`.
halyard_import_call_t same_call(const halyard_module_call_t* call, uint32_t flags) {
  return {.struct_size = sizeof(halyard_import_call_t),
          .import = 0,
          .flags = flags | (call->resumed ? uint32_t{HALYARD_CALL_RESUMED} : 0u),
          .deferred = 0,
          .argument_count = call->argument_count,
          .result_count = call->result_count,
          .span_count = call->span_count,
          .reserved = 0,
          .arguments = call->arguments,
          .results = call->results,
          .spans = call->spans};
}

template <uint32_t kFlags>
halyard_status_t pass_on(void*, halyard_module_call_t* call) {
  halyard_import_call_t inner = same_call(call, kFlags);
  const halyard_status_t status = call->services->import_call(call, &inner);
  if (!status) call->deferred = inner.deferred;
  return status;
}
constexpr uint32_t kWaits = HALYARD_CALL_MAY_WAIT;

constexpr char kBytecode[] = R"(
vm.module @m
vm.func @mix(%i0: i32, %i2:3: i64, %i4: f32, %i6:7: f64, %r0: !test.thing) -> (!test.thing, f64, f32, i64, i32) {
  vm.return %R0, %i6:7, %i4, %i2:3, %i0
}
vm.func @fails(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 3
  vm.fail %i1, "no such luck"
^bb1:
  vm.return %i0
}
)";

TEST(ModuleImports, PassValuesToBytecodeAndBack) {
  Machine machine(kBytecode);
  ASSERT_OK(
      Importer({frame("f", "0iIfFr_rFfIi", pass_on<0>)}, {import("m.mix", "0iIfFr_rFfIi")}).try_add(machine));
  const Variant thing = machine.thing();
  machine.expect("importer.f", {i32(-7), i64(INT64_C(1) << 40), f32(1.5), f64(-0.0), thing},
                 {thing, f64(-0.0), f32(1.5), i64(INT64_C(1) << 40), i32(-7)});
  machine.expect("importer.f", {i32(0), i64(0), f32(0), f64(0), null()},
                 {null(), f64(0), f32(0), i64(0), i32(0)});
  EXPECT_TRUE(thing.object()->unique());
}

// From bytecode to a native module to another one.
TEST(ModuleImports, PassValuesToNativeModules) {
  Machine machine;
  Definition provider({frame("weighted", "0iCIiD_I", [](void*, halyard_module_call_t* call) {
    int64_t sum = call->arguments[0].i32;
    for (uint32_t i = 0; i < call->spans[0]; ++i)
      sum += call->arguments[1 + 2 * i].i64 * call->arguments[2 + 2 * i].i32;
    call->results[0].i64 = sum;
    return halyard_status_t{};
  })});
  add_module(machine, provider);
  ASSERT_OK(Importer({frame("f", "0iCIiD_I", pass_on<0>)}, {import("native.weighted", "")}).try_add(machine));
  std::string many = "%i0";
  for (int i = 0; i < 200; ++i) many += ", %i2:3, %i0";
  machine.add(fmt::format(R"(
vm.module @top
vm.import @importer.f cconv "0iCIiD_I"
vm.export @few
vm.export @many
vm.func @few(%i0: i32, %i2:3: i64) -> (i64, i64) {{
  %i4:5 = vm.call.variadic @importer.f segments[65535, 2](%i0, %i2:3, %i0, %i2:3, %i0)
  %i6:7 = vm.call.variadic @importer.f segments[65535, 0](%i0)
  vm.return %i4:5, %i6:7
}}
vm.func @many(%i0: i32, %i2:3: i64) -> (i64) {{
  %i4:5 = vm.call.variadic @importer.f segments[65535, 200]({})
  vm.return %i4:5
}}
)",
                          many));
  machine.expect("few", {i32(3), i64(INT64_C(1) << 33)}, {i64(3 + 6 * (INT64_C(1) << 33)), i64(3)});
  machine.expect("many", {i32(3), i64(5)}, {i64(3 + 200 * 15)});
}

TEST(ModuleImports, FailuresHaveTheirPlaces) {
  Machine machine(kBytecode);
  ASSERT_OK(Importer({frame("f", "0i_i", pass_on<0>)}, {import("m.fails", "0i_i")}).try_add(machine));
  const std::string text =
      machine.expect_failure("importer.f", {i32(1)}, Code::INVALID_ARGUMENT, "no such luck; at m.fails+");
  EXPECT_NE(text.find("called as an import; in native function importer.f"), std::string::npos) << text;
}

TEST(ModuleImports, MayBeMissing) {
  constexpr auto ask = [](void*, halyard_module_call_t* call) {
    call->results[0].i32 = static_cast<int32_t>(call->services->import_is_resolved(call, 0) +
                                                2 * call->services->import_is_resolved(call, 1) +
                                                4 * call->services->import_is_resolved(call, 2));
    return halyard_status_t{};
  };
  Machine machine(kBytecode);
  ASSERT_OK(Importer({frame("ask", "0v_i", ask), frame("f", "0v_v", pass_on<0>)},
                     {import("m.nothing", "0v_v", HALYARD_IMPORT_OPTIONAL), import("m.fails", "0i_i")})
                .try_add(machine));
  machine.expect("importer.ask", {}, {i32(2)});
  machine.expect_failure("importer.f", {}, Code::NOT_FOUND,
                         "optional import 'm.nothing' of module 'importer' is not resolved");
  EXPECT_FAILS(NOT_FOUND, "no function 'nothing' in module 'm'",
               Importer({}, {import("m.nothing", "0v_v")}).try_add(machine));
  EXPECT_FAILS(INCOMPATIBLE, "0i_i", Importer({}, {import("m.fails", "0I_I")}).try_add(machine));
}

TEST(ModuleImports, CallsThatDoNotFitAreRefused) {
  Machine machine(kBytecode);
  constexpr auto wrong = [](void*, halyard_module_call_t* call) {
    halyard_import_call_t inner = same_call(call, 0);
    halyard_value_t value = {};
    value.kind = HALYARD_VALUE_F32;
    switch (call->arguments[0].i32) {
      case 0:
        inner.struct_size = 8;
        break;
      case 1:
        inner.flags = 64;
        break;
      case 2:
        inner.import = 5;
        break;
      case 3:
        inner.argument_count = 2;
        break;
      case 4:
        inner.result_count = 0;
        break;
      case 5:
        inner.span_count = 1;
        break;
      case 6:
        inner.arguments = nullptr;
        break;
      case 7:
        inner.arguments = &value;
        break;
      case 8:
        inner.flags = HALYARD_CALL_RESUMED;
        break;
      default:
        return call->services->import_call(call, nullptr);
    }
    return call->services->import_call(call, &inner);
  };
  ASSERT_OK(Importer({frame("f", "0i_i", wrong)}, {import("m.fails", "0i_i")}).try_add(machine));
  const auto fails = [&](int32_t how, Code code, std::string_view part) {
    machine.expect_failure("importer.f", {i32(how)}, code, part);
  };
  fails(0, Code::INVALID_ARGUMENT, "sizeof(halyard_import_call_t)");
  fails(1, Code::UNIMPLEMENTED, "flags 0x40");
  fails(2, Code::INVALID_ARGUMENT, "import 5 does not exist; module 'importer' has 1");
  fails(3, Code::INVALID_ARGUMENT, "expected 1 arguments, 1 results and 0 spans, found 2, 1 and 0");
  fails(4, Code::INVALID_ARGUMENT, "found 1, 0 and 0; in a call of import 'm.fails'");
  fails(5, Code::INVALID_ARGUMENT, "found 1, 1 and 1");
  fails(6, Code::INVALID_ARGUMENT, "found a null pointer");
  fails(7, Code::INVALID_ARGUMENT, "argument 0 must be i32, found f32 0");
  fails(8, Code::FAILED_PRECONDITION, "HALYARD_CALL_RESUMED");
  fails(9, Code::INVALID_ARGUMENT, "`import_call`");
}

// ---- waits

// A module whose function waits until the test wakes it.
struct Sleeper {
  halyard_wakeup_t wakeup = nullptr;
  int waits = 1;

  static halyard_status_t sleep(void* state, halyard_module_call_t* call) {
    Sleeper& self = *static_cast<Sleeper*>(state);
    if (self.waits-- > 0) {
      call->services->wakeup_release(self.wakeup);
      return call->services->call_wait(call, &self.wakeup);
    }
    call->results[0].i32 = call->arguments[0].i32 + 1;
    return nullptr;
  }
  void add_to(Machine& machine) {
    Definition definition({frame("sleep", "0i_i", sleep)});
    definition.user = this;
    add_module(machine, definition);
  }
  void wake() const { module_services().wakeup_wake(wakeup); }
  ~Sleeper() { module_services().wakeup_release(wakeup); }
};

// Calls import 0 twice, with a result of its own in between, and keeps that and an object while it waits.
halyard_status_t twice(void*, halyard_module_call_t* call) {
  struct Kept {
    uint32_t step;
    halyard_value_t value;
  } now = {0, call->arguments[0]};
  halyard_object_t object = call->resumed ? nullptr : call->arguments[1].object;
  const halyard_module_services_t& services = *call->services;
  bool is_resumed = call->resumed != 0;
  if (is_resumed) {
    halyard_kept_t kept;
    if (halyard_status_t status = services.call_take(call, &kept)) return status;
    EXPECT_EQ(kept.object_count, 1u);
    EXPECT_EQ(kept.byte_count, sizeof now);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(kept.bytes) % 16, 0u);
    std::memcpy(&now, kept.bytes, sizeof now);
    object = kept.objects[0];
  } else {
    services.object_retain(object);
  }
  for (; now.step < 2; ++now.step) {
    halyard_value_t result = {};
    halyard_import_call_t inner = {.struct_size = sizeof inner,
                                   .import = 0,
                                   .flags = kWaits | (is_resumed ? uint32_t{HALYARD_CALL_RESUMED} : 0u),
                                   .deferred = 0,
                                   .argument_count = 1,
                                   .result_count = 1,
                                   .span_count = 0,
                                   .reserved = 0,
                                   .arguments = &now.value,
                                   .results = &result,
                                   .spans = nullptr};
    is_resumed = false;
    if (halyard_status_t status = services.import_call(call, &inner)) {
      services.object_release(object);
      return status;
    }
    if (inner.deferred) {
      halyard_kept_t kept;
      if (halyard_status_t status = services.call_keep(call, 1, sizeof now, &kept)) return status;
      kept.objects[0] = object;
      std::memcpy(kept.bytes, &now, sizeof now);
      call->deferred = 1;
      return nullptr;
    }
    now.value = result;
  }
  call->results[0] = now.value;
  call->results[1].object = object;
  return nullptr;
}

constexpr char kTop[] = R"(
vm.module @top
vm.import @importer.twice cconv "0ir_ir"
vm.export @f
vm.func @f(%i0: i32, %r0: !test.thing) -> (i32, !test.thing) {
  vm.call.yieldable @importer.twice(%i0, %r0) -> ^bb1(%i1, %r1)
^bb1:
  vm.return %i1, %R1
}
)";

class WaitingImports : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    sleeper_.add_to(machine_);
    if (GetParam())
      machine_.add(R"(
vm.module @between
vm.import @native.sleep cconv "0i_i"
vm.export @sleep
vm.func @sleep(%i0: i32) -> (i32) {
  vm.call.yieldable @native.sleep(%i0) -> ^bb1(%i1)
^bb1:
  vm.return %i1
}
)");
    ASSERT_OK(Importer({frame("twice", "0ir_ir", twice)},
                       {import(GetParam() ? "between.sleep" : "native.sleep", "0i_i")})
                  .try_add(machine_));
    machine_.add(kTop);
  }
  Machine machine_;
  Sleeper sleeper_;
};

TEST_P(WaitingImports, KeepTheirDataAndHoldNoThread) {
  const Variant thing = machine_.thing();
  const Callable callee = ASSERT_VALUE(machine_.find("f"));
  Invocation invocation(machine_.context);
  for (int round = 0; round < 2; ++round) {
    sleeper_.waits = 1;
    EXPECT_EQ(ASSERT_VALUE(invocation.begin(callee, Values{i32(40), thing})), Outcome::waiting);
    EXPECT_FALSE(invocation.resume()) << "it still waits";
    sleeper_.waits = 0;
    std::thread([&] { sleeper_.wake(); }).join();
    EXPECT_EQ(ASSERT_VALUE(invocation.resume()), Outcome::done);
    Values results(2);
    invocation.take_results(results);
    EXPECT_EQ(results[0].as_i32(), 42);
    EXPECT_EQ(results[1].object(), thing.object());
  }
  EXPECT_TRUE(thing.object()->unique());
}

TEST_P(WaitingImports, BlockACallerThatBlocks) {
  const Variant thing = machine_.thing();
  std::jthread waker([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (sleeper_.waits <= 0) sleeper_.wake();
    }
  });
  machine_.expect("f", {i32(1), thing}, {i32(3), thing});
}

TEST_P(WaitingImports, DropWhatTheyKeptWithTheCall) {
  const Callable callee = ASSERT_VALUE(machine_.find("f"));
  for (const bool interrupt : {false, true}) {
    Invocation invocation(machine_.context);
    sleeper_.waits = 1;
    EXPECT_EQ(ASSERT_VALUE(invocation.begin(callee, Values{i32(1), machine_.thing()})), Outcome::waiting);
    EXPECT_EQ(machine_.alive, 1);
    if (interrupt) {
      invocation.interrupt(Code::CANCELLED);
      EXPECT_FAILS(CANCELLED, "the call was cancelled", invocation.resume());
    } else {
      invocation.drop();
    }
    EXPECT_EQ(machine_.alive, 0);
    EXPECT_EQ(invocation.kept_rooms().size(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(, WaitingImports, testing::Bool(),
                         [](const auto& of) { return of.param ? "OfBytecode" : "OfNativeModules"; });

TEST(ModuleImports, ThatCannotWaitFail) {
  Machine machine;
  Sleeper sleeper;
  sleeper.add_to(machine);
  ASSERT_OK(Importer({frame("f", "0i_i", pass_on<0>), frame("g", "0i_i", pass_on<kWaits>)},
                     {import("native.sleep", "0i_i")})
                .try_add(machine));
  machine.expect_failure("importer.f", {i32(1)}, Code::FAILED_PRECONDITION, "call.yieldable");
  // The caller in bytecode cannot wait, although the importer can.
  machine.add(R"(
vm.module @top
vm.import @importer.g cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @importer.g(%i0)
  vm.return %i0
}
)");
  sleeper.waits = 1;
  machine.expect_failure("f", {i32(1)}, Code::FAILED_PRECONDITION, "call.yieldable");
}

TEST(ModuleImports, NothingIsTakenThatWasNotKept) {
  Machine machine;
  ASSERT_OK(Importer({frame("f", "0v_v",
                            [](void*, halyard_module_call_t* call) {
                              halyard_kept_t kept;
                              return call->services->call_take(call, &kept);
                            })},
                     {})
                .try_add(machine));
  machine.expect_failure("importer.f", {}, Code::FAILED_PRECONDITION, "call_keep");
}

TEST(ModuleImports, AFunctionReadsTheStopWord) {
  constexpr auto endless = [](void*, halyard_module_call_t* call) {
    while (*call->stop == 0) std::this_thread::yield();
    return call->services->call_stopped(call);
  };
  Machine machine;
  ASSERT_OK(Importer({frame("f", "0v_v", endless)}, {}).try_add(machine));
  Invocation invocation(machine.context);
  invocation.arm();
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    invocation.interrupt(Code::DEADLINE_EXCEEDED);
  });
  const Callable callee = ASSERT_VALUE(machine.find("importer.f"));
  EXPECT_FAILS(DEADLINE_EXCEEDED, "", invocation.call(callee, {}, {}));
}

// ---- definitions

TEST(ModuleImports, AttributesAndDependenciesAreThoseOfTheDefinition) {
  Machine machine(kBytecode);
  const halyard_module_attribute_t attributes[] = {{"iree.abi.declaration", "sync func @f()"}, {"a", ""}};
  Importer definition({frame("f", "0v_v", pass_on<0>)}, {});
  const halyard_module_attributes_t of_export = {attributes, 2};
  definition.export_attributes = &of_export;
  definition.attributes = {attributes, 1};
  const halyard_module_dependency_t dependencies[] = {{"m", 0, HALYARD_DEPENDENCY_VERSIONED},
                                                      {"none", 3, HALYARD_DEPENDENCY_OPTIONAL}};
  definition.dependencies = dependencies;
  definition.dependency_count = 2;
  auto module = ASSERT_VALUE(create_native_module(&definition, {}, machine.types));
  EXPECT_EQ(module->exports()[0].attribute("iree.abi.declaration"), "sync func @f()");
  EXPECT_EQ(module->exports()[0].attributes.size(), 2u);
  EXPECT_EQ(module->attributes().size(), 1u);
  ASSERT_OK(machine.context->add(module));
  const halyard_module_dependency_t newer[] = {{"m", 7, HALYARD_DEPENDENCY_VERSIONED}};
  definition.dependencies = newer;
  definition.dependency_count = 1;
  EXPECT_FAILS(NOT_FOUND, "module 'm' has version 0; expected 7", definition.try_add(machine));
}

TEST(ModuleImports, AnOldDefinitionHasNone) {
  Machine machine;
  Importer definition({frame("f", "0v_v", pass_on<0>)}, {import("m.f", "0v_v")});
  definition.struct_size = HALYARD_FIELD_END(halyard_module_definition_t, type_size);
  auto module = ASSERT_VALUE(create_native_module(&definition, {}, machine.types));
  EXPECT_TRUE(module->imports().empty());
}

TEST(ModuleImports, BadDefinitionsAreRefused) {
  Machine machine;
  const auto refused = [&](const Importer& definition, Code code, std::string_view part) {
    EXPECT_TRUE(fails_with(create_native_module(&definition, {}, machine.types), code, part));
  };
  refused(Importer({}, {import("nodot", "0v_v")}), Code::INVALID_ARGUMENT, "import 0 has the name 'nodot'");
  refused(Importer({}, {import(nullptr, "0v_v")}), Code::INVALID_ARGUMENT, "import 0 has the name ''");
  refused(Importer({}, {import("m.f", "0q_v")}), Code::UNIMPLEMENTED, "import 'm.f'");
  refused(Importer({}, {import("m.f", "0v_v", 8)}), Code::UNIMPLEMENTED, "flags 0x8 of import 'm.f'");
  Importer small({}, {import("m.f", "0v_v")});
  small.import_size = 8;
  refused(small, Code::INCOMPATIBLE, "import_size is 8 bytes");
  Importer tableless({}, {import("m.f", "0v_v")});
  tableless.imports = nullptr;
  refused(tableless, Code::INVALID_ARGUMENT, "states 1 imports but no table");
  const halyard_module_attribute_t attribute = {"key", nullptr};
  Importer valueless({frame("f", "0v_v", pass_on<0>)}, {});
  const halyard_module_attributes_t of_export = {&attribute, 1};
  valueless.export_attributes = &of_export;
  refused(valueless, Code::INVALID_ARGUMENT, "attribute 0 has no value");
  const halyard_module_dependency_t dependency = {"m", 0, 64};
  Importer flagged({}, {});
  flagged.dependencies = &dependency;
  flagged.dependency_count = 1;
  refused(flagged, Code::UNIMPLEMENTED, "flags 0x40 of dependency 'm'");
}

}  // namespace
}  // namespace halyard::vm::test
