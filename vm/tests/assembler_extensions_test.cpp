// Extensions of the language (docs/vmasm.md, +) for parts of compiled modules. disassembler_test.cpp tests
// that these forms are printed and survive.
#include "assembler_testing.h"
#include "vm/text/module_view.h"

namespace halyard::vm {
namespace {

const std::string kModule = "vm.module @m\n";

ModuleView view_of(const std::string& text, uint32_t version = 0) {
  auto bytes = assemble(text, {version, "t.vmasm"});
  if (!bytes) ADD_FAILURE() << bytes.error().text() << "\n" << text;
  auto view = ModuleView::open(Bytes::own(bytes ? std::move(*bytes) : std::vector<uint8_t>()));
  if (!view) {
    ADD_FAILURE() << view.error().text() << "\n" << text;
    return {};
  }
  return *std::move(view);
}

std::string function_with(const std::string& facts) {
  return kModule + "vm.func @f(%i0: i32) -> (i32) {\n" + facts + "\nvm.return %i0\n}\n";
}

// ---- Words

TEST(AssemblerExtensions, StringsWithEscapes) {
  const auto result =
      assembled(kModule + "vm.rodata[0] = e\"a\\\"b\\\\c\\n\\t\\x00\\xfF // # \\x22\" // comment\n" +
                "vm.rodata[1] = \"a\\n\"\n" + kFunction);
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.rodata(0), std::string("a\"b\\c\n\t\0\xFF // # \"", 16));
  EXPECT_EQ(result.rodata(1), "a\\n");  // without the e there are no escapes
  for (const char* bad : {"e\"\\\"", "e\"\\q\"", "e\"\\x1\"", "e\"\\xgg\"", "e\"\\x\"", "e\"a\" b", "e \"a\"",
                          "E\"a\"", "e\"a", "e\"\\\\\\\""})
    error_of(kModule + "vm.rodata[0] = " + bad + "\n" + kFunction);
}

TEST(AssemblerExtensions, NamesAsStrings) {
  const auto view = view_of(
      "vm.module @\"the module\"\n"
      "vm.import @e\"a.\\\"b\\\"\" cconv \"0v_v\"\n"
      "vm.import @\"the module:0\" cconv \"0v_v\"\n"
      "vm.export @\"x y\" = @\"f g\"\n"
      "vm.attr @\"x y\" \"k\" \"v\"\n"
      "vm.func @\"f g\"() -> () {\n"
      "vm.call @\"f g\"()\n"
      "vm.call @\"the module.f g\"()\n"
      "vm.call @\"the module\":0()\n"
      "vm.call @\"the module:0\"()\n"
      "vm.call @e\"a.\\\"b\\\"\"()\n"
      "vm.return\n}\n");
  EXPECT_EQ(view.module().name(), "the module");
  EXPECT_EQ(view.module().imports()[0].name, "a.\"b\"");
  EXPECT_EQ(view.module().exports()[0].name, "x y");
  EXPECT_EQ(view.module().exports()[0].attribute("k"), "v");
  EXPECT_TRUE(view.verify(0));
  error_of("vm.module @\"\"\n" + std::string(kFunction));
  error_of(in_function("vm.call @\"f\" ()\nvm.call @\"f:0\"()"));
}

TEST(AssemblerExtensions, ByteOrderMarks) {
  assembled("\xEF\xBB\xBF" + kModule + kFunction);
  EXPECT_EQ(error_of({'\xFF', '\xFE', 'v', '\0', 'm', '\0'}),
            "t.vmasm:1: the text is UTF-16; save it as UTF-8 or ASCII");
  error_of("\xFE\xFF");
}

TEST(AssemblerExtensions, EmptyText) {
  for (const char* text : {"", "\n\n", "// nothing\n# at all"}) {
    const std::string message = error_of(text);
    EXPECT_NE(message.find("the text is empty"), std::string::npos) << message;
    EXPECT_NE(message.find("vm.module @NAME"), std::string::npos) << message;
    EXPECT_EQ(message.find(":0:"), std::string::npos) << message;
  }
}

// ---- Directives

TEST(AssemblerExtensions, BytecodeVersionInTheText) {
  const auto text = [](const std::string& outer, const std::string& inner) {
    return "vm.module @m version 2" + outer + "\nvm.rodata[0] = module {\nvm.module @n" + inner + "\n" +
           kFunction + "}\n" + kFunction;
  };
  const auto versions = [](const ModuleView& view) {
    const auto inner = ModuleView::open(Bytes::copy(view.segment(0)));
    return std::pair(view.module().bytecode_version(), inner->module().bytecode_version());
  };
  EXPECT_EQ(versions(view_of(text("", ""))), std::pair(17u, 17u));
  EXPECT_EQ(versions(view_of(text(" bytecode 15", ""))), std::pair(15u, 15u));
  EXPECT_EQ(versions(view_of(text(" bytecode 15", " bytecode 16"))), std::pair(15u, 16u));
  EXPECT_EQ(versions(view_of(text(" bytecode 15", " bytecode 17"), 16)),
            std::pair(16u, 16u));  // the option wins
  error_of(text(" bytecode 14", ""), Code::INVALID_ARGUMENT, 0);
  error_of(text(" bytecode", ""), Code::INVALID_ARGUMENT, 0);
  error_of(text(" bytecode 16 version 2", ""), Code::INVALID_ARGUMENT, 0);
}

TEST(AssemblerExtensions, OpcodesThatAreNewerThanTheVersion) {
  struct Newer {
    const char* line;
    uint32_t since;
  };
  for (const Newer& newer :
       {Newer{"vm.discard.refs %r0", 16}, Newer{"%r0 = vm.assign.ref %r1", 16},
        Newer{"vm.call.yieldable @f() -> ^bb1()\n^bb1:", 17},
        Newer{"vm.call.variadic.yieldable @a.b segments[1](%i0) -> ^bb1()\n^bb1:", 17}}) {
    const std::string text =
        kModule + "vm.import @a.b cconv \"0CiD_v\"\nvm.func @f() -> () {\n" + newer.line + "\nvm.return\n}\n";
    for (const uint32_t version : {15u, 16u, 17u}) {
      if (version >= newer.since) {
        EXPECT_TRUE(assemble(text, {version, "t.vmasm"})) << newer.line;
        continue;
      }
      const std::string message = error_of(text, Code::INVALID_ARGUMENT, version);
      EXPECT_TRUE(message.starts_with("t.vmasm:4: ")) << message;
      EXPECT_NE(message.find(std::to_string(newer.since)), std::string::npos) << message;
    }
  }
}

TEST(AssemblerExtensions, OrdinalsAllowNamesThatAreThereTwice) {
  const auto view =
      view_of(kModule +
              "vm.type[0] i32\nvm.type[1] i32\nvm.type[2] \"!a b\"\n"
              "vm.import[0] @a.b cconv \"0v_v\"\nvm.import[1] optional @a.b cconv \"0i_v\"\n"
              "vm.dependency[0] @d 1\nvm.dependency[1] @d 2 optional\n"
              "vm.module_attr[0] \"k\" \"1\"\nvm.module_attr[1] \"k\" \"2\"\nvm.module_attr[2] \"\" \"\"\n"
              "vm.export[0] @f\nvm.export[1] @f\n"
              "vm.func @f() -> () {\n"
              "vm.call @a.b()\n"
              "vm.call import[1](%i0)\n"
              "%i0 = vm.import.resolved import[1]\n"
              "%r0 = vm.list.get.ref %r0, %i0 : type[2]\n"
              "%r0 = vm.list.alloc %i0 : type[1]\n"
              "%r0 = vm.cast.any.ref %r0 : !vm.ref<?> -> type[2]\n"
              "vm.return\n}\n");
  EXPECT_EQ(view.module().type_names().size(), 3u);
  EXPECT_EQ(view.module().type_names()[2], "!a b");
  EXPECT_EQ(view.module().imports().size(), 2u);
  EXPECT_EQ(view.module().exports().size(), 2u);
  EXPECT_EQ(view.module().dependencies().size(), 2u);
  EXPECT_EQ(view.module().attributes().size(), 3u);
  EXPECT_TRUE(view.verify(0)) << view.verify(0).error().text();
  for (const char* line :
       {"vm.type[1] i32", "vm.import[1] @a.b cconv \"\"", "vm.export[1] @f", "vm.dependency[1] @d 1",
        "vm.module_attr[1] \"k\" \"v\"", "vm.type[x] i32", "vm.type[0 i32", "vm.type[0] \"\"",
        "vm.func[0] @f() -> () {", "vm.global.i32[0] @g"})
    error_of(kModule + line + "\n" + kFunction);
  error_of(in_function("vm.call import[]()"));
  error_of(in_function("vm.call import(%i0)"));
  error_of(in_function("%r0 = vm.list.get.ref %r0, %i0 : type[x]"));
}

TEST(AssemblerExtensions, Flags) {
  const auto view =
      view_of(kModule +
              "vm.import @a.b cconv \"0v_v\" flags 0\nvm.import optional @a.c cconv \"\" flags 7\n"
              "vm.dependency @d 1 flags 3\nvm.dependency @e 1\n" +
              kFunction);
  EXPECT_EQ(view.import_flags(0), 0u);
  EXPECT_EQ(view.import_flags(1), 7u);
  EXPECT_EQ(view.dependency_flags(0), 3u);
  EXPECT_EQ(view.dependency_flags(1), 1u);
  for (const char* line : {"vm.import @a.b cconv \"\" flags", "vm.import @a.b cconv \"\" flags x",
                           "vm.import @a.b flags 1 cconv \"\"", "vm.dependency @d 1 flags 4294967296"})
    error_of(kModule + line + "\n" + kFunction);
}

TEST(AssemblerExtensions, StateIsWhatItSays) {
  const auto view = view_of(kModule + "vm.state 100, 7\nvm.global.i64 @g\nvm.global.i32 @h\n" + kFunction);
  EXPECT_EQ(view.module().global_bytes(), 100u);
  EXPECT_EQ(view.module().global_refs(), 7u);
  const std::string head = kModule + "vm.state 12, 1\n";
  for (const char* body : {"%i0 = vm.global.load.i32 .rwdata[9]", "%i0:1 = vm.global.load.i64 .rwdata[8]",
                           "%r0 = vm.global.load.ref .refs[1] : !vm.buffer"})
    error_of(head + "vm.func @f() -> () {\n" + body + "\nvm.return\n}\n");
  error_of(head + "vm.global.i64 @g\nvm.global.i64 @h\n" + kFunction);
  error_of(head + "vm.state 12, 1\n" + kFunction);
  error_of(kModule + "vm.state 12\n" + kFunction);
  error_of(kModule + kFunction + "vm.state 1, 1\n");
}

TEST(AssemblerExtensions, Requirements) {
  EXPECT_EQ(view_of(kModule + "vm.requires none\n" + kFunction).module().features(), 0u);
  EXPECT_EQ(view_of(kModule + "vm.requires ext_f32, yield, unwind\n" + kFunction).module().features(), 13u);
  EXPECT_EQ(view_of(function_with(".requires ext_f64, 8")).module().functions()[0].features, 10u);
  // Features that a version lacks would be rejected by the loader.
  const std::string message = error_of(function_with(".requires yield"), Code::INVALID_ARGUMENT, 16);
  EXPECT_NE(message.find("yield"), std::string::npos) << message;
  EXPECT_NE(message.find("16"), std::string::npos) << message;
  error_of(kModule + "vm.requires 16\n" + kFunction);
  for (const char* bad : {"vm.requires", "vm.requires speed", "vm.requires yield,", "vm.requires none, yield",
                          "vm.requires yield unwind"})
    error_of(kModule + bad + "\n" + kFunction);
}

TEST(AssemblerExtensions, ModulesWithoutFunctions) {
  const auto view = view_of(kModule + "vm.empty\nvm.global.i32 @g\nvm.rodata[0] = 00\n");
  EXPECT_EQ(view.module().functions().size(), 0u);
  EXPECT_EQ(view.module().global_bytes(), 4u);
  error_of(kModule + "vm.empty\n" + kFunction);
  error_of(kModule);
}

TEST(AssemblerExtensions, RodataInLinesOfHex) {
  const auto result =
      assembled(kModule + "vm.rodata[0] = hex {  // three bytes\n  00\n\n  [0001] ff80 // two\n}\n" +
                "vm.rodata[1] = hex {\n}\n" + kFunction);
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.rodata(0), std::string("\x00\xFF\x80", 3));
  EXPECT_EQ(result.rodata(1), "");
  for (const char* bad :
       {"hex", "hex 00", "hex {\n0\n}", "hex {\nzz\n}", "hex {\n00", "hex { 00 }", "hex {\n00 }"})
    error_of(kModule + "vm.rodata[0] = " + bad + "\n" + kFunction);
}

