// The modules that the assembler writes, extensions of the language, and equality with modules made by the
// reference assembler. Instructions and errors are tested in other files.
#include <cstring>
#include <filesystem>

#include "assembler_testing.h"
#include "fixtures.h"

namespace halyard::vm {
namespace {

// ---- The module
// -------------------------------------------------------------------------------------------------

TEST(Assembler, ExampleOfTheFormat) {  // module-format.md 14
  const auto result = assembled(
      "vm.module @t version 1\n"
      "vm.export @add\n"
      "vm.func @add(%i0: i32, %i1: i32) -> (i32) {\n"
      "  %i2 = vm.add.i32 %i0, %i1\n"
      "  vm.return %i2\n"
      "}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(std::string(result.bytes.begin() + 8, result.bytes.begin() + 12), "IREE");
  uint32_t prefix = 0;
  std::memcpy(&prefix, result.bytes.data(), 4);
  EXPECT_EQ(prefix, result.bytes.size() - 4);
  EXPECT_EQ(result.module->name()->str(), "t");
  EXPECT_EQ(result.module->version(), 1u);
  EXPECT_EQ(result.module->bytecode_version(), 0x00110000u);
  EXPECT_EQ(static_cast<uint32_t>(result.module->requirements()), 0u);
  EXPECT_EQ(result.code(0),
            (ByteVector{0x79, 0x22, 0x00, 0x00, 0x01, 0x00, 0x02, 0x00, 0x5A, 0x00, 0x01, 0x00, 0x02, 0x00}));
  EXPECT_EQ(result.module->bytecode_data()->size(), 16u);
  const auto* descriptor = result.module->function_descriptors()->Get(0);
  EXPECT_EQ(descriptor->block_count(), 1);
  EXPECT_EQ(descriptor->i32_register_count(), 3);
  EXPECT_EQ(descriptor->ref_register_count(), 0);
  EXPECT_EQ(result.convention(0), "0ii_i");
  EXPECT_EQ(result.module->exported_functions()->Get(0)->local_name()->str(), "add");
  // Absent when empty.
  EXPECT_EQ(result.module->attributes(), nullptr);
  EXPECT_EQ(result.module->dependencies(), nullptr);
  EXPECT_EQ(result.module->imported_functions(), nullptr);
  EXPECT_EQ(result.module->rodata_segments(), nullptr);
  EXPECT_EQ(result.module->module_state(), nullptr);
  EXPECT_EQ(result.module->types(), nullptr);
}

TEST(Assembler, ExampleOfTheInstructionSet) {  // isa.md 2.2
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @f(%i0: i32, %i1: i32, %r0: !vm.buffer, %r1: !vm.buffer) -> (i32, !vm.buffer) {\n"
      "%i2 = add.i32 %i0, %i1\n"
      "br ^bb1(%i2 -> %i0, %R1->%r0)\n"
      "^bb1:\n"
      "return %i0, %R0\n"
      "}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.code(0),
            (ByteVector{0x79, 0x22, 0, 0, 1, 0,    2, 0,    0x56, 0x18, 0, 0, 0, 0, 2, 0,
                        2,    0,    0, 0, 1, 0xC0, 0, 0x80, 0x79, 0x5A, 2, 0, 0, 0, 0, 0xC0}));
  const auto* descriptor = result.module->function_descriptors()->Get(0);
  EXPECT_EQ(descriptor->bytecode_length(), 32);
  EXPECT_EQ(descriptor->block_count(), 2);
  EXPECT_EQ(descriptor->i32_register_count(), 3);
  EXPECT_EQ(descriptor->ref_register_count(), 2);
  EXPECT_EQ(result.convention(0), "0iirr_ir");
}

TEST(Assembler, FunctionsArePaddedToEightAndPadsAreRelativeToTheirStart) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @a() -> () {\nvm.return\n}\n"                             // 79 5A 0000: 4 bytes
      "vm.func @b() -> () {\n%i0 = vm.const.i32.zero\nvm.return\n}\n");  // 79 0C 0000 5A pad 0000
  ASSERT_TRUE(result.module);
  const auto* b = result.module->function_descriptors()->Get(1);
  EXPECT_EQ(result.code(0), (ByteVector{0x79, 0x5A, 0, 0}));
  EXPECT_EQ(b->bytecode_offset(), 8);
  EXPECT_EQ(result.code(1), (ByteVector{0x79, 0x0C, 0, 0, 0x5A, 0, 0, 0}));
  EXPECT_EQ(result.module->bytecode_data()->size(), 16u);
}

TEST(Assembler, VersionWordAndNewInstructions) {
  const std::string plain = in_function("");
  EXPECT_EQ(assembled(plain, 15).module->bytecode_version(), 0x000F0000u);
  EXPECT_EQ(assembled(plain, 16).module->bytecode_version(), 0x00100000u);
  EXPECT_EQ(assembled(plain, 17).module->bytecode_version(), 0x00110000u);
  error_of(plain, Code::INVALID_ARGUMENT, 14);
  error_of(plain, Code::INVALID_ARGUMENT, 18);

  const std::string assign = in_function("%r1 = vm.assign.ref %r0");
  assembled(assign, 16);
  EXPECT_EQ(error_of(assign, Code::INVALID_ARGUMENT, 15),
            "t.vmasm:3: vm.assign.ref needs bytecode version 16; this module is assembled for version 15");
  const std::string yieldable = in_function("vm.call.yieldable @f() -> ^bb1()\n^bb1:");
  assembled(yieldable, 17);
  EXPECT_EQ(
      error_of(yieldable, Code::INVALID_ARGUMENT, 16),
      "t.vmasm:3: vm.call.yieldable needs bytecode version 17; this module is assembled for version 16");
}

TEST(Assembler, RequirementsComeFromTheInstructions) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @none(%i0: f32) -> (f32) {\nvm.return %i0\n}\n"
      "vm.func @f32(%i0: f32) -> () {\n%i1 = vm.add.f32 %i0, %i0\nvm.return\n}\n"
      "vm.func @f64(%i0:1: f64) -> () {\n%i2 = vm.trunc.f64.f32 %i0:1\nvm.return\n}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->function_descriptors()->Get(0)->requirements(), 0u);
  EXPECT_EQ(result.module->function_descriptors()->Get(1)->requirements(), 1u);
  EXPECT_EQ(result.module->function_descriptors()->Get(2)->requirements(), 2u);
  EXPECT_EQ(static_cast<uint32_t>(result.module->requirements()), 3u);
}

