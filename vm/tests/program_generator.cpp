// Creates modules from generated functions: sometimes a library, a main module, and calls.
#include "program_generator.h"

#include "function_generator.h"

namespace halyard::vm::test {

namespace {

constexpr uint32_t kMaxArguments = 5;

Kind any_kind(Choices& choices, bool narrow_only = false) {
  if (narrow_only)
    return choices.one_of({Kind::i32, Kind::f32, Kind::buffer, Kind::values, Kind::leaf, Kind::any});
  return static_cast<Kind>(choices.below(static_cast<uint32_t>(Kind::any) + 1));
}

Signature any_signature(Choices& choices, bool has_convention) {
  Signature signature;
  signature.has_convention = has_convention;
  for (uint32_t n = choices.below(kMaxArguments); n > 0; --n)
    signature.arguments.push_back(any_kind(choices, !has_convention));
  for (uint32_t n = choices.below(kMaxArguments); n > 0; --n)
    signature.results.push_back(any_kind(choices, !has_convention));
  return signature;
}

ModulePlan any_plan(Choices& choices) {
  ModulePlan plan;
  plan.version = 15 + choices.below(3);
  plan.global_bytes = 16 + choices.below(30);
  for (uint32_t n = choices.below(5); n > 0; --n) plan.global_refs.push_back(any_kind(choices));
  for (Kind& kind : plan.global_refs) {
    if (!is_ref(kind)) kind = static_cast<Kind>(static_cast<uint32_t>(kind) + 4);
  }
  plan.rodata = 3;
  return plan;
}

void add_native_imports(ModuleParts& parts, ModulePlan& plan, Choices& choices) {
  for (const NativeSignature& native : native_signatures()) {
    const std::string_view convention = native.convention;
    const size_t span = convention.find('C');
    plan.callees.push_back(
        {.operand = kImportBit | static_cast<uint32_t>(parts.imports.size()),
         .signature = {native.arguments, native.results},
         .span = span == convention.npos ? "" : convention.substr(span + 1, convention.find('D') - span - 1),
         .defers = native.defers,
         .bytecode = false});
    const bool states = span != convention.npos || !choices.one_in(6);
    parts.imports.push_back({.name = std::string("native.") + native.name,
                             .convention = states ? native.convention : "",
                             .flags = 1});
  }
  plan.optional_imports.push_back(kImportBit | static_cast<uint32_t>(parts.imports.size() - 1));
  plan.optional_imports.push_back(kImportBit | static_cast<uint32_t>(parts.imports.size()));
  parts.imports.push_back({.name = "native.missing", .convention = "0i_i", .flags = 2});
  if (choices.one_in(16))
    plan.callees.push_back(
        {.operand = plan.optional_imports.back(), .signature = {{Kind::i32}, {Kind::i32}}});
}

ModuleParts start_module(const char* name, const ModulePlan& plan) {
  ModuleParts parts;
  parts.name = name;
  parts.bytecode_version = plan.version << 16;
  parts.features = 3;
  if (plan.version >= 17) parts.features |= 12;
  parts.types = module_types();
  parts.global_bytes = static_cast<int>(plan.global_bytes);
  parts.global_refs = static_cast<int>(plan.global_refs.size());
  parts.rodata = {
      {.data = {}}, {.data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}, {.data = {}}};
  for (uint8_t i = 0; i < 70; ++i) parts.rodata[2].data.push_back(static_cast<uint8_t>(i * 37));
  return parts;
}

}  // namespace

std::vector<std::string> module_types() {
  return {"i8",         "i16",        "i32",        "i64",           "f32",
          "f64",        "!vm.opaque", "!vm.buffer", "!vm.list<i32>", "!vm.list<!vm.opaque>",
          "!test.probe"};
}

Program generate_program(Choices& choices) {
  Program program;
  std::vector<Signature> library;
  if (choices.one_in(3)) {
    ModulePlan plan = any_plan(choices);
    ModuleParts parts = start_module("lib", plan);
    for (uint32_t n = 1 + choices.below(2); n > 0; --n) library.push_back(any_signature(choices, true));
    for (uint32_t i = 0; i < library.size(); ++i)
      plan.callees.push_back({.operand = i, .signature = library[i]});
    for (uint32_t i = 0; i < library.size(); ++i) {
      parts.functions.push_back(generate_function(choices, plan, library[i], Fuel::counts));
      parts.exports.emplace_back("f" + std::to_string(i), static_cast<int>(i));
    }
    program.modules.push_back(std::move(parts));
  }

  ModulePlan plan = any_plan(choices);
  ModuleParts parts = start_module("main", plan);
  std::vector<Signature> signatures = {any_signature(choices, true)};
  // The results make the function's registers visible.
  for (uint32_t n = choices.below(8); n > 0; --n) {
    signatures[0].results.push_back(Kind::i64);
    signatures[0].results.push_back(Kind::any);
  }
  for (uint32_t n = choices.below(3); n > 0; --n)
    signatures.push_back(any_signature(choices, !choices.one_in(6)));
  for (uint32_t i = 1; i < signatures.size(); ++i)
    plan.callees.push_back({.operand = i, .signature = signatures[i]});
  for (uint32_t i = 0; i < library.size(); ++i) {
    plan.callees.push_back(
        {.operand = kImportBit | static_cast<uint32_t>(parts.imports.size()), .signature = library[i]});
    parts.imports.push_back({.name = "lib.f" + std::to_string(i),
                             .convention = choices.one_in(6) ? "" : library[i].convention(),
                             .flags = 1});
  }
  if (choices.one_in(2)) add_native_imports(parts, plan, choices);
  for (size_t i = 0; i < signatures.size(); ++i)
    parts.functions.push_back(
        generate_function(choices, plan, signatures[i], i == 0 ? Fuel::resets : Fuel::counts));
  parts.exports.emplace_back("main", 0);
  program.modules.push_back(std::move(parts));

  for (uint32_t n = 1 + choices.below(2); n > 0; --n) {
    ProgramCall call;
    for (const Kind kind : signatures[0].arguments)
      call.arguments.push_back(
          {kind, is_ref(kind) ? choices.below(4) : choices.bits(choices.one_in(2) ? 8 : 1)});
    program.calls.push_back(std::move(call));
  }
  program.fuse = !choices.one_in(8);
  return program;
}

}  // namespace halyard::vm::test
