// Loading: every check of module-format.md, section 4, the contents of loaded modules, and robustness against
// arbitrary bytes.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "fixtures.h"
#include "module_builder.h"
#include "vm/format/archive.h"
#include "vm/verify/verifier.h"

namespace halyard::vm::test {
namespace {

Result<Ref<LoadedModule>> load(const ModuleParts& parts) { return test::load(parts.build()); }

// Types that compiled modules refer to.
const TypeRegistry& hal_types() {
  static const ObjectType kTypes[] = {
      {"hal.allocator", nullptr}, {"hal.buffer", nullptr},         {"hal.buffer_view", nullptr},
      {"hal.channel", nullptr},   {"hal.command_buffer", nullptr}, {"hal.device", nullptr},
      {"hal.event", nullptr},     {"hal.executable", nullptr},     {"hal.fence", nullptr},
      {"hal.file", nullptr},      {"hal.semaphore", nullptr}};
  static const TypeRegistry registry = [] {
    TypeRegistry types;
    for (const ObjectType& type : kTypes) types.add(&type);
    return types;
  }();
  return registry;
}

TEST(ModuleLoad, EverythingOfAGoodModule) {
  ModuleParts parts;
  parts.name = "demo";
  parts.version = 7;
  parts.features = kFeatureF32;
  parts.attributes = {{"a", "1"}, {"b", "2"}};
  parts.types = {"i8",         "i16",     "i32", "i64", "f32", "f64", "!vm.opaque", "!vm.list<!vm.list<i8>>",
                 "!vm.buffer", "!vm.list"};
  parts.dependencies = {{"hal", 5, 1}, {"extra", 0, 2}, {"third", 1, 0}};
  parts.imports = {{"hal.f", "0i_i", 1}, {"extra.g", std::nullopt, 2}};
  parts.exports = {{"first", 1}, {"second", 0}, {"again", 1}};
  parts.functions.resize(2);
  parts.functions[0].values = 3;
  parts.functions[1] = {CodeBuilder().block().ret({0}).bytes(), "0i_i", 5, 9, 1, kFeatureF32,
                        {{"key", "value"}, {"key", "no"}},      {},     {}};
  parts.rodata = {{{1, 2, 3}}, {{4, 5}, false}, {{}, true}};
  parts.global_bytes = 24;
  parts.global_refs = 3;
  parts.debug_names = {"inner"};

  const auto loaded = ASSERT_VALUE(load(parts));
  const BytecodeModule& module = *loaded;
  EXPECT_EQ(module.kind(), ModuleKind::bytecode);
  EXPECT_EQ(module.name(), "demo");
  EXPECT_EQ(module.version(), 7u);
  EXPECT_EQ(module.bytecode_version(), 17u);
  EXPECT_EQ(module.features(), kFeatureF32);
  ASSERT_EQ(module.attributes().size(), 2u);
  EXPECT_EQ(module.attributes()[1].key, "b");
  EXPECT_EQ(module.attributes()[1].value, "2");
  EXPECT_EQ(module.global_bytes(), 24u);
  EXPECT_EQ(module.global_refs(), 3u);

  const std::vector<ElementType> types = {{ValueType::i8, nullptr},
                                          {ValueType::i16, nullptr},
                                          {ValueType::i32, nullptr},
                                          {ValueType::i64, nullptr},
                                          {ValueType::f32, nullptr},
                                          {ValueType::f64, nullptr},
                                          {},
                                          {ValueType::none, &List::kType},
                                          {ValueType::none, &Buffer::kType},
                                          {ValueType::none, &List::kType}};
  EXPECT_TRUE(std::ranges::equal(module.types(), types));
  EXPECT_EQ(module.type_names()[7], "!vm.list<!vm.list<i8>>");

  ASSERT_EQ(module.dependencies().size(), 3u);
  EXPECT_EQ(module.dependencies()[0].name, "hal");
  EXPECT_EQ(module.dependencies()[0].minimum_version, 5u);
  EXPECT_TRUE(module.dependencies()[0].required);
  EXPECT_FALSE(module.dependencies()[0].optional);
  EXPECT_FALSE(module.dependencies()[1].required);
  EXPECT_TRUE(module.dependencies()[1].optional);
  EXPECT_FALSE(module.dependencies()[2].required);
  EXPECT_FALSE(module.dependencies()[2].optional);

  ASSERT_EQ(module.imports().size(), 2u);
  EXPECT_EQ(module.imports()[0].name, "hal.f");
  EXPECT_EQ(module.imports()[0].convention, "0i_i");
  EXPECT_FALSE(module.imports()[0].optional);
  EXPECT_EQ(module.imports()[1].convention, "");
  EXPECT_TRUE(module.imports()[1].optional);

  ASSERT_EQ(module.exports().size(), 3u);
  EXPECT_EQ(module.exports()[0].name, "first");
  EXPECT_EQ(module.exports()[0].function, 1u);
  EXPECT_EQ(module.exports()[0].convention, "0i_i");
  EXPECT_EQ(module.exports()[0].attribute("key"), "value");
  EXPECT_EQ(module.exports()[0].attribute("absent"), "");
  EXPECT_EQ(module.exports()[1].convention, "0v_v");

  ASSERT_EQ(module.functions().size(), 2u);
  EXPECT_EQ(module.functions()[0].value_registers, 4);  // 3, rounded up
  EXPECT_EQ(module.functions()[0].ref_registers, 1);    // 0, rounded up
  EXPECT_EQ(module.functions()[1].value_registers, 8);
  EXPECT_EQ(module.functions()[1].ref_registers, 16);
  EXPECT_EQ(module.functions()[1].features, kFeatureF32);
  EXPECT_EQ(module.functions()[1].block_count, 1);
  EXPECT_EQ(module.functions()[1].convention, "0i_i");
  EXPECT_TRUE(std::ranges::equal(module.functions()[1].bytecode, parts.functions[1].code));

  ASSERT_EQ(module.rodata().size(), 3u);
  EXPECT_TRUE(std::ranges::equal(module.rodata()[0]->span(), std::vector<uint8_t>{1, 2, 3}));
  EXPECT_TRUE(std::ranges::equal(module.rodata()[1]->span(), std::vector<uint8_t>{4, 5}));
  EXPECT_EQ(module.rodata()[2]->length(), 0u);
  EXPECT_FALSE(module.rodata()[0]->is_mutable());

  EXPECT_EQ(module.function_name(0), "second");
  EXPECT_EQ(module.function_name(1), "first");
  EXPECT_EQ(module.function_name(2), "");
}

TEST(ModuleLoad, FunctionsThatAreNotExportedHaveTheirDebugName) {
  ModuleParts parts;
  parts.functions.resize(2);
  parts.debug_names = {"inner"};
  const auto module = ASSERT_VALUE(load(parts));
  EXPECT_EQ(module->function_name(0), "inner");
  EXPECT_EQ(module->function_name(1), "");
}

TEST(ModuleLoad, RodataKeepsTheFileAlive) {
  bool released = false;
  ModuleParts parts = one_function({});
  parts.rodata = {{{42}, false}, {{43}, true}};
  const std::vector<uint8_t> file = parts.build();
  for (const size_t shift : {0, 1}) {  // in place, and with copied metadata
    std::vector<uint8_t> memory(file.size() + 64);
    const size_t start = (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 + shift;
    ASSERT_LE(start + file.size(), memory.size());
    std::ranges::copy(file, memory.begin() + static_cast<ptrdiff_t>(start));
    released = false;
    auto module = ASSERT_VALUE(LoadedModule::load(
        Bytes::borrow(std::span(memory).subspan(start, file.size()), [&] { released = true; }),
        TypeRegistry()));
    Ref<Buffer> external = module->rodata()[0];
    Ref<Buffer> embedded = module->rodata()[1];
    module = nullptr;
    EXPECT_FALSE(released);
    EXPECT_EQ(external->span()[0], 42);
    EXPECT_EQ(embedded->span()[0], 43);
    embedded = nullptr;
    EXPECT_FALSE(released);
    external = nullptr;
    EXPECT_TRUE(released);
  }
}

TEST(ModuleLoad, Versions) {
  const struct {
    uint32_t word;
    uint32_t major;  // 0: refused
    const char* message;
  } kVersions[] = {{0x000F0000, 15, ""},          {0x00100000, 16, ""},    {0x00110000, 17, ""},
                   {0x000E0000, 0, "14.0"},       {0x00630000, 0, "99.0"}, {0x000F0001, 0, "15.1"},
                   {0x00110002, 0, "17.2"},       {0, 0, "0.0"},           {17, 0, "0.17"},
                   {0xFFFFFFFF, 0, "65535.65535"}};
  for (const auto& version : kVersions) {
    ModuleParts parts = one_function({});
    parts.bytecode_version = version.word;
    const auto module = load(parts);
    if (version.major != 0) {
      ASSERT_OK(module);
      EXPECT_EQ((*module)->bytecode_version(), version.major);
      continue;
    }
    EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("bytecode version {}", version.message), module);
    EXPECT_FAILS(
        INVALID_ARGUMENT,
        "15.0 (made by IREE 3.1 to 3.9), 16.0 (made by IREE 3.10), 17.0 (made by IREE 3.11 and later)",
        module);
  }
}

TEST(ModuleLoad, RequirementsDependOnTheVersion) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    for (uint32_t bit = 0; bit < 32; ++bit) {
      ModuleParts parts = one_function({});
      parts.bytecode_version = version << 16;
      parts.features = 1u << bit;
      if (bit < 2 || (bit < 4 && version == 17)) {
        EXPECT_OK(load(parts)) << version << ' ' << bit;
      } else {
        EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("features that bytecode {} does not have", version),
                     load(parts));
      }
    }
  }
  ModuleParts parts = one_function({});
  parts.bytecode_version = 15u << 16;
  parts.features = 0x2F;
  EXPECT_FAILS(INVALID_ARGUMENT, "YIELD, UNWIND, bit 5", load(parts));
  parts.bytecode_version = 99u << 16;
  EXPECT_FAILS(INVALID_ARGUMENT, "bytecode version 99.0", load(parts));
}