TEST(Assembler, ExportsImportsAndAliases) {
  const auto result = assembled(
      "vm.export @b = @second\n"
      "vm.module @m version 0x10\n"
      "vm.import @lib.f cconv \"0i_i\"\n"
      "vm.import optional @lib.g cconv \"\"\n"
      "vm.func @first() -> () {\nvm.return\n}\n"
      "vm.func @second() -> () {\nvm.return\n}\n"
      "vm.export @first\n"
      "vm.export @also = @second\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->version(), 16u);
  const auto* exports = result.module->exported_functions();
  ASSERT_EQ(exports->size(), 3u);
  EXPECT_EQ(exports->Get(0)->local_name()->str(), "b");
  EXPECT_EQ(exports->Get(0)->internal_ordinal(), 1);
  EXPECT_EQ(exports->Get(1)->local_name()->str(), "first");
  EXPECT_EQ(exports->Get(1)->internal_ordinal(), 0);
  EXPECT_EQ(exports->Get(2)->internal_ordinal(), 1);
  const auto* imports = result.module->imported_functions();
  ASSERT_EQ(imports->size(), 2u);
  EXPECT_EQ(imports->Get(0)->full_name()->str(), "lib.f");
  EXPECT_EQ(imports->Get(0)->signature()->calling_convention()->str(), "0i_i");
  EXPECT_EQ(imports->Get(0)->flags(), schema::ImportFlags::REQUIRED);
  EXPECT_EQ(imports->Get(1)->signature()->calling_convention()->str(), "");
  EXPECT_EQ(imports->Get(1)->flags(), schema::ImportFlags::OPTIONAL);
}

TEST(Assembler, GlobalsAreLaidOutByWidth) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.global.i64 private mutable @a = 0 : i64\n"
      "vm.global.i32 mutable @b\n"
      "vm.global.f64 @c\n"
      "vm.global.f32 @d = 0 : f32\n"
      "vm.global.i32 @e\n"
      "vm.func @f() -> () {\n"
      "%i0:1 = vm.global.load.i64 @a\n"
      "%i0 = vm.global.load.f32 @b\n"  // same width: accepted
      "vm.global.store.f64 %i0:1, @c\n"
      "vm.global.store.i32 %i0, @d\n"
      "%i0 = vm.global.load.i32 .rwdata[8]\n"
      "vm.return\n}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->module_state()->global_bytes_capacity(), 32);
  EXPECT_EQ(result.module->module_state()->global_ref_count(), 0);
  // b 0, d 4, e 8; a 16, c 24.
  EXPECT_EQ(result.code(0), (ByteVector{0x79, 0x04, 16,   0,    0,  0, 0, 0, 0xE0, 0x00, 0,    0, 0, 0,
                                        0,    0,    0xE1, 0x01, 24, 0, 0, 0, 0,    0,    0x01, 4, 0, 0,
                                        0,    0,    0,    0x00, 8,  0, 0, 0, 0,    0,    0x5A, 0, 0, 0}));
}

