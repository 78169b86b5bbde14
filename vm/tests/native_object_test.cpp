// Objects of native modules: their types in programs, their lifetimes, and the services for creating and
// inspecting objects.
#include "vm/object/native_object.h"

#include <atomic>
#include <thread>

#include "native_definition.h"
#include "vm/native/module_services.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/object/value.h"

namespace halyard::vm::test {
namespace {

const halyard_module_services_t& host = module_services();

// Expects success, or prints the status.
void expect_ok(halyard_status_t status) { EXPECT_EQ(Status::adopt(status).text(), "OK"); }
Result<> to_result(halyard_status_t status) { return halyard::to_result(Status::adopt(status)); }

// An owned reference, released at the end.
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { host.object_release(handle_); }
  halyard_object_t* out() { return &handle_; }
  halyard_object_t get() const { return handle_; }

 private:
  halyard_object_t handle_ = nullptr;
};

// ---- Types and objects

int live_numbers = 0;

void destroy_number(void* number) {
  --live_numbers;
  delete static_cast<int32_t*>(number);
}

struct State {
  halyard_type_t number;
  halyard_type_t other;
};
halyard_status_t create_state(const halyard_module_state_args_t* args, void** state) {
  EXPECT_EQ(args->type_count, 2u);
  *state = new State{args->types[0], args->types[1]};
  return nullptr;
}
void destroy_state(void* state) { delete static_cast<State*>(state); }

halyard_status_t make_number(void* state, int32_t value, halyard_object_t* number) {
  ++live_numbers;
  return host.object_create(static_cast<State*>(state)->number, new int32_t(value), number);
}
halyard_status_t make_other(void* state, halyard_object_t* other) {
  return host.object_create(static_cast<State*>(state)->other, nullptr, other);
}
halyard_status_t number_of(void* state, halyard_object_t number, int32_t* value) {
  void* pointer = nullptr;
  const halyard_status_t status = host.object_pointer(static_cast<State*>(state)->number, number, &pointer);
  if (!status) *value = *static_cast<int32_t*>(pointer);
  return status;
}
// A frame function sees the types of its module.
halyard_status_t double_of(void*, halyard_module_call_t* call) {
  void* pointer = nullptr;
  const halyard_status_t status = host.object_pointer(call->types[0], call->arguments[0].object, &pointer);
  if (!status) call->results[0].i32 = 2 * *static_cast<int32_t*>(pointer);
  return status;
}

constexpr uint32_t kStateAndStatus = HALYARD_PLAIN_STATE | HALYARD_PLAIN_STATUS;
constexpr halyard_module_type_t kTypes[] = {{"native.number", destroy_number}, {"native.other", nullptr}};

struct Numbers : Definition {
  Numbers()
      : Definition({plain("make", "0i_r", make_number, kStateAndStatus),
                    plain("other", "0v_r", make_other, kStateAndStatus),
                    plain("number", "0r_i", number_of, kStateAndStatus),
                    frame("double", "0r_i", double_of)}) {
    this->create_state = vm::test::create_state;
    this->destroy_state = vm::test::destroy_state;
    types = kTypes;
    type_count = 2;
  }
};

const std::string kProgram = R"(
vm.module @m
vm.import @native.make cconv "0i_r"
vm.import @native.other cconv "0v_r"
vm.import @native.number cconv "0r_i"
vm.import @native.double cconv "0r_i"
vm.func @round_trip(%i0: i32) -> (i32, i32) {
  %r0 = vm.call @native.make(%i0)
  %r0 = vm.cast.any.ref %R0 : !vm.ref<?> -> !native.number
  %i0 = vm.call @native.number(%r0)
  %i1 = vm.call @native.double(%R0)
  vm.return %i0, %i1
}
vm.func @make(%i0: i32) -> (!native.number) {
  %r0 = vm.call @native.make(%i0)
  vm.return %R0
}
vm.func @cast_other() -> (!native.number) {
  %r0 = vm.call @native.other()
  %r0 = vm.cast.any.ref %R0 : !vm.ref<?> -> !native.number
  vm.return %R0
}
)";