// ---- Functions

TEST(AssemblerExtensions, FactsAboutFunctions) {
  const auto view =
      view_of(function_with(".cconv \"0i_\"\n.attr \"z\" \"1\"\n.attr \"a\" e\"\\n\"\n.attr \"a\" \"\"\n"
                            ".debug_name \"inner\"\n.registers 9, 3\n.reserved 65535"));
  EXPECT_EQ(view.module().functions()[0].convention, "0i_");
  EXPECT_EQ(view.debug_name(0), "inner");
  EXPECT_EQ(view.function_fields(0).value_registers, 9);
  EXPECT_EQ(view.function_fields(0).ref_registers, 3);
  EXPECT_EQ(view.function_fields(0).reserved, -1);
  const auto attributes = view.function_attributes(0);
  ASSERT_EQ(attributes.size(), 3u);
  EXPECT_EQ(attributes[0].key, "z");
  EXPECT_EQ(attributes[1].value, "\n");
  for (const char* bad :
       {".cconv", ".cconv 0i_i", ".attr \"k\"", ".registers 4", ".registers 32768, 0", ".registers 0, 16384",
        ".reserved 65536", ".blocks 1", ".speed 3", ".", ".attr", ".bytes", ".debug_name", ".cconv \"\" \"\"",
        "vm.return %i0\n.registers 4, 4", "^bb0:\n.attr \"k\" \"v\""})
    error_of(function_with(bad));
  EXPECT_NE(error_of(function_with(".registres 4, 4")).find("did you mean '.registers'"), std::string::npos);
}