TEST(ModuleLoad, EmptyNames) {
  const auto refused = [](auto change, std::string_view message) {
    ModuleParts parts = one_function({});
    change(parts);
    return fails_with(load(parts), Code::INVALID_ARGUMENT, message);
  };
  EXPECT_TRUE(refused([](ModuleParts& parts) { parts.name = ""; }, "the module's name is empty"));
  EXPECT_TRUE(refused([](ModuleParts& parts) { parts.types = {"i32", ""}; }, "'types[1]' is empty"));
  EXPECT_TRUE(refused([](ModuleParts& parts) { parts.dependencies = {{""}}; }, "'dependencies[0]' is empty"));
  EXPECT_TRUE(refused([](ModuleParts& parts) { parts.imports = {{"", "0v_v"}}; },
                      "'imported_functions[0]' is empty"));
  EXPECT_TRUE(
      refused([](ModuleParts& parts) { parts.exports = {{"", 0}}; }, "'exported_functions[0]' is empty"));
}

TEST(ModuleLoad, ExternalRodataLiesInTheFile) {
  const auto loaded = [](uint64_t offset, uint64_t length) {
    ModuleParts parts = one_function({});
    parts.rodata = {{std::vector<uint8_t>(10, 1), false, offset, length}};
    return load(parts);
  };
  EXPECT_OK(loaded(0, 10));
  EXPECT_OK(loaded(10, 0));
  EXPECT_OK(loaded(3, 7));
  constexpr std::string_view kPastTheEnd = "exceeds the file";
  EXPECT_FAILS(INVALID_ARGUMENT, kPastTheEnd, loaded(3, 8));
  EXPECT_FAILS(INVALID_ARGUMENT, kPastTheEnd, loaded(11, 0));
  EXPECT_FAILS(INVALID_ARGUMENT, kPastTheEnd, loaded(0, 11));
  EXPECT_FAILS(INVALID_ARGUMENT, kPastTheEnd, loaded(~uint64_t{0}, 1));  // the sum wraps
  EXPECT_FAILS(INVALID_ARGUMENT, kPastTheEnd, loaded(1, ~uint64_t{0}));
  EXPECT_FAILS(INVALID_ARGUMENT, kPastTheEnd, loaded(~uint64_t{0} - 63, 64));
}

