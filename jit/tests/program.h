// For tests of compiled code: modules from text, and the function "f" of one in a context of its own.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "differential.h"
#include "status_testing.h"
#include "vm/compile/compiler.h"
#include "vm/compile/loaded_module.h"
#include "vm/decode/code.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {

inline std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

inline Ref<LoadedModule> load(std::string_view text, const LoadOptions& options = {}) {
  auto bytes = assemble(std::string(text), {});
  EXPECT_TRUE(bytes) << bytes.error().text() << '\n' << text;
  auto module = LoadedModule::load(Bytes::own(*std::move(bytes)), known_types(), options);
  EXPECT_TRUE(module) << module.error().text();
  return *module;
}

struct TestProgram {
  explicit TestProgram(std::string_view text, const LoadOptions& options = {}, Limits limits = {})
      : context(Context::create(std::move(limits))), module(load(text, options)) {
    EXPECT_OK(context->add(module));
    function = *context->find("m", "f");
  }
  // The only result.
  Result<Variant> call(std::span<const Variant> arguments) const {
    std::array<Variant, 1> results;
    HALYARD_TRY(Invocation(context).call(function, arguments, results));
    return results[0];
  }
  bool is_compiled(uint32_t ordinal = 0) const {
    return static_cast<bool>((*module->code(ordinal))->compiled);
  }

  Ref<Context> context;
  Ref<LoadedModule> module;
  Callable function;
};

// A call that is interrupted again and again ends with CANCELLED.
inline void expect_cancelled(const TestProgram& program, std::span<const Variant> arguments) {
  std::array<Variant, 1> results;
  Invocation invocation(program.context);
  std::jthread stopper([&](const std::stop_token& done) {
    while (!done.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      invocation.interrupt(Code::CANCELLED);
    }
  });
  EXPECT_FAILS(CANCELLED, "", invocation.call(program.function, arguments, results));
}

}  // namespace halyard::vm::test
