// The compiler of functions, as an embedder may ask for it.
#include "vm/compile/compiler.h"

#include "handles.h"

halyard_status_t halyard_compiler_stats(halyard_compiler_stats_t* stats) {
  return halyard::guarded([&]() -> halyard::Result<> {
    const halyard_jit_stats_t now = halyard::vm::Compiler::stats();
    halyard_compiler_stats_t given = {};
    given.functions = now.functions;
    given.cached = now.cached;
    given.refused = now.refused;
    given.compile_ns = now.nanoseconds;
    given.object_bytes = now.object_bytes;
    return halyard::c::fill_info(stats, given);
  });
}

halyard_status_t halyard_compiler_find(const char** name, const char** path) {
  return halyard::guarded([&]() -> halyard::Result<> {
    const auto* const compiler = HALYARD_TRY(halyard::vm::Compiler::describe());
    if (name) *name = compiler->name.c_str();
    if (path) *path = compiler->path.c_str();
    return {};
  });
}