TEST(ModuleLoad, RodataBasePastTheEndOfTheFile) {
  ModuleParts parts = one_function({});
  parts.rodata = {{{}, false}};
  std::vector<uint8_t> file = parts.build();  // no external bytes: the file ends with the FlatBuffer
  if (file.size() % 64 != 0) {
    EXPECT_FAILS(INVALID_ARGUMENT, "exceeds the file", test::load(file));
  }
  file.resize((file.size() + 63) / 64 * 64);
  EXPECT_OK(test::load(file));
}

TEST(ModuleLoad, SignaturesMatchFunctions) {
  ModuleParts parts = one_function({});
  parts.signature_count = 2;
  EXPECT_FAILS(INVALID_ARGUMENT, "function signatures as functions, found 2 and 1", load(parts));
  parts.exports.clear();
  parts.signature_count = 0;
  EXPECT_FAILS(INVALID_ARGUMENT, "found 0 and 1", load(parts));
}

TEST(ModuleLoad, ExportsNameFunctions) {
  for (const int ordinal : {1, 1000, -1, INT32_MIN}) {
    ModuleParts parts = one_function({});
    parts.exports = {{"main", ordinal}};
    EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("export 'main' is function {}", ordinal), load(parts));
  }
}

TEST(ModuleLoad, FunctionDescriptors) {
  const auto refused = [](auto change, std::string_view message) {
    FunctionParts function;
    function.code.resize(8);  // exactly the module's bytecode
    change(function);
    return fails_with(load(one_function(function)), Code::INVALID_ARGUMENT, message);
  };
  EXPECT_TRUE(refused([](FunctionParts& f) { f.blocks = 0; }, "block count 0"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.blocks = -1; }, "block count -1"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.length = 0; }, "bytecode length 0"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.length = -1; }, "bytecode length -1"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.length = INT32_MIN; }, "bytecode length -2147483648"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.offset = -1; }, "bytecode offset -1"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.offset = 1; }, "there are only 8 bytes"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.length = 9; }, "there are only 8 bytes"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.offset = f.length = INT32_MAX; }, "there are only 8 bytes"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.values = -1; }, "value register count -1"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.refs = -1; }, "ref register count -1"));
  EXPECT_TRUE(refused([](FunctionParts& f) { f.refs = 0x4000; }, "ref register count 16384"));
}

