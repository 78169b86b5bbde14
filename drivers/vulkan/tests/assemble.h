// Assembles SPIR-V for tests.
#pragma once

#include <spirv-tools/libspirv.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness.h"

namespace halyard::vulkan_tests {

// Assembles SPIR-V 1.3, or for `environment`. The assembler does not validate.
inline std::vector<uint32_t> assemble(const std::string& text,
                                      spv_target_env environment = SPV_ENV_UNIVERSAL_1_3) {
  spv_context context = spvContextCreate(environment);
  spv_binary binary = nullptr;
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result = spvTextToBinary(context, text.data(), text.size(), &binary, &diagnostic);
  EXPECT_EQ(result, SPV_SUCCESS) << (diagnostic ? diagnostic->error : "") << " at line "
                                 << (diagnostic ? diagnostic->position.line + 1 : 0);
  std::vector<uint32_t> words;
  if (binary) words.assign(binary->code, binary->code + binary->wordCount);
  spvBinaryDestroy(binary);
  spvDiagnosticDestroy(diagnostic);
  spvContextDestroy(context);
  return words;
}

}  // namespace halyard::vulkan_tests
