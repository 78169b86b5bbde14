// Stands in for the compiler library in static builds (HALYARD_STATIC), which load no libraries.
#include "vm/compile/compiler.h"

namespace halyard::vm {

Result<const Compiler*> Compiler::find() {
  return fail(Code::NOT_FOUND,
              "there is no compiler: this Halyard is part of a static program and loads no libraries; use "
              "one that was "
              "built without HALYARD_STATIC");
}

halyard_jit_stats_t Compiler::stats() { return {}; }

Result<CompiledFunction> Compiler::compile(const FunctionCode& /*code*/, const Options& /*options*/) const {
  return fail(Code::UNIMPLEMENTED, "there is no compiler in a static program");
}

bool calls_itself(const FunctionCode& /*code*/) { return false; }

}  // namespace halyard::vm