TEST(ModuleLoad, RegisterCountsUpToTheLimitsLoad) {
  const auto module = load(one_function({.values = 0x7FFF, .refs = 0x3FFF}));
  ASSERT_TRUE(succeeds(module));  // rejected by the verifier: RESOURCE_EXHAUSTED
  EXPECT_EQ((*module)->functions()[0].value_registers, 0x8000);
  EXPECT_EQ((*module)->functions()[0].ref_registers, 0x4000);
}

TEST(ModuleLoad, FunctionsMayShareBytecode) {
  FunctionParts shared = {.offset = 0};
  ModuleParts parts = one_function({});
  parts.functions.push_back(shared);
  const auto module = ASSERT_VALUE(load(parts));
  EXPECT_EQ(module->functions()[0].bytecode.data(), module->functions()[1].bytecode.data());
}

TEST(ModuleLoad, SharingBytecodeHasALimit) {
  FunctionParts big;
  big.code.resize(1 << 20, 0);
  ModuleParts parts = one_function(big);
  FunctionParts shared = {.offset = 0, .length = 1 << 20};
  shared.code.clear();
  parts.functions.resize(64, shared);
  EXPECT_OK(load(parts));  // 64 MiB
  parts.functions.push_back(shared);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "functions 0 to 64 share 1048576 bytes", load(parts));
}