TEST(NativeObjects, PassThroughPrograms) {
  live_numbers = 0;
  Machine machine;
  add_module(machine, Numbers());
  machine.add(kProgram);
  machine.expect("round_trip", {i32(21)}, {i32(21), i32(42)});
  EXPECT_EQ(live_numbers, 0);
  const auto made = ASSERT_VALUE(machine.call("make", {i32(5)}));
  EXPECT_STREQ(made.front().object()->type()->name, "native.number");
  EXPECT_EQ(live_numbers, 1);
  machine.expect("native.number", {made.front()}, {i32(5)});
}

TEST(NativeObjects, OtherTypesAreRefused) {
  live_numbers = 0;
  Machine machine;
  add_module(machine, Numbers());
  machine.add(kProgram);
  machine.expect_failure("cast_other", {}, Code::INVALID_ARGUMENT);
  const auto other = ASSERT_VALUE(machine.call("native.other"));
  const auto text = [&](const Variant& argument) {
    return machine.expect_failure("native.number", {argument}, Code::INVALID_ARGUMENT);
  };
  EXPECT_TRUE(
      text(other.front()).starts_with("INVALID_ARGUMENT; expected a native.number, found native.other;"));
  EXPECT_TRUE(text(null()).starts_with("INVALID_ARGUMENT; expected a native.number, found null;"));
  EXPECT_TRUE(
      text(machine.thing()).starts_with("INVALID_ARGUMENT; expected a native.number, found test.thing;"));
}

TEST(NativeObjects, AProgramNeedsTheModuleBeforeIt) {
  Machine machine;
  const auto added = machine.try_add(kProgram);
  EXPECT_FAILS(NOT_FOUND, "type '!native.number'", added);
}

// A module that is loaded twice has one set of types, so both instances can use each other's objects.
TEST(NativeObjects, OneModuleTwice) {
  live_numbers = 0;
  Machine machine;
  const Numbers numbers;
  add_module(machine, numbers);
  const auto made = ASSERT_VALUE(machine.call("native.make", {i32(7)}));
  add_module(machine, numbers);
  machine.expect("native.number", {made.front()}, {i32(7)});
}

