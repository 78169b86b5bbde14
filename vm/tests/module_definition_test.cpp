// Errors in a definition, the names in their messages, and the lifetime of a module's parts.
#include "vm/native/module_definition.h"

#include <cstring>

#include "native_definition.h"
#include "vm/native/ffi_call.h"

namespace halyard::vm::test {
namespace {

int32_t one() { return 1; }
int32_t two() { return 2; }
halyard_status_t nothing(void*, halyard_module_call_t*) { return nullptr; }

Result<Ref<NativeModule>> create(const Definition& definition) {
  TypeRegistry types;
  return create_native_module(&definition, {}, types);
}
Result<Ref<NativeModule>> create_with(halyard_module_export_t function) {
  return create(Definition({function}));
}

TEST(ModuleDefinition, MakesAModule) {
  const Definition definition({plain("one", "0v_i", one), frame("f.g", "0CiD_v", nothing)});
  auto module = ASSERT_VALUE(create(definition));
  EXPECT_EQ(module->name(), "native");
  EXPECT_EQ(module->version(), 3u);
  ASSERT_EQ(module->exports().size(), 2u);
  EXPECT_EQ(module->exports()[1].name, "f.g");
  EXPECT_EQ(module->exports()[1].convention, "0CiD_v");
}

// The embedder may free its strings and tables after the module is created.
TEST(ModuleDefinition, IsCopied) {
  Machine machine;
  {
    std::string name = "native";
    std::string function = "a_function_whose_name_is_not_short";
    std::string convention = "0v_i";
    Definition definition({plain(function.c_str(), convention.c_str(), one)});
    definition.name = name.c_str();
    add_module(machine, definition);
    for (std::string* text : {&name, &function, &convention}) std::memset(text->data(), 'x', text->size());
    definition.functions[0].plain = nullptr;
  }
  machine.expect("native.a_function_whose_name_is_not_short", {}, {i32(1)});
}

TEST(ModuleDefinition, VersionsAndSizes) {
  TypeRegistry types;
  EXPECT_FAILS(INVALID_ARGUMENT, "`definition` of a native module", create_native_module(nullptr, {}, types));
  Definition definition({plain("one", "0v_i", one)});
  definition.abi_version = 0;
  EXPECT_FAILS(INCOMPATIBLE, "uses module ABI 0, this Halyard supports 1; version 0 marks an unfinished",
               create(definition));
  definition.abi_version = 2;
  EXPECT_FAILS(INCOMPATIBLE, "uses module ABI 2, this Halyard supports 1", create(definition));
  definition.abi_version = 1;
  for (const uint32_t size : {0u, 4u, 8u, 40u, 87u}) {
    definition.struct_size = size;
    EXPECT_FAILS(INCOMPATIBLE, fmt::format("has {} bytes, module ABI 1 needs 88; set struct_size", size),
                 create(definition));
  }
  definition.struct_size = sizeof(halyard_module_definition_t) + 64;  // from a later version
  EXPECT_TRUE(create(definition));
}

TEST(ModuleDefinition, TablesThatCannotBe) {
  Definition definition({plain("one", "0v_i", one)});
  definition.exports = nullptr;
  EXPECT_FAILS(INVALID_ARGUMENT, "'native' states 1 functions but no table", create(definition));
  definition.export_count = 0;
  EXPECT_TRUE(create(definition));
  definition.exports = definition.functions.data();
  definition.export_count = UINT64_MAX;
  EXPECT_FAILS(INVALID_ARGUMENT, "expected at most 65536", create(definition));
  definition.export_count = 1;
  for (const uint32_t size : {0u, 39u, 41u, 100u}) {
    definition.export_size = size;
    EXPECT_FAILS(INCOMPATIBLE, fmt::format("export_size is {} bytes, module ABI 1 needs 40", size),
                 create(definition));
  }
  definition.export_size = sizeof(halyard_module_export_t);
  definition.type_count = 1;
  EXPECT_FAILS(INVALID_ARGUMENT, "'native' states 1 types but no table", create(definition));
  definition.type_count = UINT32_MAX;
  static const halyard_module_type_t kTypes[] = {{"native.t", nullptr}};
  definition.types = kTypes;
  EXPECT_FAILS(INVALID_ARGUMENT, "expected at most 65536", create(definition));
  definition.type_count = 1;
  definition.type_size = 8;
  EXPECT_FAILS(INCOMPATIBLE, "type_size is 8 bytes, module ABI 1 needs 16", create(definition));
}

// A later version's entries are longer; the definition states their size.
TEST(ModuleDefinition, LongerEntries) {
  struct Longer {
    halyard_module_export_t known;
    uint64_t later;
  };
  static const Longer kFunctions[] = {{plain("one", "0v_i", one), 1}, {plain("two", "0v_i", two), 2}};
  Definition definition;
  definition.exports = &kFunctions[0].known;
  definition.export_size = sizeof(Longer);
  definition.export_count = 2;
  Machine machine;
  add_module(machine, definition);
  machine.expect("native.one", {}, {i32(1)});
  machine.expect("native.two", {}, {i32(2)});
}

TEST(ModuleDefinition, Names) {
  Definition definition({plain("one", "0v_i", one)});
  const std::string long_name(256, 'n');
  for (const char* name : {static_cast<const char*>(nullptr), "", "a.b", "a b", "a\n", long_name.c_str()}) {
    definition.name = name;
    EXPECT_FAILS(INVALID_ARGUMENT, "digits, '_', '$' and '-' for a native module, found '",
                 create(definition));
  }
  definition.name = long_name.c_str() + 1;
  EXPECT_TRUE(create(definition));
  for (const char* name : {static_cast<const char*>(nullptr), "", "a b", "a\xff", long_name.c_str()})
    EXPECT_FAILS(INVALID_ARGUMENT, "'native': function 0 has the name '",
                 create_with(plain(name, "0v_i", one)));
  EXPECT_TRUE(create_with(plain("a.B_9$-", "0v_i", one)));
}

TEST(ModuleDefinition, Conventions) {
  const auto fails = [](const char* convention) { return create_with(plain("odd", convention, one)); };
  EXPECT_FAILS(INVALID_ARGUMENT, "no calling convention", fails(nullptr));
  EXPECT_FAILS(INVALID_ARGUMENT, "no calling convention", fails(""));
  EXPECT_FAILS(UNIMPLEMENTED, "version '1'", fails("1v_v"));
  EXPECT_FAILS(UNIMPLEMENTED, "unknown character 'x'", fails("0ix_i"));
  EXPECT_FAILS(UNIMPLEMENTED, "in function 'odd' of native module 'native'", fails("0ix_i"));
  EXPECT_FAILS(INVALID_ARGUMENT, "only allowed in arguments", fails("0i_CiD"));
  EXPECT_FAILS(INVALID_ARGUMENT, "a span inside a span", fails("0CiCiDD_v"));
  EXPECT_FAILS(INVALID_ARGUMENT, "make it a frame function", fails("0iCiD_i"));
  EXPECT_FAILS(INVALID_ARGUMENT, "in function 'odd' of native module 'native'", fails("0iCiD_i"));
  const auto many = [](size_t arguments, size_t results) {
    return "0" + std::string(arguments, 'i') + "_" + std::string(results, 'i');
  };
  EXPECT_TRUE(fails(many(256, 256).c_str()));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected at most 256 arguments and 256 results, found 257 and 0",
               fails(many(257, 0).c_str()));
  EXPECT_FAILS(INVALID_ARGUMENT, "found 0 and 257", fails(many(0, 257).c_str()));
  EXPECT_FAILS(INVALID_ARGUMENT, "of more than", fails(many(100000, 0).c_str()));
  const std::string span = "0C" + std::string(257, 'i') + "D_v";
  EXPECT_FAILS(INVALID_ARGUMENT, "found 257 and 0", create_with(frame("odd", span.c_str(), nothing)));
}

TEST(ModuleDefinition, FunctionsAndFlags) {
  halyard_module_export_t function = plain("odd", "0v_i", one);
  function.plain = nullptr;
  EXPECT_FAILS(INVALID_ARGUMENT,
               "it has no function; expected exactly one of plain and frame; in function 'odd'",
               create_with(function));
  function = plain("odd", "0v_i", one);
  function.frame = nothing;
  EXPECT_FAILS(INVALID_ARGUMENT, "both a plain and a frame function", create_with(function));
  EXPECT_FAILS(UNIMPLEMENTED, "flags 0x80 of a plain function are unknown",
               create_with(plain("odd", "0v_i", one, 0x80 | HALYARD_PLAIN_STATE)));
  function = frame("odd", "0v_i", nothing);
  function.flags = HALYARD_PLAIN_STATUS;
  EXPECT_FAILS(INVALID_ARGUMENT, "a frame function with flags 0x4; expected 0", create_with(function));
}

TEST(ModuleDefinition, NamesMayRepeatWithOtherConventionsOnly) {
  Machine machine;
  const Definition overloaded({plain("f", "0v_i", one), plain("f", "0i_i", +[](int32_t a) { return a; })});
  add_module(machine, overloaded);
  EXPECT_FAILS(INVALID_ARGUMENT, "has the function 'f' with the calling convention '0v_i' twice",
               create(Definition({plain("f", "0v_i", one), plain("f", "0v_i", two)})));
}

// ---- States

struct Log {
  std::vector<std::string> lines;
  bool refuse = false;
};
struct State {
  Log* log;
  int32_t number;
};

halyard_status_t create_state(const halyard_module_state_args_t* args, void** state) {
  Log& log = *static_cast<Log*>(args->user);
  log.lines.push_back(fmt::format("create '{}'", args->argument));
  if (log.refuse) return args->services->status_create(HALYARD_UNAVAILABLE, "no more states");
  *state = new State{&log, static_cast<int32_t>(log.lines.size())};
  return nullptr;
}
void destroy_state(void* state) {
  const auto* doomed = static_cast<State*>(state);
  doomed->log->lines.push_back(fmt::format("destroy {}", doomed->number));
  delete doomed;
}
void release_user(void* user) { static_cast<Log*>(user)->lines.emplace_back("release"); }
int32_t number_of(void* state) { return static_cast<State*>(state)->number; }

Definition& with_states(Definition& definition, Log& log) {
  definition.user = &log;
  definition.create_state = create_state;
  definition.destroy_state = destroy_state;
  definition.release = release_user;
  return definition;
}

TEST(ModuleStates, OneForEachContext) {
  Log log;
  Definition definition({plain("number", "0v_i", number_of, HALYARD_PLAIN_STATE)});
  TypeRegistry types;
  auto module = ASSERT_VALUE(
      create_native_module(&with_states(definition, log), {.argument = "a=b", .name = ""}, types));
  {
    const Machine first;
    const Machine second;
    ASSERT_TRUE(first.context->add(module));
    ASSERT_TRUE(second.context->add(module));
    first.expect("native.number", {}, {i32(1)});
    second.expect("native.number", {}, {i32(2)});
    module = nullptr;
    EXPECT_EQ(log.lines.size(), 2u);
  }
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{"create 'a=b'", "create 'a=b'", "destroy 2", "destroy 1", "release"}));
}

TEST(ModuleStates, AFailureIsTheContextsFailure) {
  Log log;
  log.refuse = true;
  Definition definition;
  TypeRegistry types;
  auto module = create_native_module(&with_states(definition, log), {}, types);
  const Machine machine;
  EXPECT_FAILS(UNAVAILABLE, "no more states; while creating the state of native module 'native'",
               machine.context->add(*module));
  *module = nullptr;
  EXPECT_EQ(log.lines, (std::vector<std::string>{"create ''", "release"}));
}

TEST(ModuleStates, NothingIsReleasedWhereNoModuleIsMade) {
  Log log;
  Definition definition({plain("bad", "0x_v", one)});
  EXPECT_FAILS(UNIMPLEMENTED, "'bad'", create(with_states(definition, log)));
  definition.functions[0].convention = "0v_v";
  static const halyard_module_type_t kTypes[] = {{"elsewhere.t", nullptr}};
  definition.types = kTypes;
  definition.type_count = 1;
  EXPECT_FAILS(INVALID_ARGUMENT, "'elsewhere.t'", create(definition));
  EXPECT_TRUE(log.lines.empty());
}

}  // namespace
}  // namespace halyard::vm::test