TEST(ModuleLoad, SharingAttributesHasALimit) {
  FunctionParts function;
  function.attributes.resize(2048, {"k", "v"});
  ModuleParts parts = one_function(function);
  parts.exports.resize(512, {"main", 0});
  EXPECT_OK(load(parts));
  parts.exports.emplace_back("main", 0);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "attributes in all", load(parts));
}

TEST(ModuleLoad, State) {
  ModuleParts parts = one_function({});
  parts.global_bytes = -1;
  EXPECT_FAILS(INVALID_ARGUMENT, "-1 bytes of globals", load(parts));
  parts.global_bytes = 0;
  parts.global_refs = -5;
  EXPECT_FAILS(INVALID_ARGUMENT, "-5 ref globals", load(parts));
}

TEST(ModuleLoad, UnknownTypes) {
  for (const char* name :
       {"!nope.type", "i1", "vm.buffer", "!vm.ref<!vm.buffer>", "!", "index", "!vm.Buffer"}) {
    ModuleParts parts = one_function({});
    parts.types = {"i32", name};
    EXPECT_FAILS(NOT_FOUND, fmt::format("type '{}' (types[1]) is unknown", name), load(parts));
    EXPECT_FAILS(NOT_FOUND, "i8, i16, i32, i64, f32, f64, !vm.opaque, !vm.buffer, !vm.list", load(parts));
  }
  ModuleParts parts = one_function({});
  parts.types = {"!vm.bufer"};
  EXPECT_FAILS(NOT_FOUND, "did you mean '!vm.buffer'?", load(parts));
}

TEST(ModuleLoad, RegisteredTypes) {
  ModuleParts parts = one_function({});
  parts.types = {"!hal.buffer"};
  const auto module = ASSERT_VALUE(test::load(parts.build(), hal_types()));
  EXPECT_EQ(module->types()[0].object, hal_types().find("hal.buffer"));
  EXPECT_EQ(hal_types().find("!hal.buffer"), nullptr);
  EXPECT_EQ(hal_types().find("hal.nothing"), nullptr);
}

TEST(ModuleLoad, ErrorsNameTheModule) {
  ModuleParts parts = one_function({});
  parts.global_bytes = -1;
  EXPECT_FAILS(INVALID_ARGUMENT, "loading module 'test'", load(parts));
}

TEST(ModuleLoad, EagerVerificationRefusesABadBody) {
  const std::vector<uint8_t> file = one_function({.code = {0x79, 0xFF, 0}}).build();
  EXPECT_OK(test::load(file));
  EXPECT_FAILS(INVALID_ARGUMENT, "at test.main+00000001",
               LoadedModule::load(Bytes::copy(file), {}, {.verify_eagerly = true}));
}

TEST(ModuleLoad, FunctionsAreVerifiedWhenFirstUsed) {
  ModuleParts parts = one_function({});
  FunctionParts bad = {.code = {0x79, 0xFF, 0}};
  parts.functions.push_back(bad);
  const auto module = ASSERT_VALUE(load(parts));
  const auto first = ASSERT_VALUE(module->code(0));
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(first, *module->code(0));
  EXPECT_FAILS(INVALID_ARGUMENT, "at test@1+00000001", module->code(1));
  EXPECT_FAILS(INVALID_ARGUMENT, "has no function 2", module->code(2));
}