TEST(NativeObjects, TypesOfOneNameMustBeOneType) {
  TypeRegistry types;
  const auto create = [&](const char* module, std::vector<halyard_module_type_t> list) {
    Definition definition;
    definition.name = module;
    definition.types = list.data();
    definition.type_count = static_cast<uint32_t>(list.size());
    return create_native_module(&definition, {}, types);
  };
  const auto first = ASSERT_VALUE(create("m", {{"m.a", nullptr}}));
  // If one type fails, no type is registered: not m.b either.
  EXPECT_FAILS(ALREADY_EXISTS, "the type 'm.a' is already defined",
               create("m", {{"m.b", nullptr}, {"m.a", destroy_number}}));
  EXPECT_EQ(types.find("m.b"), nullptr);
  EXPECT_NE(types.find("m.a"), nullptr);
  EXPECT_FAILS(ALREADY_EXISTS, "'vm.buffer'", create("vm", {{"vm.buffer", nullptr}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "type 0 has the name 'n.a'; expected 'm.'", create("m", {{"n.a", nullptr}}));
  for (const char* name : {"m.", "m", "m. ", static_cast<const char*>(nullptr)})
    EXPECT_FAILS(INVALID_ARGUMENT, "type 0 has the name", create("m", {{name, nullptr}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "has the type 'm.c' twice",
               create("m", {{"m.c", nullptr}, {"m.c", nullptr}}));
}

// An object keeps its type alive: the machine, the module and the registry may be destroyed first.
TEST(NativeObjects, OutliveWhatMadeThem) {
  live_numbers = 0;
  Variant last;
  {
    Machine machine;
    add_module(machine, Numbers());
    const auto made = ASSERT_VALUE(machine.call("native.make", {i32(3)}));
    last = made.front();
  }
  EXPECT_EQ(live_numbers, 1);
  EXPECT_STREQ(last.object()->type()->name, "native.number");
  last = Variant();
  EXPECT_EQ(live_numbers, 0);
}

// Several threads load modules while others look up types.
TEST(NativeObjects, TheRegistryIsGuarded) {
  TypeRegistry types;
  std::vector<std::thread> threads;
  std::atomic<int> found = 0;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&types, &found, thread] {
      for (int i = 0; i < 50; ++i) {
        const std::string module = fmt::format("m{}_{}", thread, i);
        const std::string own = module + ".t";
        const halyard_module_type_t list[] = {{own.c_str(), nullptr}};
        Definition definition;
        definition.name = module.c_str();
        definition.types = list;
        definition.type_count = 1;
        const auto made = create_native_module(&definition, {}, types);
        if (made && types.find(own) && types.find("vm.buffer") && types.all().size() > 2) ++found;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 200);
  EXPECT_EQ(types.all().size(), 202u);
}

// ---- Services

TEST(ModuleServices, TableIsComplete) {
  EXPECT_EQ(host.struct_size, sizeof host);
  for (size_t at = offsetof(halyard_module_services_t, status_create); at < sizeof host;
       at += sizeof(void*)) {
    void* entry = nullptr;
    std::memcpy(static_cast<void*>(&entry), reinterpret_cast<const char*>(&host) + at, sizeof entry);
    EXPECT_NE(entry, nullptr) << at;
  }
}

TEST(ModuleServices, Statuses) {
  halyard_status_t status = host.status_create(HALYARD_NOT_FOUND, "nothing here");
  EXPECT_EQ(host.status_code(status), HALYARD_NOT_FOUND);
  EXPECT_STREQ(host.status_message(status), "nothing here");
  const halyard_status_t again = host.status_retain(status);
  host.status_release(status);
  status = host.status_note(again, "while looking");
  EXPECT_EQ(Status::adopt(status).text(), "NOT_FOUND; nothing here; while looking");
  for (const int32_t code : {0, 17, 19, -1}) {
    const halyard_status_t odd = host.status_create(code, nullptr);
    EXPECT_EQ(host.status_code(odd), HALYARD_UNKNOWN) << code;
    host.status_release(odd);
  }
  EXPECT_EQ(host.status_retain(nullptr), nullptr);
  EXPECT_EQ(host.status_note(nullptr, "x"), nullptr);
  EXPECT_EQ(host.status_code(nullptr), HALYARD_OK);
  host.status_release(nullptr);
}

TEST(ModuleServices, Buffers) {
  Owned buffer;
  expect_ok(host.buffer_create(100, 64, buffer.out()));
  EXPECT_STREQ(host.object_type(buffer.get()), "vm.buffer");
  halyard_buffer_bytes_t bytes = {};
  expect_ok(host.buffer_bytes(buffer.get(), &bytes));
  EXPECT_EQ(bytes.length, 100u);
  EXPECT_EQ(bytes.is_mutable, 1u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data) % 64, 0u);
  EXPECT_EQ(bytes.data[99], 0);
  Owned other;
  EXPECT_FAILS(INVALID_ARGUMENT, "power of two", to_result(host.buffer_create(1, 3, other.out())));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "", to_result(host.buffer_create(UINT64_MAX, 0, other.out())));
  EXPECT_EQ(other.get(), nullptr);
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a vm.buffer, found null",
               to_result(host.buffer_bytes(nullptr, &bytes)));
  const Variant list = Variant::ref(List::create({}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a vm.buffer, found vm.list",
               to_result(host.buffer_bytes(to_handle(list.object()), &bytes)));
}

TEST(ModuleServices, BuffersOverTheModulesBytes) {
  uint8_t memory[8] = {1, 2, 3};
  int released = 0;
  const auto count = [](void* user) { ++*static_cast<int*>(user); };
  {
    Owned buffer;
    expect_ok(host.buffer_wrap(memory, sizeof memory, 0, count, &released, buffer.out()));
    halyard_buffer_bytes_t bytes = {};
    expect_ok(host.buffer_bytes(buffer.get(), &bytes));
    EXPECT_EQ(bytes.data, memory);
    EXPECT_EQ(bytes.is_mutable, 0u);
    host.object_retain(buffer.get());
    host.object_release(buffer.get());
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  Owned other;
  EXPECT_FAILS(INVALID_ARGUMENT, "of 8 bytes as `data` of a buffer, found a null pointer",
               to_result(host.buffer_wrap(nullptr, 8, 1, count, &released, other.out())));
  expect_ok(host.buffer_wrap(nullptr, 0, 1, nullptr, nullptr, other.out()));
  EXPECT_EQ(released, 1);
}

halyard_value_t value_of(int32_t number) {
  halyard_value_t value = {};
  value.kind = HALYARD_VALUE_I32;
  value.i32 = number;
  return value;
}

TEST(ModuleServices, Lists) {
  Owned list;
  expect_ok(host.list_create(HALYARD_VALUE_I64, list.out()));
  expect_ok(host.list_resize(list.get(), 3));
  uint64_t size = 0;
  expect_ok(host.list_size(list.get(), &size));
  EXPECT_EQ(size, 3u);
  halyard_value_t value = value_of(-5);
  expect_ok(host.list_set(list.get(), 2, &value));
  expect_ok(host.list_get(list.get(), 2, &value));
  EXPECT_EQ(value.kind, static_cast<uint32_t>(HALYARD_VALUE_I64));
  EXPECT_EQ(value.i64, -5);
  EXPECT_FAILS(OUT_OF_RANGE, "element 3 does not exist; the list has 3 elements",
               to_result(host.list_get(list.get(), 3, &value)));
  EXPECT_FAILS(OUT_OF_RANGE, "element 4294967296",
               to_result(host.list_set(list.get(), UINT64_C(1) << 32, &value)));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "exceeds the limit", to_result(host.list_resize(list.get(), UINT64_MAX)));
  Owned other;
  EXPECT_FAILS(INVALID_ARGUMENT, "kind 5", to_result(host.list_create(HALYARD_VALUE_OBJECT, other.out())));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a vm.list, found null", to_result(host.list_size(nullptr, &size)));
}

TEST(ModuleServices, ListsOfAnything) {
  int things = 0;
  Owned list;
  expect_ok(host.list_create(HALYARD_VALUE_NULL, list.out()));
  expect_ok(host.list_resize(list.get(), 2));
  halyard_value_t value = {};
  value.kind = HALYARD_VALUE_OBJECT;
  value.object = to_handle(make<Thing>(&things).detach());
  expect_ok(host.list_set(list.get(), 1, &value));  // borrowed
  host.object_release(value.object);
  EXPECT_EQ(things, 1);
  halyard_value_t got = {};
  expect_ok(host.list_get(list.get(), 1, &got));
  EXPECT_EQ(got.object, value.object);
  host.object_release(got.object);  // owned
  expect_ok(host.list_get(list.get(), 0, &got));
  EXPECT_EQ(got.kind, static_cast<uint32_t>(HALYARD_VALUE_NULL));
  expect_ok(host.list_resize(list.get(), 1));
  EXPECT_EQ(things, 0);
}

TEST(ModuleServices, NullObjects) {
  host.object_retain(nullptr);
  host.object_release(nullptr);
  EXPECT_STREQ(host.object_type(nullptr), "");
}

}  // namespace
}  // namespace halyard::vm::test
