// For tests of the machine: loads a module from text, calls it with plain values, and provides an object type
// whose lifetime can be observed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "status_testing.h"
#include "vm/compile/compile_queue.h"
#include "vm/compile/loaded_module.h"
#include "vm/native/bind.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {

using Values = std::vector<Variant>;

inline Variant i32(int64_t value) { return Variant::i32(static_cast<int32_t>(value)); }
inline Variant i64(int64_t value) { return Variant::i64(value); }
inline Variant f32(float value) { return Variant::f32(value); }
inline Variant f64(double value) { return Variant::f64(value); }
inline Variant null() { return Variant(); }

inline std::string to_text(const Variant& value) {
  switch (value.type()) {
    case ValueType::none:
      return value.object() ? value.object()->type()->name : "null";
    case ValueType::i32:
      return fmt::format("i32={}", value.as_i32());
    case ValueType::i64:
      return fmt::format("i64={}", value.as_i64());
    case ValueType::f32:
      return fmt::format("f32={} ({:08X})", value.as_f32(), value.bits());
    case ValueType::f64:
      return fmt::format("f64={} ({:016X})", value.as_f64(), value.bits());
    default:
      return fmt::format("type {}: {}", static_cast<int>(value.type()), value.bits());
  }
}

// The text of a module; one without exports gets an export for each function.
inline std::string with_exports(std::string text) {
  constexpr std::string_view kFunction = "vm.func @";
  if (text.find("vm.export ") != std::string::npos) return text;
  for (size_t at = text.find(kFunction); at != std::string::npos; at = text.find(kFunction, at)) {
    at += kFunction.size();
    text += fmt::format("vm.export @{}\n", text.substr(at, text.find('(', at) - at));
  }
  return text;
}

// An object that counts the live objects of its type.
class Thing final : public ObjectOf<Thing> {
 public:
  static const ObjectType kType;
  explicit Thing(int* alive) : alive_(alive) { ++*alive_; }
  ~Thing() { --*alive_; }

 private:
  int* alive_;
};
inline const ObjectType Thing::kType = object_type<Thing>("test.thing");

// A context, and the objects from which its modules are made.
class Machine {
 public:
  explicit Machine(Limits limits = {}) : context(Context::create(std::move(limits))) {
    types.add(&Thing::kType);
  }
  explicit Machine(const std::string& text, uint32_t version = 17) : Machine() { add(text, version); }

  Result<Ref<LoadedModule>> load(const std::string& text, uint32_t version = 17) {
    auto bytes = HALYARD_TRY(assemble(with_exports(text), {version, "test.vmasm"}));
    return LoadedModule::load(Bytes::own(std::move(bytes)), types, {.fuse = fuse, .queue = queue});
  }
  Result<> try_add(const std::string& text, uint32_t version = 17) {
    Ref<LoadedModule> module = HALYARD_TRY(load(text, version));
    return context->add(module);
  }
  void add(const std::string& text, uint32_t version = 17) { ASSERT_OK(try_add(text, version)); }
  // A module's file.
  void add(std::vector<uint8_t> file) {
    const Ref<LoadedModule> module = ASSERT_VALUE(LoadedModule::load(Bytes::own(std::move(file)), types));
    ASSERT_OK(context->add(module));
  }
  void add_native(const std::string& name, std::vector<NativeExport> exports, void* state = nullptr) {
    const Result<> added = context->add(NativeModule::create(
        {.name = name, .exports = std::move(exports), .create_state = [=]() -> Result<NativeState> {
           return NativeState{.pointer = state};
         }}));
    ASSERT_TRUE(added) << added.error().text();
  }

  // "f" of the last module, or "module.f".
  Result<Callable> find(const std::string& name) const {
    const size_t dot = name.find('.');
    if (dot != std::string::npos) return context->find(name.substr(0, dot), name.substr(dot + 1));
    return context->find(context->modules().back()->module->name(), name);
  }
  Result<Values> call(const std::string& name, const Values& arguments = {}) const {
    const Callable callee = HALYARD_TRY(find(name));
    Values results(callee.convention.results.size());
    HALYARD_TRY(Invocation(context).call(callee, arguments, results));
    return results;
  }

  // Expects exactly these results.
  void expect(const std::string& name, const Values& arguments, const Values& expected) const {
    const Result<Values> results = call(name, arguments);
    if (!results) {
      ADD_FAILURE() << name << ": " << results.error().text();
      return;
    }
    ASSERT_EQ(results->size(), expected.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i) {
      const Variant& found = (*results)[i];
      EXPECT_TRUE(found.type() == expected[i].type() && found.bits() == expected[i].bits() &&
                  found.object() == expected[i].object())
          << name << " result " << i << ": " << to_text(found) << ", expected " << to_text(expected[i]);
    }
  }
  // Expects this status, whose text has this part, and returns the text.
  std::string expect_failure(const std::string& name, const Values& arguments, Code code,
                             std::string_view part = "") const {
    const Result<Values> results = call(name, arguments);
    EXPECT_TRUE(fails_with(results, code, part)) << name;
    return results ? "" : results.error().text();
  }

  Variant thing() { return Variant::ref(make<Thing>(&alive)); }

  int alive = 0;                        // live things
  bool fuse = true;                     // LoadOptions::fuse for loading
  std::shared_ptr<CompileQueue> queue;  // LoadOptions::queue for loading
  TypeRegistry types;
  Ref<Context> context;
};

}  // namespace halyard::vm::test