TEST(Assembler, StateGrowsWithWhatIsNamedByNumber) {
  const auto result = assembled(in_function(
      "%r0 = vm.global.load.ref .refs[3] : !vm.buffer\n%i0:1 = vm.global.load.i64 .rwdata[0x10]"));
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->module_state()->global_ref_count(), 4);
  EXPECT_EQ(result.module->module_state()->global_bytes_capacity(), 24);
}

TEST(Assembler, TypesAreAddedOnFirstUse) {
  const auto result = assembled(
      "vm.module @m\nvm.type !vm.list<i8>\nvm.type i64\n"
      "vm.func @f() -> () {\n"
      "%i0 = vm.const.i32 1\n"
      "%r0 = vm.list.alloc %i0 : !vm.list<i8>\n"
      "%r0 = vm.list.alloc %i0 : vm.list<!vm.list<i32>>\n"
      "%r1 = vm.list.get.ref %r0, %i0 : vm.buffer\n"
      "%r1 = vm.list.get.ref %r0, %i0 : !vm.buffer\n"
      "%r1 = vm.cast.any.ref %R1 : !vm.ref<?> -> !vm.list<i8>\n"
      "vm.return\n}\n");
  ASSERT_TRUE(result.module);
  std::vector<std::string> names;
  for (const auto* type : *result.module->types()) names.push_back(type->full_name()->str());
  EXPECT_EQ(names, (std::vector<std::string>{"!vm.list<i8>", "i64", "i8", "!vm.list<i32>", "!vm.buffer"}));
}

// ---- Signatures
// -------------------------------------------------------------------------------------------------

TEST(Assembler, CallingConventions) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @a() -> () {\nvm.return\n}\n"
      "vm.func @b(%i0:1: i64, %i2: f32, %r0: !hal.buffer_view, %i3: i32, %r1: !vm.ref<?>) -> (%i0: f64, "
      "!vm.buffer) {\n"
      "vm.fail %i2, \"\"\n}\n"
      "vm.func @c(%i0: i32, %i1:2: i64) -> (f32) {\nvm.fail %i0, \"\"\n}\n"              // without a gap
      "vm.func @d(%i0: i32, %i2:3: i64, %i4: i32) -> (i64) {\nvm.fail %i0, \"\"\n}\n");  // where callers put
                                                                                         // it
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.convention(0), "0v_v");
  EXPECT_EQ(result.convention(1), "0Ifrir_Fr");
  EXPECT_EQ(result.convention(2), "0iI_f");
  EXPECT_EQ(result.convention(3), "0iIi_I");
  EXPECT_EQ(result.module->function_descriptors()->Get(1)->i32_register_count(), 4);
  EXPECT_EQ(result.module->function_descriptors()->Get(1)->ref_register_count(), 2);
  EXPECT_EQ(result.module->function_descriptors()->Get(3)->i32_register_count(), 5);
}

