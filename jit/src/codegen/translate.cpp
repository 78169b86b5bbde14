// Entry point of the translation.
#include "codegen/translate.h"

#include "codegen/translator.h"

namespace halyard::jit {

void translate(const halyard_jit_function_t& function, llvm::Module& module, llvm::StringRef features) {
  Translator(function, module, features).run();
}

}  // namespace halyard::jit
