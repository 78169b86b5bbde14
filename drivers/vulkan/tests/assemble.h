// Assembles SPIR-V for tests.
#pragma once

#include <spirv-tools/libspirv.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness.h"

namespace halyard::vulkan_tests {

// Declarations for {words} and {decorate_words} in a shader: a buffer of 32-bit words in binding 0, its
// types, void and the constant 0.
constexpr const char* kDecorateWords = R"(
               OpDecorate %array ArrayStride 4
               OpMemberDecorate %block 0 Offset 0
               OpDecorate %block Block
               OpDecorate %words DescriptorSet 0
               OpDecorate %words Binding 0)";
constexpr const char* kDeclareWords = R"(
       %void = OpTypeVoid
     %action = OpTypeFunction %void
       %uint = OpTypeInt 32 0
      %array = OpTypeRuntimeArray %uint
      %block = OpTypeStruct %array
%buffer_block = OpTypePointer StorageBuffer %block
%buffer_uint = OpTypePointer StorageBuffer %uint
      %words = OpVariable %buffer_block StorageBuffer
     %uint_0 = OpConstant %uint 0)";

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
