// Replaces the compiler library in static builds (HALYARD_STATIC), which load no libraries.
#include "vm/compile/compiler.h"

namespace halyard::vm {

namespace {

std::unexpected<Status> no_compiler() {
  return fail(
      Code::NOT_FOUND,
      "no compiler: this Halyard is part of a static program and cannot load libraries; use a Halyard "
      "built without HALYARD_STATIC");
}

}  // namespace

Result<const Compiler*> Compiler::find() { return no_compiler(); }

Result<const Compiler::Description*> Compiler::describe() { return no_compiler(); }

halyard_jit_stats_t Compiler::stats() { return {}; }

Result<CompiledFunction> Compiler::compile(const FunctionCode& /*code*/, const Options& /*options*/) const {
  return no_compiler();
}

Result<Compiler::Explanation> Compiler::explain(const FunctionCode& /*code*/) const { return no_compiler(); }

bool calls_itself(const FunctionCode& /*code*/) { return false; }

}  // namespace halyard::vm