TEST(Module, AStopWordEndsEagerVerification) {
  const auto file = one_function({}).build();
  uint32_t stop = 0;
  const auto loaded = [&](bool eagerly) {
    return LoadedModule::load(Bytes::copy(file), {}, {.verify_eagerly = eagerly, .stop = &stop});
  };
  EXPECT_OK(loaded(true));
  stop = static_cast<uint32_t>(Code::DEADLINE_EXCEEDED);
  EXPECT_FAILS(DEADLINE_EXCEEDED, "while functions were verified", loaded(true));
  EXPECT_OK(loaded(false));
}

TEST(Module, FindsExports) {
  ModuleParts parts = one_function({});
  parts.functions.push_back({CodeBuilder().block().ret({0}).bytes(), "0i_i", 1});
  parts.exports = {{"main", 0}, {"twice", 0}, {"twice", 1}};
  const auto loaded = ASSERT_VALUE(load(parts));
  const Module& module = *loaded;
  EXPECT_EQ(module.find_export("main"), &module.exports()[0]);
  EXPECT_EQ(module.find_export("twice"), &module.exports()[1]);  // the first
  EXPECT_EQ(module.find_export("Main"), nullptr);
  EXPECT_EQ(module.find_export(""), nullptr);
}

// Up to twelve exports are listed, unless one of them is close.
TEST(Module, MessagesListExports) {
  ModuleParts parts = one_function({});
  parts.exports.clear();
  EXPECT_FAILS(NOT_FOUND, "no function 'zzzzzz' in module 'test'",
               Result<const Export*>(ASSERT_VALUE(load(parts))->no_export("zzzzzz")));
  for (int i = 0; i < 12; ++i) parts.exports.emplace_back(fmt::format("export{}", i), 0);
  const Result<const Export*> listed = ASSERT_VALUE(load(parts))->no_export("zzzzzz");
  EXPECT_FAILS(NOT_FOUND, "; it exports export0, export1, ", listed);
  EXPECT_FAILS(NOT_FOUND, "export10, export11", listed);
  const Result<const Export*> close = ASSERT_VALUE(load(parts))->no_export("exort3");
  EXPECT_FAILS(NOT_FOUND, "did you mean 'export", close);
  EXPECT_EQ(close.error().message().find("it exports"), std::string::npos);
  parts.exports.emplace_back("export12", 0);
  const Result<const Export*> many = ASSERT_VALUE(load(parts))->no_export("zzzzzz");
  EXPECT_EQ(many.error().message().find("it exports"), std::string::npos);
}

TEST(Module, ResolvesImports) {
  ModuleParts parts = one_function({});
  parts.functions.push_back({CodeBuilder().block().ret({0}).bytes(), "0i_i", 1});
  parts.functions.push_back({CodeBuilder().block().ret().bytes(), std::nullopt});
  parts.exports = {{"main", 0}, {"twice", 0}, {"twice", 1}, {"bare", 2}};
  const auto loaded = ASSERT_VALUE(load(parts));
  const Module& module = *loaded;
  EXPECT_EQ(module.resolve("main", "0v_v").value(), &module.exports()[0]);
  EXPECT_EQ(module.resolve("main", "").value(), &module.exports()[0]);
  EXPECT_EQ(module.resolve("twice", "").value(), &module.exports()[1]);
  EXPECT_EQ(module.resolve("twice", "0i_i").value(), &module.exports()[2]);
  EXPECT_EQ(module.resolve("bare", "").value(), &module.exports()[3]);
  EXPECT_FAILS(INCOMPATIBLE, "has it as ''", module.resolve("bare", "0v_v"));  // absent is not "0v_v"
  EXPECT_FAILS(INCOMPATIBLE, "'test.main' is imported as '0v', but the module has it as '0v_v'",
               module.resolve("main", "0v"));
  EXPECT_FAILS(INCOMPATIBLE, "'0v_v', '0i_i'", module.resolve("twice", "0f_f"));
  EXPECT_FAILS(NOT_FOUND, "did you mean 'main'?", module.resolve("mian", ""));
}