TEST(Assembler, SignatureErrors) {
  const auto header = [](const std::string& text) {
    return "vm.module @m\nvm.func " + text + "\nvm.return\n}\n";
  };
  error_of(header("@f() {"));
  error_of(header("@f() -> ()"));
  error_of(header("@f(%i0) -> () {"));
  error_of(header("@f(%i1: i32) -> () {"));
  error_of(header("@f(%i0: i32, %i0: i32) -> () {"));
  error_of(header("@f(%r1: !vm.buffer) -> () {"));
  error_of(header("@f(%i0: i64) -> () {"));
  error_of(header("@f(%i0:1: i32) -> () {"));
  error_of(header("@f(%i0:2: i64) -> () {"));
  error_of(header("@f(%i0: i32, %i4:5: i64) -> () {"));
  error_of(header("@f(%r0: i32) -> () {"));
  error_of(header("@f(%R0: !vm.buffer) -> () {"));
  error_of(header("@f(%i0: !vm.buffer) -> () {"));
  error_of(header("@f(%i0: int) -> () {"));
  error_of(header("f() -> () {"));
  error_of(header("@f-g() -> () {"));
  error_of(header("@f() -> () { }"));
  error_of(header("@f(%i0: i8) -> () {"), Code::UNIMPLEMENTED);
  error_of(header("@f() -> (i16) {"), Code::UNIMPLEMENTED);
}

// ---- Halyard's additions
// ----------------------------------------------------------------------------------------

TEST(Assembler, Dependencies) {
  const auto result = assembled("vm.dependency @hal 7\nvm.module @m\nvm.dependency @other 0x10 optional\n" +
                                std::string(kFunction));
  ASSERT_TRUE(result.module);
  const auto* dependencies = result.module->dependencies();
  ASSERT_EQ(dependencies->size(), 2u);
  EXPECT_EQ(dependencies->Get(0)->name()->str(), "hal");
  EXPECT_EQ(dependencies->Get(0)->minimum_version(), 7u);
  EXPECT_EQ(dependencies->Get(0)->flags(), schema::ModuleDependencyFlags::REQUIRED);
  EXPECT_EQ(dependencies->Get(1)->minimum_version(), 16u);
  EXPECT_EQ(dependencies->Get(1)->flags(), schema::ModuleDependencyFlags::OPTIONAL);
}

TEST(Assembler, Attributes) {
  const auto result = assembled(
      "vm.attr @x \"z\" \"1\"\nvm.module @m\nvm.module_attr \"author\" \"me, you\"\n"
      "vm.export @x = @f\nvm.attr @x \"a.b\" \"\"\n" +
      std::string(kFunction) + "vm.attr @x \"k\" \"#2\"\n");
  ASSERT_TRUE(result.module);
  ASSERT_EQ(result.module->attributes()->size(), 1u);
  EXPECT_EQ(result.module->attributes()->Get(0)->key()->str(), "author");
  EXPECT_EQ(result.module->attributes()->Get(0)->value()->str(), "me, you");
  std::vector<std::string> attributes;
  for (const auto* attribute : *result.module->function_signatures()->Get(0)->attributes())
    attributes.push_back(attribute->key()->str() + "=" + attribute->value()->str());
  EXPECT_EQ(attributes, (std::vector<std::string>{"a.b=", "k=#2", "z=1"}));  // by key

  const std::string start = "vm.module @m\nvm.export @x = @f\n";
  for (const char* line :
       {"vm.attr @f \"k\" \"v\"", "vm.attr @x \"k\"", "vm.attr @x k v", "vm.attr @x \"\" \"v\"",
        "vm.attr \"k\" \"v\"", "vm.attr @x \"k\" \"v\" \"w\"", "vm.module_attr \"k\""})
    error_of(start + line + "\n" + kFunction);
  error_of(start + "vm.attr @x \"k\" \"v\"\nvm.attr @x \"k\" \"v\"\n" + kFunction);
}

