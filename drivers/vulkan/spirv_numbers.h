// Numbers of the SPIR-V specification and of the extensions that Vulkan compilers use, and iteration over the
// instructions of a module.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "status.h"

namespace halyard::vulkan {

constexpr uint32_t kSpirvMagic = 0x07230203;
constexpr size_t kSpirvHeaderWords = 5;
constexpr uint32_t spirv_version(uint32_t major, uint32_t minor) { return major << 16 | minor << 8; }

enum Op : uint16_t {
  kOpExtension = 10,
  kOpMemoryModel = 14,
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpCapability = 17,
  kOpTypeBool = 20,
  kOpTypeInt = 21,
  kOpTypeFloat = 22,
  kOpTypeStruct = 30,
  kOpTypeArray = 28,
  kOpTypeRuntimeArray = 29,
  kOpTypePointer = 32,
  kOpConstantTrue = 41,
  kOpConstant = 43,
  kOpConstantComposite = 44,
  kOpSpecConstant = 50,
  kOpSpecConstantComposite = 51,
  kOpFunction = 54,
  kOpFunctionCall = 57,
  kOpVariable = 59,
  kOpLoad = 61,
  kOpStore = 62,
  kOpCopyMemory = 63,
  kOpAccessChain = 65,
  kOpInBoundsAccessChain = 66,
  kOpPtrAccessChain = 67,
  kOpArrayLength = 68,
  kOpInBoundsPtrAccessChain = 70,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpCopyObject = 83,
  kOpSelect = 169,
  kOpAtomicLoad = 227,
  kOpAtomicStore = 228,
  kOpAtomicXor = 242,
  kOpPhi = 245,
  kOpModuleProcessed = 330,
  kOpExecutionModeId = 331,
  kOpGroupNonUniformElect = 333,
  kOpGroupNonUniformBroadcast = 337,
  kOpGroupNonUniformShuffle = 345,
  kOpGroupNonUniformShuffleXor = 346,
  kOpGroupNonUniformShuffleUp = 347,
  kOpGroupNonUniformShuffleDown = 348,
  kOpGroupNonUniformIAdd = 349,
  kOpGroupNonUniformLogicalXor = 364,
  kOpGroupNonUniformQuadBroadcast = 365,
  kOpGroupNonUniformQuadSwap = 366,
  kOpSubgroupBallotKHR = 4421,
  kOpSubgroupFirstInvocationKHR = 4422,
  kOpSubgroupAllKHR = 4428,
  kOpGroupNonUniformRotateKHR = 4431,
  kOpSubgroupReadInvocationKHR = 4432,
  kOpTypeCooperativeMatrixKHR = 4456,
  kOpCooperativeMatrixLoadKHR = 4457,
  kOpCooperativeMatrixStoreKHR = 4458,
  kOpCooperativeMatrixMulAddKHR = 4459,
  kOpCooperativeMatrixLengthKHR = 4460,
  kOpTypeCooperativeMatrixNV = 5358,
  kOpCooperativeMatrixLoadNV = 5359,
  kOpCooperativeMatrixStoreNV = 5360,
  kOpCooperativeMatrixMulAddNV = 5361,
  kOpCooperativeMatrixLengthNV = 5362,
};

constexpr uint32_t kModelCompute = 5;  // GLCompute
constexpr uint32_t kModeLocalSize = 17;
constexpr uint32_t kModeLocalSizeId = 38;
constexpr uint32_t kStorageInput = 1;
constexpr uint32_t kStorageUniform = 2;
constexpr uint32_t kStorageOutput = 3;
constexpr uint32_t kStorageFunction = 7;
constexpr uint32_t kStoragePushConstant = 9;
constexpr uint32_t kStorageStorageBuffer = 12;
constexpr uint32_t kDecorationBlock = 2;
constexpr uint32_t kDecorationBufferBlock = 3;
constexpr uint32_t kDecorationSpecId = 1;
constexpr uint32_t kDecorationBuiltIn = 11;
constexpr uint32_t kDecorationBinding = 33;
constexpr uint32_t kDecorationDescriptorSet = 34;
constexpr uint32_t kDecorationOffset = 35;
constexpr uint32_t kBuiltInWorkgroupSize = 25;
constexpr uint32_t kBuiltInSubgroupSize = 36;
constexpr uint32_t kBuiltInNumSubgroups = 38;
constexpr uint32_t kBuiltInSubgroupId = 40;
constexpr uint32_t kBuiltInSubgroupInvocation = 41;
constexpr uint32_t kBuiltInSubgroupEqMask = 4416;  // the first of five masks
constexpr uint32_t kBuiltInSubgroupLtMask = 4420;
constexpr uint32_t kGroupClusteredReduce = 3;
constexpr uint32_t kCapabilityFirstDotProduct = 6016;  // of four
constexpr uint32_t kCapabilityLastDotProduct = 6019;
constexpr uint32_t kCapabilityCooperativeMatrixKHR = 6022;
constexpr uint32_t kCapabilityCooperativeMatrixNV = 5357;

// A string in an instruction. Strings of valid modules are terminated.
inline std::string text_at(std::span<const uint32_t> operands) {
  const auto* text = reinterpret_cast<const char*>(operands.data());
  return {text, strnlen(text, operands.size_bytes())};
}

// Calls `visit(op, operands)` for each instruction and stops if it fails. INVALID_ARGUMENT: an instruction
// that is empty or extends past the end. `words` must have a header.
template <typename Visit>
Result<> for_each_instruction(std::span<const uint32_t> words, Visit visit) {
  for (size_t at = kSpirvHeaderWords; at < words.size();) {
    const size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at)
      return fail(HALYARD_INVALID_ARGUMENT, "the SPIR-V instruction at word {} has {} words of {}", at,
                  length, words.size() - at);
    HALYARD_KIT_TRY(visit(static_cast<uint16_t>(words[at]), words.subspan(at + 1, length - 1)));
    at += length;
  }
  return {};
}

}  // namespace halyard::vulkan