// Loads, verifies and decodes as much as possible. Any status with a message is accepted; code that trusted
// the file would read outside of it, which ends the process or is reported by a sanitizer. Returns how many
// functions are good.
size_t load_and_decode(std::span<const uint8_t> file) {
  const auto module = LoadedModule::load(Bytes::copy(file), hal_types());
  if (!module) {
    EXPECT_NE(module.error().code(), Code::OK);
    EXPECT_FALSE(module.error().message().empty());
    return 0;
  }
  size_t good = 0;
  for (uint32_t i = 0; i < (*module)->functions().size(); ++i) {
    good += (*module)->code(i).has_value();
    (void)(*module)->function_name(i);
  }
  for (const Ref<Buffer>& segment : (*module)->rodata()) {
    uint64_t sum = 0;
    for (const uint8_t byte : segment->span()) sum += byte;
    EXPECT_LE(sum, segment->length() * 255);
  }
  const Convention provider = Convention::parse("0iCrID_i").value();
  const std::vector<const Convention*> providers((*module)->imports().size(), &provider);
  (void)check_import_calls(**module, providers);
  return good;
}

// Contains one of each part that a reader could misread.
std::vector<uint8_t> everything_module() {
  ModuleParts parts;
  parts.features = 3;
  parts.attributes = {{"key", "value"}};
  parts.types = {"i32", "!vm.buffer", "!hal.fence"};
  parts.dependencies = {{"hal", 1}};
  parts.imports = {{"hal.f", "0rCiID_i"}, {"hal.g", std::nullopt}};
  parts.exports = {{"main", 0}, {"other", 1}};
  parts.rodata = {{{1, 2, 3}}, {{4, 5, 6, 7}, false}};
  parts.global_bytes = 16;
  parts.global_refs = 1;
  parts.debug_names = {"one", "two"};
  CodeBuilder code;
  code.block().op(Op::const_i32).u32(7).u16(0);
  code.op(Op::global_store_i64).u32(8).u16(2);
  code.op(Op::global_load_ref).u32(0).u32(1).u16(moved(0));
  code.op(Op::const_ref_rodata).u32(1).u16(ref(1));
  code.op(Op::switch_i32, {0, 1}).list({0, 1, 2}).u16(3);
  code.op(Op::add_f64, {2, 4, 6});
  code.op(Op::call_variadic).u32(kImportBit).list({0xFFFF, 2}).list({moved(0), 0, 2, 1, 4}).list({0});
  code.op(Op::call).u32(kImportBit | 1).list({0}).list({});
  code.op(Op::call).u32(1).list({0, 2}).list({4});
  code.op(Op::trace).string("event").list({0, ref(1)});
  code.op(Op::br_table).u16(0);
  const uint32_t targets = code.pc();
  const auto finish = [&](uint32_t target) {
    CodeBuilder body = code;
    body.u32(target).remap({{0, 1}}).u16(2).u32(target).remap({}).u32(target).remap({{ref(0), ref(1)}});
    return body;
  };
  CodeBuilder body = finish(0);
  body = finish(body.pc());
  body.block().op(Op::fail).u16(0).string("message");
  EXPECT_GT(body.pc(), targets);
  parts.functions.push_back({body.bytes(), "0ir_v", 8, 2, 2, 3, {{"iree.abi.declaration", "sync"}}});
  parts.functions.push_back({CodeBuilder().block().ret({2}).bytes(), "0iI_I", 4});
  return parts.build();
}

TEST(UntrustedModule, TheSubjectIsGood) {
  const auto module = ASSERT_VALUE(test::load(everything_module(), hal_types()));
  for (uint32_t i = 0; i < 2; ++i) EXPECT_OK(verify_function(*module, i));
}