TEST(AssemblerExtensions, StatedRegistersCoverThoseUsed) {
  // Up to the next power of two, as the loader counts.
  EXPECT_TRUE(view_of(function_with(".registers 5, 0\n%i7 = vm.const.i32 1")).verify(0));
  error_of(function_with(".registers 5, 0\n%i8 = vm.const.i32 1"));
  error_of(function_with(".registers 1, 0\n%r1 = vm.const.ref.zero"));
}

TEST(AssemblerExtensions, EndlessFunctions) {
  const std::string loop = "vm.func @f() -> () {\n.endless\n^bb0:\nvm.br ^bb0\n}\n";
  EXPECT_TRUE(view_of(kModule + loop).verify(0));
}

TEST(AssemblerExtensions, BodiesAsBytes) {
  const auto view =
      view_of(kModule + "vm.func @g() -> () {\n.bytes 79\n.blocks 1\n.bytes 5a000000\n}\n" + kFunction);
  EXPECT_TRUE(view.verify(0)) << view.verify(0).error().text();
  EXPECT_EQ(view.module().functions()[0].bytecode.size(), 5u);
  EXPECT_TRUE(view.verify(1));
  for (const char* bad : {".bytes 79", ".bytes\n.blocks 1", ".bytes 7\n.blocks 1",
                          ".bytes 79\n.blocks 1\nvm.return", ".bytes 79\n.blocks 1\n^bb1:", ".blocks 1"})
    error_of(kModule + "vm.func @f() -> () {\n" + bad + "\n}\n");
}

