// Texts that the assembler rejects (vmasm.md, section 7), and its messages.
#include "assembler_testing.h"

namespace halyard::vm {
namespace {

// -----------------------------------------------------------------------------------------

TEST(Assembler, FileAndDirectiveErrors) {
  const std::string function = kFunction;
  const std::string module = "vm.module @m\n";
  error_of("");
  error_of("// nothing\n");
  error_of(function);
  error_of(module);
  error_of("vm.type i32\n" + module + function);
  error_of(module + module + function);
  error_of("vm.module m\n" + function);
  error_of("vm.module @\n" + function);
  error_of("vm.module @m version\n" + function);
  error_of("vm.module @m version x\n" + function);
  error_of("vm.module @m version 4294967296\n" + function);
  error_of("vm.module @m version -1\n" + function);
  error_of("vm.module @m 1\n" + function);
  error_of("vm.module @m-n\n" + function);
  error_of(module + "vm.global.ref @g\n" + function);
  error_of(module + "nonsense\n" + function);
  error_of(module + "}\n" + function);
  error_of(module + "vm.return\n" + function);
  // Order.
  for (const char* late : {"vm.type i32", "vm.rodata[0] =", "vm.import @a.b cconv \"\"", "vm.global.i32 @g",
                           "vm.dependency @hal 1"})
    error_of(module + function + late + "\n");
  // Duplicates.
  for (const char* twice : {"vm.type i32", "vm.import @a.b cconv \"\"", "vm.global.i32 @g", "vm.export @f",
                            "vm.dependency @hal 1", "vm.module_attr \"k\" \"v\""})
    error_of(module + twice + "\n" + twice + "\n" + function);
  error_of(module + "vm.type vm.buffer\nvm.type !vm.buffer\n" + function);
  error_of(module + function + function);
  error_of(module + "vm.type foo\n" + function);
  error_of(module + "vm.type !vm.list<i32\n" + function);
  error_of(module + "vm.type !vm.buffer x\n" + function);
  // Rodata.
  for (const char* rodata :
       {"vm.rodata[1] = 00", "vm.rodata[0] = 000", "vm.rodata[0] = 0g", "vm.rodata[0] = 00 00",
        "vm.rodata[0] = 0x00", "vm.rodata [0] = 00", "vm.rodata[0] 00", "vm.rodata[0] = \"a\"b",
        "vm.rodata[0] = \"a", "vm.rodata[-1] = 00", "vm.rodata[0] = module", "vm.rodata = 00"})
    error_of(module + rodata + "\n" + function);
  // Imports, globals, exports.
  for (const char* line : {"vm.import @a.b", "vm.import @a.b cconv 0v_v", "vm.import @a.b cconv \"0v_v\" x",
                           "vm.import maybe @a.b cconv \"\"", "vm.global.i32 mutable private @g",
                           "vm.global.i32 @g = 0 : i64", "vm.global.i32 @g = 0", "vm.global.i32 @g =",
                           "vm.global.i32 @g 0", "vm.export @none", "vm.export @x = @none", "vm.export @f @f",
                           "vm.dependency @hal", "vm.dependency hal 7", "vm.dependency @hal 7 maybe"})
    error_of(module + line + "\n" + function);
  error_of(module + "vm.global.i32 @g = 1 : i32\n" + function, Code::UNIMPLEMENTED);
}

TEST(Assembler, BodyErrors) {
  for (const char* line : {
           // Mnemonics, operands, results.
           "vm.add.i33 %i0, %i1",
           "vm.block",
           "vm.prefix.ext_f32",
           "%i0 vm.const.i32 1",
           "%i0 = ",
           "= vm.return",
           "%i2 = vm.add.i32 %i0",
           "%i2 = vm.add.i32 %i0, %i1, %i2",
           "vm.add.i32 %i0, %i1",
           "%i0, %i1 = vm.const.i32 1",
           "%i2 = vm.add.i32 %i0 %i1",
           "%i2 = vm.add.i32(%i0, %i1)",
           "vm.return %i0,",
           "vm.return,",
           "vm.return )",
           // Registers.
           "%i2 = vm.add.i64 %i0:1, %i4:5",
           "%i2:3 = vm.add.i64 %i0, %i4:5",
           "%i2:4 = vm.const.i64.zero",
           "%i2:1 = vm.const.i64.zero",
           "%i2 = vm.add.i32 %i0:1, %i4",
           "%i2 = vm.add.i32 %r0, %i4",
           "%r2 = vm.add.i32 %i0, %i4",
           "%i0 = vm.cmp.nz.ref %i0",
           "%r0 = vm.const.i32 1",
           "%i0 = vm.switch.i32 %i0[%r1] else %i0",
           "%i0 = vm.switch.i32 %i0[%i2:3] else %i0",
           // MOVE.
           "%i0 = vm.cmp.nz.ref %R0",
           "vm.list.resize %R0, %i0",
           "%i0 = vm.buffer.load.i32 %R0, %i2:3",
           // Labels.
           "^bb1 :",
           "^bb:",
           "^bbx:",
           "^1:",
           "bb1:",
           "^bb1: vm.return",
           "^bb1",
           "vm.br ^bb9",
           "vm.br ^bb",
           "vm.br bb1",
           "^bb1:\n^bb1:",
           "vm.br ^bb1x\n^bb1:",
           // Branch arguments.
           "vm.br ^bb1(%i0)\n^bb1:",
           "vm.br ^bb1(%i0 -> %r0)\n^bb1:",
           "vm.br ^bb1(%i0 -> %i1\n^bb1:",
           "vm.br ^bb1(%i0 %i1)\n^bb1:",
           // Calls.
           "vm.call @f",
           "vm.call f()",
           "vm.call @none()",
           "vm.call @m.none()",
           "vm.call @other:0()",
           "vm.call @m: 0()",
           "vm.call @m:()",
           "vm.call.variadic @f()",
           "vm.call.variadic @f segments[65536]()",
           "vm.call.variadic @f segments[-1]()",
           "vm.call.variadic @f segments[x]()",
           "vm.call.variadic @f segments[1()",
           "vm.call.yieldable @f() -> ^bb1\n^bb1:",
           "vm.call.yieldable @f()\n^bb1:",
           "%i0 = vm.call.yieldable @f() -> ^bb1()\n^bb1:",
           "%i0 = vm.import.resolved @f",
           "%i0 = vm.import.resolved @a.b",
           // Tables.
           "vm.br_table %i0 { 0: ^bb0 }\n^bb0:",
           "vm.br_table %i0 { default: ^bb0, 1: ^bb0 }\n^bb0:",
           "vm.br_table %i0 { default: ^bb0, 0: ^bb0, 0: ^bb0 }\n^bb0:",
           "vm.br_table %i0 { default: ^bb0\n^bb0:",
           "vm.br_table %i0 { default: ^bb0, }\n^bb0:",
           "vm.br_table %i0 { }",
           // Separators and types.
           "%i0 = vm.select.i32 %i0, %i1, %i2",
           "%i0 = vm.select.i32 %i0 ? %i1, %i2",
           "%i0 = vm.select.i32 %i0 ? %i1: %i2",
           "%i0 = vm.select.i32 %i0 ? %i1 :%i2",
           "%i0 = vm.select.i32 %i0? %i1 : %i2",
           "%r0 = vm.select.ref %i0 ? %r1 : %r2",
           "%r0 = vm.select.ref %i0 ? %r1 : %r2->!vm.buffer",
           "%r0 = vm.cast.any.ref %r1 -> !vm.buffer",
           "%r0 = vm.cast.any.ref %r1 : !vm.buffer",
           "%r0 = vm.cast.any.ref %r1: !vm.buffer -> !vm.buffer",
           "%r0 = vm.list.alloc %i0",
           "%r0 = vm.list.alloc %i0 : i32",
           "%r0 = vm.list.alloc %i0 : !vm.buffer",
           "%r0 = vm.list.alloc %i0 : !vm.list<>",
           "%r0 = vm.list.alloc %i0: !vm.list<i32>",
           "%r0 = vm.list.alloc %i0 : !vm.list",
           "%r0 = vm.list.get.ref %r0, %i0",
           "%r0 = vm.list.get.ref %r0, %i0 :",
           "%r0 = vm.list.get.ref %r0, %i0 : wrong",
           // Globals.
           "%i0 = vm.global.load.i32 @none",
           "%i0 = vm.global.load.i32 @wide",
           "%i0:1 = vm.global.load.i64 @narrow",
           "%r0 = vm.global.load.ref .refs[0]",
           "%r0 = vm.global.load.ref @narrow : !vm.buffer",
           "%i0 = vm.global.load.i32 .rwdata",
           "%i0 = vm.global.load.i32 .rwdata[",
           "%i0 = vm.global.load.i32 .rwdata[x]",
           "%i0 = vm.global.load.i32 .rwdata[2147483647]",
           "%r0 = vm.global.load.ref .refs[2147483647] : !vm.buffer",
           // Strings.
           "vm.fail %i0",
           "vm.fail %i0, text",
           "vm.fail %i0, \"text",
           "vm.fail %i0, \"a\"b\"",
           "vm.trace \"a\" %i0",
           "vm.trace a",
       }) {
    const std::string text = std::string("vm.module @m\nvm.global.i32 @narrow\nvm.global.i64 @wide\n") +
                             "vm.func @f() -> () {\n" + line + "\nvm.return\n}\n";
    const std::string message = error_of(text);
    EXPECT_TRUE(message.starts_with("t.vmasm:5: ") || message.starts_with("t.vmasm:6: ")) << message;
  }
  error_of("vm.module @m\nvm.func @f() -> () {\n}\n");
  error_of("vm.module @m\nvm.func @f() -> () {\n^bb0:\nvm.br ^bb0\n}\n");
  error_of("vm.module @m\nvm.func @f() -> () {\nvm.return\n");
  error_of("vm.module @m\nvm.func @f() -> () {\nvm.return }\n");
  error_of("vm.module @m\nvm.func @f() -> () {\nvm.return\nvm.func @g() -> () {\nvm.return\n}\n");
}

TEST(Assembler, AcceptedAndLeftToTheLoader) {
  assembled(in_function("vm.return\nvm.return\n%i0 = vm.const.i32 1"));
  assembled(in_function("%r0 = vm.const.ref.rodata 99"));
  assembled(in_function("vm.call @m:99()"));
  assembled(in_function("vm.discard.refs %i0"));
  assembled(in_function("%r0 = vm.list.get.ref %r0, %i0 : !no.such<type, here>"));
}

TEST(Assembler, MessagesSayWhatWasMeant) {
  EXPECT_EQ(error_of(in_function("%i2 = vm.add.i23 %i0, %i1")),
            "t.vmasm:3: unknown instruction 'vm.add.i23'; did you mean 'add.i32'?");
  EXPECT_EQ(error_of("vm.module @m\nvm.modul\n"),
            "t.vmasm:2: expected a directive such as vm.func or vm.export, found 'vm.modul'; did you mean "
            "'vm.module'?");
  EXPECT_EQ(error_of("vm.module @m\nvm.export @ad\nvm.func @add() -> () {\nvm.return\n}\n"),
            "t.vmasm:2: export '@ad' has no function '@ad'; did you mean 'add'?");
  EXPECT_EQ(error_of(in_function("vm.call @lib.fuction()")),
            "t.vmasm:3: no function or import '@lib.fuction'");
  EXPECT_EQ(error_of("vm.module @m\nvm.import @lib.function cconv \"\"\n" +
                     std::string("vm.func @f() -> () {\nvm.call @lib.fuction()\nvm.return\n}\n")),
            "t.vmasm:4: no function or import '@lib.fuction'; did you mean 'lib.function'?");
  EXPECT_EQ(error_of(in_function("%i2 = vm.add.i32 %i0")),
            "t.vmasm:3: expected ',' in vm.add.i32, found the end of the line");
  EXPECT_EQ(error_of(in_function("%i0 = vm.cmp.nz.ref %R3")),
            "t.vmasm:3: operand: this operand cannot be moved; write %r3 instead of %R3");
}

TEST(Assembler, CountsThatDoNotFit) {
  const std::string long_string(65535, 'x');
  assembled(in_function("vm.trace \"" + long_string + "\""));
  error_of(in_function("vm.trace \"" + long_string + "x\""));

  std::string labels;
  for (int i = 1; i < 32767; ++i) labels += "^bb" + std::to_string(i) + ":\n";
  const std::string head = "vm.module @m\nvm.func @f() -> () {\n%i0 = vm.const.i32.zero\n";
  EXPECT_EQ(assembled(head + labels + "vm.return\n}\n").module->function_descriptors()->Get(0)->block_count(),
            32767);
  error_of(head + labels + "^bb32767:\nvm.return\n}\n", Code::OUT_OF_RANGE);

  std::string registers = "vm.discard.refs %r0";
  for (int i = 1; i < 65535; ++i) registers += ",%r0";
  assembled(in_function(registers));
  error_of(in_function(registers + ",%r0"), Code::OUT_OF_RANGE);
}

}  // namespace
}  // namespace halyard::vm
