// Generated functions, with branches, overlapping moves, registers of changing types, calls, lists, buffers
// and MOVE bits: their C has the interpreter's results and statuses, call after call. HALYARD_SEEDS=n tests
// more.
#include <gtest/gtest.h>

#include <cstdlib>

#include "c_program.h"
#include "function_generator.h"
#include "module_builder.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"

namespace halyard::aot::test {
namespace {

using vm::Variant;
using vm::test::Choices;
using vm::test::Kind;

constexpr uint32_t kFunctions = 24;  // of a module; as many helpers are called by them
constexpr int kRounds = 3;

Kind any_kind(Choices& choices, bool refs) {
  return static_cast<Kind>(choices.below(static_cast<uint32_t>(refs ? Kind::any : Kind::f64) + 1));
}

vm::test::Signature any_signature(Choices& choices, bool refs, uint32_t results) {
  vm::test::Signature signature;
  for (uint32_t n = choices.below(6); n > 0; --n) signature.arguments.push_back(any_kind(choices, refs));
  for (uint32_t n = results; n > 0; --n) signature.results.push_back(any_kind(choices, refs));
  return signature;
}

// Numbers are visible from outside; refs go to helpers, globals and lists.
struct Generated {
  std::vector<uint8_t> module;
  std::vector<Signature> functions;
};

Generated generate(Choices& choices) {
  vm::test::ModulePlan plan;
  plan.version = 15 + choices.below(3);
  plan.global_bytes = 16 + choices.below(30);
  plan.global_refs = {Kind::buffer, Kind::values, Kind::leaf, Kind::any};
  plan.rodata = 2;
  vm::test::ModuleParts parts;
  parts.name = "m";
  parts.bytecode_version = plan.version << 16;
  parts.features = plan.version >= 17 ? 15 : 3;
  // In the order of vm::test::TypeOrdinal; the last is a type that no object has.
  parts.types = {"i8",        "i16",        "i32",        "i64",           "f32",
                 "f64",       "!vm.opaque", "!vm.buffer", "!vm.list<i32>", "!vm.list<!vm.opaque>",
                 "!hal.fence"};
  parts.global_bytes = static_cast<int>(plan.global_bytes);
  parts.global_refs = static_cast<int>(plan.global_refs.size());
  parts.rodata = {{.data = {}}, {.data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}};
  std::vector<vm::test::Signature> signatures;
  for (uint32_t i = 0; i < kFunctions; ++i)
    signatures.push_back(any_signature(choices, false, 4 + choices.below(8)));
  for (uint32_t i = 0; i < kFunctions; ++i) {
    signatures.push_back(any_signature(choices, true, choices.below(4)));
    plan.callees.push_back({.operand = kFunctions + i, .signature = signatures.back()});
  }
  Generated made;
  for (uint32_t i = 0; i < signatures.size(); ++i) {
    const bool is_export = i < kFunctions;
    parts.functions.push_back(generate_function(choices, plan, signatures[i],
                                                is_export ? vm::test::Fuel::resets : vm::test::Fuel::counts));
    if (!is_export) continue;
    parts.exports.emplace_back(fmt::format("f{}", i), static_cast<int>(i));
    constexpr char kTypes[] = {'i', 'I', 'f', 'F'};
    Signature signature;
    for (const Kind kind : signatures[i].arguments) signature.arguments += kTypes[static_cast<size_t>(kind)];
    for (const Kind kind : signatures[i].results) signature.results += kTypes[static_cast<size_t>(kind)];
    made.functions.push_back(signature);
  }
  made.module = parts.build();
  return made;
}

Variant argument_of(char type, uint64_t bits) {
  using vm::ValueType;
  const ValueType value_type = type == 'i'   ? ValueType::i32
                               : type == 'I' ? ValueType::i64
                               : type == 'f' ? ValueType::f32
                                             : ValueType::f64;
  return Variant::value(value_type, type == 'i' || type == 'f' ? static_cast<uint32_t>(bits) : bits);
}

const ObjectType kFence = {"hal.fence", nullptr};

// Counts the calls that were compared.
void compare(uint64_t seed, const std::string& compiler, size_t& calls) {
  SCOPED_TRACE(fmt::format("seed {}, {}", seed, compiler));
  Choices choices(seed);
  const Generated made = generate(choices);
  vm::TypeRegistry types;
  types.add(&kFence);
  const auto module = vm::LoadedModule::load(Bytes::copy(made.module), types);
  ASSERT_TRUE(module) << module.error().text();
  const Ref<vm::Context> context = vm::Context::create({});
  ASSERT_TRUE(context->add(*module));
  CProgram program(made.module, compiler, "-O0", made.functions);
  ASSERT_EQ(program.error(), "");
  for (int round = 0; round < kRounds; ++round)
    for (size_t function = 0; function < made.functions.size(); ++function) {
      const Signature& signature = made.functions[function];
      std::vector<uint64_t> in;
      std::vector<Variant> arguments;
      for (const char type : signature.arguments) {
        in.push_back(choices.bits(choices.one_in(2) ? 8 : 1));
        arguments.push_back(argument_of(type, in.back()));
      }
      std::vector<uint64_t> out(signature.results.size() + 1);
      std::vector<Variant> results(signature.results.size());
      const auto callee = context->find("m", fmt::format("f{}", function));
      ASSERT_TRUE(callee) << callee.error().text();
      const Result<> called = vm::Invocation(context).call(*callee, arguments, results);
      const int status = program.call(function, in.data(), out.data());
      const int expected = called ? 0 : static_cast<int>(called.error().code());
      // The interpreter has more memory.
      if (status == static_cast<int>(Code::RESOURCE_EXHAUSTED) ||
          expected == static_cast<int>(Code::RESOURCE_EXHAUSTED))
        return;
      ++calls;
      ASSERT_EQ(status, expected) << "function " << function << (called ? "" : ": " + called.error().text());
      for (size_t i = 0; i < results.size() && expected == 0; ++i)
        ASSERT_EQ(out[i], results[i].bits()) << "function " << function << ", result " << i;
    }
}

TEST(GeneratedFunctions, HaveTheInterpretersResults) {
  const char* const more = std::getenv("HALYARD_SEEDS");
  const uint64_t seeds = more ? std::strtoull(more, nullptr, 10) : 6;
  const std::vector<std::string> all = compilers();
  size_t calls = 0;
  for (uint64_t seed = 0; seed < seeds && !HasFatalFailure(); ++seed)
    compare(seed, all[seed % all.size()], calls);
  EXPECT_GT(calls, seeds * kFunctions);
}

}  // namespace
}  // namespace halyard::aot::test