TEST(Assembler, RodataAsHexTextAndModule) {
  const auto result = assembled(
      "vm.module @outer\n"
      "vm.rodata[0] = 4142c3FF\n"
      "vm.rodata[1] =\n"
      "vm.rodata[2] = \"text \\n\"\n"
      "vm.rodata[3] = module {\n"
      "  vm.module @inner version 3\n"
      "  vm.rodata[0] = module {   // modules nest\n"
      "    vm.module @innermost\n"
      "    vm.func @f() -> () {\n"
      "      vm.return\n"
      "    }\n"
      "  }\n"
      "  vm.export @f\n"
      "  vm.func @f(%i0: f32) -> (f32) {\n"
      "    %i0 = vm.neg.f32 %i0\n"
      "    vm.return %i0\n"
      "  }\n"
      "}\n"
      "vm.rodata[4] = \"\"\n"
      "vm.func @f() -> () {\nvm.return\n}\n",
      16);
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.rodata(0), "AB\xC3\xFF");
  EXPECT_EQ(result.rodata(1), "");
  EXPECT_EQ(result.rodata(2), "text \\n");  // no escapes
  EXPECT_EQ(result.rodata(4), "");
  EXPECT_EQ(static_cast<uint32_t>(result.module->requirements()), 0u);

  // A segment is a complete archive with its own names and requirements, and the version of the outer module.
  const std::string inner = result.rodata(3);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(inner.data()), inner.size());
  ASSERT_TRUE(schema::VerifySizePrefixedBytecodeModuleBuffer(verifier));
  const auto* module = schema::GetSizePrefixedBytecodeModule(inner.data());
  EXPECT_EQ(module->name()->str(), "inner");
  EXPECT_EQ(module->version(), 3u);
  EXPECT_EQ(module->bytecode_version(), 16u << 16);
  EXPECT_EQ(static_cast<uint32_t>(module->requirements()), 1u);
  ASSERT_EQ(module->rodata_segments()->size(), 1u);
  EXPECT_EQ(schema::GetSizePrefixedBytecodeModule(module->rodata_segments()->Get(0)->embedded_data()->data())
                ->name()
                ->str(),
            "innermost");
}

TEST(Assembler, RodataIsAlignedFromTheStartOfTheFile) {
  std::string text = "vm.module @m\n";
  for (int i = 0; i < 20; ++i)
    text +=
        "vm.rodata[" + std::to_string(i) + "] = " + std::string(static_cast<size_t>(2 * (i + 1)), 'A') + "\n";
  const auto result = assembled(text + kFunction);
  ASSERT_TRUE(result.module);
  for (const auto* segment : *result.module->rodata_segments())
    EXPECT_EQ((segment->embedded_data()->data() - result.bytes.data()) % 16, 0);
}

TEST(Assembler, ErrorsInNestedModulesNameTheLineOfTheFile) {
  const std::string start = "vm.module @outer\n\nvm.rodata[0] = module {\n";
  EXPECT_EQ(error_of(start + "vm.module @inner\nvm.func @f() -> () {\nvm.bad\nvm.return\n}\n}\n" + kFunction)
                .rfind("t.vmasm:6: unknown instruction 'vm.bad'", 0),
            0u);
  EXPECT_EQ(error_of(start + "vm.module @inner\n" + std::string(kFunction)),
            "t.vmasm:3: the nested module has no end; expected '}' alone on a line");
  error_of(start + "}\n" + kFunction);
  error_of(start + "vm.module @inner\n}\n" + kFunction);
  // Names are not visible between nested modules.
  error_of(
      "vm.module @outer\nvm.import @a.b cconv \"\"\nvm.rodata[0] = module {\nvm.module @inner\n"
      "vm.func @g() -> () {\nvm.call @a.b()\nvm.return\n}\n}\n" +
      std::string(kFunction));
}

TEST(Assembler, NestingIsLimited) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "vm.module @m\nvm.rodata[0] = module {\n";
    text += "vm.module @m\n";
    for (int i = 0; i < depth; ++i) text += std::string(kFunction) + "}\n";
    return text + kFunction;
  };
  assembled(nested(8));
  EXPECT_EQ(error_of(nested(9)), "t.vmasm:18: modules are nested deeper than 8");
  error_of(nested(5000));
}

// ---- Programs
// ---------------------------------------------------------------------------------------------------

