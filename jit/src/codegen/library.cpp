// The exported function of the code generator, which returns its function table.
#include <string>

#include "codegen/engine.h"
#include "shared/codegen_abi.h"
#include "shared/failure_reason.h"

namespace halyard::jit {

namespace {

int generate(const halyard_jit_function_t* function, void* user, halyard_jit_take_fn take, char* reason,
             size_t reason_size) {
  return with_failure_reason(reason, reason_size, [&](std::string& why) {
    std::string image;
    if (!Engine::get().generate(*function, image, why)) return false;
    take(user, image.data(), image.size());
    return true;
  });
}

int explain(const halyard_jit_function_t* function, const halyard_jit_explanation_t* explanation,
            char* reason, size_t reason_size) {
  return with_failure_reason(reason, reason_size, [&](std::string& why) {
    return Engine::get().explain(*function, *explanation, why);
  });
}

constexpr halyard_jit_codegen_t kTable = {HALYARD_JIT_CODEGEN_ABI, generate, explain};

}  // namespace

}  // namespace halyard::jit

extern "C" __attribute__((visibility("default"))) const halyard_jit_codegen_t* halyard_jit_codegen() {
  return &halyard::jit::kTable;
}