TEST(UntrustedModule, CutAnywhere) {
  const std::vector<uint8_t> file = everything_module();
  const uint64_t flatbuffer_end = 4 + uint64_t{file[0]} + (uint64_t{file[1]} << 8);
  for (size_t size = 0; size < file.size(); ++size) {
    const auto module = LoadedModule::load(Bytes::copy(std::span(file).first(size)), hal_types());
    EXPECT_FAILS(INVALID_ARGUMENT, "", module) << size;
    EXPECT_FAILS(INVALID_ARGUMENT, size >= flatbuffer_end ? "was cut off" : "", module);
  }
}

TEST(UntrustedModule, AnyByteChanged) {
  std::vector<uint8_t> file = everything_module();
  for (size_t i = 0; i < file.size(); ++i) {
    const uint8_t original = file[i];
    for (const int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF, 0x7F, 0xFE}) {
      file[i] = static_cast<uint8_t>(original ^ change);
      load_and_decode(file);
    }
    for (const int value : {0, 0x7F, 0xFF}) {
      file[i] = static_cast<uint8_t>(value);
      load_and_decode(file);
    }
    file[i] = original;
  }
  EXPECT_EQ(load_and_decode(file), 2u);
}

TEST(UntrustedModule, AnyWordChanged) {
  std::vector<uint8_t> file = everything_module();
  for (size_t i = 0; i + 4 <= file.size(); i += 4) {
    uint32_t original = 0;
    std::memcpy(&original, &file[i], 4);
    for (const uint32_t value :
         {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0xFFFFFFFCu, original + 4, original - 4,
          static_cast<uint32_t>(file.size()), static_cast<uint32_t>(file.size() - i)}) {
      std::memcpy(&file[i], &value, 4);
      load_and_decode(file);
    }
    std::memcpy(&file[i], &original, 4);
  }
  EXPECT_EQ(load_and_decode(file), 2u);
}

TEST(UntrustedModule, ManyBytesChangedAtRandom) {
  const std::vector<uint8_t> good = everything_module();
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    std::vector<uint8_t> file = good;
    for (uint32_t n = 1 + random() % 8; n > 0; --n)
      file[random() % file.size()] = static_cast<uint8_t>(random());
    load_and_decode(file);
  }
}

std::vector<std::filesystem::path> compiled_modules() {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = fixtures() / "compiled";
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".vmfb") paths.push_back(entry.path());
  return paths;
}

// Checks the module, and modules in its rodata.
void expect_good(const Ref<Bytes>& bytes, const std::string& name, size_t& nested) {
  const auto module = LoadedModule::load(bytes, hal_types());
  ASSERT_TRUE(succeeds(module)) << name;
  for (uint32_t i = 0; i < (*module)->functions().size(); ++i)
    EXPECT_OK(verify_function(**module, i)) << name << " function " << i;
  for (const Ref<Buffer>& segment : (*module)->rodata()) {
    if (segment->length() < 4 || std::memcmp(segment->data(), "PK\3\4", 4) != 0) continue;
    ++nested;
    expect_good(Bytes::borrow(segment->span(), {}), name + " (nested)", nested);
  }
}

TEST(CompiledModules, LoadAndVerify) {
  const auto paths = compiled_modules();
  if (paths.empty()) GTEST_SKIP() << "no compiled modules in " << fixtures();
  size_t nested = 0;
  for (const auto& path : paths) {
    auto bytes = ASSERT_VALUE(Bytes::map_file(path));
    expect_good(bytes, path.filename(), nested);
  }
  EXPECT_GT(nested, 0u);
}

TEST(CompiledModules, CutAnywhere) {
  const auto paths = compiled_modules();
  if (paths.empty()) GTEST_SKIP() << "no compiled modules in " << fixtures();
  for (const auto& path : paths) {
    if (std::filesystem::file_size(path) > 32 * 1024) continue;
    auto bytes = ASSERT_VALUE(Bytes::map_file(path));
    for (size_t size = 0; size < bytes->size(); size += 7) load_and_decode(bytes->span().first(size));
  }
}

}  // namespace
}  // namespace halyard::vm::test