// The properties that two modules made from the same text share. In that text, attributes are comments.
std::vector<std::string> facts(const schema::BytecodeModule& module) {
  std::vector<std::string> facts = {module.name()->str(), std::to_string(module.version()),
                                    std::to_string(static_cast<uint32_t>(module.requirements())),
                                    std::to_string(module.bytecode_version())};
  const auto bytes = [](const flatbuffers::Vector<uint8_t>* data) {
    return data ? std::string(data->begin(), data->end()) : "";
  };
  if (module.types())
    for (const auto* type : *module.types()) facts.push_back("type " + type->full_name()->str());
  if (module.imported_functions())
    for (const auto* import : *module.imported_functions())
      facts.push_back(fmt::format("import {} {} {}", import->full_name()->str(),
                                  import->signature()->calling_convention()->str(),
                                  static_cast<uint32_t>(import->flags())));
  if (module.exported_functions())
    for (const auto* item : *module.exported_functions())
      facts.push_back(fmt::format("export {} {}", item->local_name()->str(), item->internal_ordinal()));
  if (module.rodata_segments())
    for (const auto* segment : *module.rodata_segments())
      facts.push_back("rodata " + bytes(segment->embedded_data()));
  if (const auto* state = module.module_state())
    facts.push_back(fmt::format("state {} {}", state->global_bytes_capacity(), state->global_ref_count()));
  for (uint32_t i = 0; i < module.function_descriptors()->size(); ++i) {
    const auto* function = module.function_descriptors()->Get(i);
    facts.push_back(fmt::format(
        "function {} {} {} {} {} {} {}", module.function_signatures()->Get(i)->calling_convention()->str(),
        function->bytecode_offset(), function->bytecode_length(), function->requirements(),
        function->block_count(), function->i32_register_count(), function->ref_register_count()));
  }
  facts.push_back("code " + bytes(module.bytecode_data()));
  return facts;
}

TEST(Assembler, SameAsTheReferenceAssembler) {
  int compared = 0;
  for (const char* folder : {"vmasm", "vmasm/legacy"}) {
    if (!std::filesystem::exists(fixtures() / folder)) GTEST_SKIP() << "no fixtures in " << fixtures();
    for (const auto& entry : std::filesystem::directory_iterator(fixtures() / folder)) {
      auto path = entry.path();
      if (path.extension() != ".vmasm") continue;
      SCOPED_TRACE(path.filename().string());
      const auto ours = assembled(file_text(path));
      const std::string theirs = file_text(path.replace_extension(".vmfb"));
      ASSERT_TRUE(ours.module);
      ASSERT_GT(theirs.size(), 16u);
      const auto expected = facts(*schema::GetBytecodeModule(theirs.data() + 4));
      const auto found = facts(*ours.module);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(found[i] == expected[i]) << expected[i].substr(0, 60);
      ++compared;
    }
  }
  EXPECT_GE(compared, 94);
}

TEST(Assembler, ExamplesOfTheHouse) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(HALYARD_SOURCE_DIR) / "examples")) {
    if (entry.path().extension() != ".vmasm") continue;
    SCOPED_TRACE(entry.path().filename().string());
    assembled(file_text(entry.path()));
    ++count;
  }
  EXPECT_GE(count, 4);
}

// For any truncation or replacement, the result is a module or a message with a line number.
TEST(Assembler, DamagedTextIsAnError) {
  const std::string text =
      "vm.module @m version 1\nvm.type !vm.list<i32>\nvm.rodata[0] = module {\nvm.module @n\nvm.func @g() -> "
      "() {\n"
      "vm.return\n}\n}\nvm.import optional @a.b cconv \"0CiD_v\"\nvm.global.i64 private @g = 0 : "
      "i64\nvm.export @f\n"
      "vm.attr @f \"k\" \"v\"\nvm.func @f(%i0: i32, %r0: !vm.list<i32>) -> (%i0: i32) {\n^bb0:\n"
      "%i1 = vm.select.i32 %i0 ? %i1 : %i2\n%i2:3 = vm.global.load.i64 @g\n"
      "vm.br_table %i0 { default: ^bb1(%i0->%i1), 0: ^bb1() }\n^bb1:\n"
      "vm.call.variadic @a.b segments[2](%i0, %i1)\n%i4:5 = vm.const.f64 0x1.8p1\nvm.trace \"x\", "
      "%R0\nvm.return %i0\n}\n";
  assembled(text);
  const auto check = [](const std::string& damaged) {
    const auto result = assemble(damaged, {17, "t.vmasm"});
    if (!result) {
      EXPECT_EQ(result.error().message().rfind("t.vmasm:", 0), 0u) << result.error().text();
    }
  };
  for (size_t i = 0; i < text.size(); ++i) {
    check(text.substr(0, i));
    for (char c : {'\0', '"', '%', '@', ':', '<', '(', ')', ']', '}', '\n', '9', '-', '\xFF'}) {
      std::string damaged = text;
      damaged[i] = c;
      check(damaged);
    }
  }
}

}  // namespace
}  // namespace halyard::vm
