// The compiler of functions, as an embedder may ask for it.
#include "vm/compile/compiler.h"

#include "handles.h"

halyard_status_t halyard_compiler_find(const char** name, const char** path) {
  return halyard::guarded([&]() -> halyard::Result<> {
    const halyard::vm::Compiler* const compiler = HALYARD_TRY(halyard::vm::Compiler::find());
    if (name) *name = compiler->name().data();
    if (path) *path = compiler->path().c_str();
    return {};
  });
}
