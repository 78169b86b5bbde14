// Programs that are native modules (halyard/program.h): their globals, constants, types, and the services
// that are instructions.
#include "halyard/program.h"
#include "native_definition.h"
#include "vm/native/module_services.h"
#include "vm/object/list.h"
#include "vm/object/value.h"

namespace halyard::vm::test {
namespace {

struct ProgramDefinition : Definition {
  explicit ProgramDefinition(std::vector<halyard_module_export_t> exported)
      : Definition(std::move(exported)) {
    of_program.struct_size = sizeof of_program;
    program = &of_program;
  }
  Result<> try_add(Machine& machine) const {
    Ref<NativeModule> module = HALYARD_TRY(create_native_module(this, {}, machine.types));
    return machine.context->add(module);
  }
  halyard_program_t of_program = {};
};

template <typename Body>
halyard_frame_function_t function(Body) {
  return [](void*, halyard_module_call_t* call) -> halyard_status_t { return Body()(call, *call->program); };
}

TEST(ProgramModule, HasGlobalsOfItsContext) {
  ProgramDefinition definition(
      {frame("count", "0v_i",
             function([](halyard_module_call_t* call, const halyard_program_call_t& program) {
               EXPECT_EQ(reinterpret_cast<uintptr_t>(program.globals) % 16, 0u);
               call->results[0].i32 = ++*reinterpret_cast<int32_t*>(program.globals + 4);
               return halyard_status_t{};
             })),
       frame("keep", "0r_v", function([](halyard_module_call_t* call, const halyard_program_call_t& program) {
               call->services->object_retain(call->arguments[0].object);
               std::swap(program.global_objects[1],
                         *const_cast<halyard_object_t*>(&call->arguments[0].object));
               return halyard_status_t{};
             }))});
  definition.of_program.global_bytes = 8;
  definition.of_program.global_objects = 2;
  int alive = 0;
  {
    Machine first;
    ASSERT_OK(definition.try_add(first));
    first.expect("native.count", {}, {i32(1)});
    first.expect("native.count", {}, {i32(2)});
    first.expect("native.keep", {Variant::ref(make<Thing>(&alive))}, {});
    EXPECT_EQ(alive, 1);
    Machine second;
    ASSERT_OK(definition.try_add(second));
    second.expect("native.count", {}, {i32(1)});
  }
  EXPECT_EQ(alive, 0);
  Limits few;
  few.buffer_bytes = 4;
  Machine limited(few);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "needs 8 bytes and 2 refs of globals", definition.try_add(limited));
}

TEST(ProgramModule, HasConstantsAndTypes) {
  static uint8_t bytes[] = {1, 2, 3};
  static const halyard_program_constant_t constants[] = {{bytes, 3}, {nullptr, 0}};
  static const char* const types[] = {"i8", "!vm.buffer", "!vm.opaque"};
  ProgramDefinition definition(
      {frame("constant", "0i_r",
             function([](halyard_module_call_t* call, const halyard_program_call_t& program) {
               call->results[0].object = program.constants[call->arguments[0].i32];
               call->services->object_retain(call->results[0].object);
               return halyard_status_t{};
             })),
       frame("check", "0ir_v",
             function([](halyard_module_call_t* call, const halyard_program_call_t& program) {
               return program.services->type_check(call, static_cast<uint32_t>(call->arguments[0].i32),
                                                   call->arguments[1].object);
             })),
       frame("list", "0i_r", function([](halyard_module_call_t* call, const halyard_program_call_t& program) {
               return program.services->list_alloc(call, static_cast<uint32_t>(call->arguments[0].i32), 4,
                                                   &call->results[0].object);
             }))});
  definition.of_program.types = types;
  definition.of_program.type_count = 3;
  definition.of_program.constants = constants;
  definition.of_program.constant_count = 2;
  Machine machine;
  ASSERT_OK(definition.try_add(machine));
  const Values constant = ASSERT_VALUE(machine.call("native.constant", {i32(0)}));
  auto& buffer = static_cast<Buffer&>(*constant[0].object());
  EXPECT_EQ(buffer.data(), bytes);
  EXPECT_EQ(buffer.length(), 3u);
  EXPECT_FALSE(buffer.is_mutable());
  EXPECT_TRUE(buffer.may_be_written_by_devices());
  machine.expect("native.check", {i32(1), constant[0]}, {});
  machine.expect("native.check", {i32(0), null()}, {});
  machine.expect_failure("native.check", {i32(1), machine.thing()}, Code::INVALID_ARGUMENT,
                         "expected vm.buffer, found test.thing");
  machine.expect_failure("native.check", {i32(0), machine.thing()}, Code::INVALID_ARGUMENT,
                         "expected a type that no ref has, found test.thing");
  const Values list = ASSERT_VALUE(machine.call("native.list", {i32(0)}));
  EXPECT_EQ(static_cast<List&>(*list[0].object()).element(), (ElementType{ValueType::i8, nullptr}));

  static const char* const unknown[] = {"!toolbox.counter"};
  definition.of_program.types = unknown;
  definition.of_program.type_count = 1;
  EXPECT_FAILS(NOT_FOUND, "type '!toolbox.counter' (types[0])", definition.try_add(machine));
}

TEST(ProgramModule, BadProgramsAreRefused) {
  Machine machine;
  const auto refused = [&](const ProgramDefinition& definition, Code code, std::string_view part) {
    EXPECT_TRUE(fails_with(definition.try_add(machine), code, part));
  };
  ProgramDefinition small({});
  small.of_program.struct_size = 8;
  refused(small, Code::INCOMPATIBLE, "sizeof(halyard_program_t)");
  ProgramDefinition flagged({});
  flagged.of_program.flags = 16;
  refused(flagged, Code::UNIMPLEMENTED, "unknown flags 0x10");
  ProgramDefinition typeless({});
  typeless.of_program.type_count = 2;
  refused(typeless, Code::INVALID_ARGUMENT, "states 2 types of the program but no table");
  const halyard_program_constant_t constant = {nullptr, 5};
  ProgramDefinition addressless({});
  addressless.of_program.constants = &constant;
  addressless.of_program.constant_count = 1;
  refused(addressless, Code::INVALID_ARGUMENT, "constant 0 of native module 'native' states 5 bytes");
}

// Failures have no note of a native function, and a call that cannot wait for other modules waits for
// programs.
TEST(ProgramModule, BehavesAsBytecodeTowardsItsCallers) {
  ProgramDefinition definition(
      {frame("fail", "0i_v", function([](halyard_module_call_t* call, const halyard_program_call_t& program) {
               return program.services->fail(static_cast<uint32_t>(call->arguments[0].i32), "told to");
             })),
       frame("wait", "0i_i", function([](halyard_module_call_t* call, const halyard_program_call_t&) {
               if (!call->resumed) {
                 call->deferred = 1;
                 return halyard_status_t{};
               }
               call->results[0].i32 = call->arguments[0].i32 + 1;
               return halyard_status_t{};
             }))});
  Machine machine;
  ASSERT_OK(definition.try_add(machine));
  EXPECT_EQ(machine.expect_failure("native.fail", {i32(3)}, Code::INVALID_ARGUMENT),
            "INVALID_ARGUMENT; told to; in the call of function 'fail'");
  machine.expect_failure("native.fail", {i32(29)}, Code::UNKNOWN,
                         "told to (the program failed with 29, which");
  machine.add(R"(
vm.module @top
vm.import @native.wait cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @native.wait(%i0)
  vm.return %i0
}
)");
  machine.expect("f", {i32(41)}, {i32(42)});
}

}  // namespace
}  // namespace halyard::vm::test