// ---- Operands

TEST(AssemblerExtensions, FloatsByTheirBits) {
  expect_code("%i0 = vm.const.f32 bits(0x7FC00001)", {0xE0, 0x05, 1, 0, 0xC0, 0x7F, 0, 0});
  expect_code("%i0 = vm.const.f32 bits(1)", {0xE0, 0x05, 1, 0, 0, 0, 0, 0});
  expect_code("%i0:1 = vm.const.f64 bits(0xFFF0000000000001)",
              {0xE1, 0x05, 1, 0, 0, 0, 0, 0, 0xF0, 0xFF, 0, 0});
  for (const char* bad :
       {"bits(0x100000000)", "bits(-1)", "bits()", "bits(1", "bits(x)", "bits(1) 2", "bits 1"})
    error_of(in_function(std::string("%i0 = vm.const.f32 ") + bad));
  error_of(in_function("%i0 = vm.const.i32 bits(1)"));
}

TEST(AssemblerExtensions, MoveBitsWithoutEffect) {
  expect_code("%i0 = vm.cmp.nz.ref %m3", {0x55, 0x03, 0xC0, 0, 0});
  expect_code("vm.list.resize %m0, %i1", {0x15, 0x00, 0xC0, 1, 0});
  // In lists, and where moving has an effect, %R is used.
  for (const char* bad : {"%r0 = vm.assign.ref %m1", "%m0 = vm.assign.ref %r1", "vm.discard.refs %m0",
                          "vm.return %m0", "vm.br ^bb1(%m0 -> %r1)\n^bb1:", "vm.br ^bb1(%r0 -> %m1)\n^bb1:",
                          "%m0 = vm.call @f()", "%i0 = vm.cmp.nz.ref %m8192"})
    error_of(in_function(bad),
             std::string(bad).ends_with("8192") ? Code::OUT_OF_RANGE : Code::INVALID_ARGUMENT);
  error_of(in_function("", "%m0: !vm.buffer"));
}

TEST(AssemblerExtensions, AMissingResultIsNamedByItsKind) {
  EXPECT_TRUE(error_of(in_function("vm.const.ref.zero")).contains("'%rN = vm.const.ref.zero ...'"));
  EXPECT_TRUE(error_of(in_function("vm.const.i64.zero")).contains("'%iN:N+1 = vm.const.i64.zero ...'"));
  EXPECT_TRUE(error_of(in_function("vm.const.i32.zero")).contains("'%iN = vm.const.i32.zero ...'"));
}

}  // namespace
}  // namespace halyard::vm
