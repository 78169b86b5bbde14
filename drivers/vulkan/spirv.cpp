// Walking the instructions of a module that is known to be valid.
#include "spirv.h"

#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace halyard::vulkan {

namespace {

// Numbers of the SPIR-V specification.
enum Op : uint16_t {
  kOpMemoryModel = 14,
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpCapability = 17,
  kOpTypeStruct = 30,
  kOpTypePointer = 32,
  kOpVariable = 59,
  kOpDecorate = 71,
  kOpMemberDecorate = 72,
  kOpModuleProcessed = 330,
};
constexpr uint32_t kModelCompute = 5;  // GLCompute
constexpr uint32_t kModeLocalSize = 17;
constexpr uint32_t kStoragePushConstant = 9;
constexpr uint32_t kDecorationBlock = 2;
constexpr uint32_t kDecorationBinding = 33;
constexpr uint32_t kDecorationDescriptorSet = 34;
constexpr uint32_t kDecorationOffset = 35;

Result<> validate(std::span<const uint32_t> words) {
  const std::unique_ptr<spv_context_t, void (*)(spv_context)> context(spvContextCreate(SPV_ENV_VULKAN_1_3),
                                                                      spvContextDestroy);
  const std::unique_ptr<spv_validator_options_t, void (*)(spv_validator_options)> options(
      spvValidatorOptionsCreate(), spvValidatorOptionsDestroy);
  spvValidatorOptionsSetScalarBlockLayout(options.get(), true);
  spvValidatorOptionsSetWorkgroupScalarBlockLayout(options.get(), true);
  spvValidatorOptionsSetAllowLocalSizeId(options.get(), true);
  spv_const_binary_t binary = {words.data(), words.size()};
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result = spvValidateWithOptions(context.get(), options.get(), &binary, &diagnostic);
  const std::unique_ptr<spv_diagnostic_t, void (*)(spv_diagnostic)> owned(diagnostic, spvDiagnosticDestroy);
  if (result == SPV_SUCCESS) return {};
  return fail(Code::INVALID_ARGUMENT, "the SPIR-V module is not valid for Vulkan: {} (at word {})",
              diagnostic && diagnostic->error ? diagnostic->error : "no details",
              diagnostic ? diagnostic->position.index : 0);
}

// A text and how many words it takes. Valid modules terminate theirs.
std::string text_at(std::span<const uint32_t> operands) {
  const auto* text = reinterpret_cast<const char*>(operands.data());
  return {text, strnlen(text, operands.size_bytes())};
}

struct Reader {
  SpirvModule module;
  std::map<uint32_t, uint32_t> entry_of_id;                  // function id -> position in entries
  std::map<uint32_t, uint32_t> pointee;                      // pointer type -> type
  std::map<uint32_t, size_t> member_counts;                  // struct type -> members
  std::map<uint32_t, std::map<uint32_t, uint32_t>> offsets;  // struct type -> member -> offset
  std::vector<uint32_t> blocks;
  std::vector<uint32_t> push_constant_pointers;  // types of the variables

  void read(uint16_t op, std::span<const uint32_t> operands);
  void finish();
};

void Reader::read(uint16_t op, std::span<const uint32_t> operands) {
  const size_t count = operands.size();
  switch (op) {
    case kOpCapability:
      if (count >= 1) module.capabilities.push_back(operands[0]);
      break;
    case kOpMemoryModel:
      if (count < 2) break;
      module.addressing_model = operands[0];
      module.memory_model = operands[1];
      break;
    case kOpEntryPoint:
      if (count < 3 || operands[0] != kModelCompute) break;
      entry_of_id[operands[1]] = static_cast<uint32_t>(module.entries.size());
      module.entries.push_back({.name = text_at(operands.subspan(2))});
      break;
    case kOpExecutionMode:
      if (count < 5 || operands[1] != kModeLocalSize || !entry_of_id.contains(operands[0])) break;
      std::copy_n(&operands[2], 3, module.entries[entry_of_id[operands[0]]].workgroup_size.begin());
      break;
    case kOpModuleProcessed:
      if (count >= 1) module.processed.push_back(text_at(operands));
      break;
    case kOpDecorate:
      if (count < 2) break;
      if (operands[1] == kDecorationBinding || operands[1] == kDecorationDescriptorSet)
        module.has_descriptors = true;
      if (operands[1] == kDecorationBlock) blocks.push_back(operands[0]);
      break;
    case kOpMemberDecorate:
      if (count >= 4 && operands[2] == kDecorationOffset) offsets[operands[0]][operands[1]] = operands[3];
      break;
    case kOpTypeStruct:
      if (count >= 1) member_counts[operands[0]] = count - 1;
      break;
    case kOpTypePointer:
      if (count >= 3) pointee[operands[0]] = operands[2];
      break;
    case kOpVariable:
      if (count >= 3 && operands[2] == kStoragePushConstant) push_constant_pointers.push_back(operands[0]);
      break;
    default:
      break;
  }
}

void Reader::finish() {
  for (const uint32_t pointer : push_constant_pointers) {
    const uint32_t type = pointee.contains(pointer) ? pointee[pointer] : 0;
    std::vector<uint32_t> members;
    if (std::ranges::find(blocks, type) != blocks.end() && member_counts.contains(type))
      for (uint32_t i = 0; i < member_counts[type]; ++i)
        members.push_back(offsets[type].contains(i) ? offsets[type][i] : ~0u);
    module.push_constants.push_back(std::move(members));
  }
}

}  // namespace

bool SpirvModule::has_capability(uint32_t capability) const {
  return std::ranges::find(capabilities, capability) != capabilities.end();
}

Result<SpirvModule> read_spirv(std::span<const uint32_t> words) {
  constexpr size_t kHeaderWords = 5;
  if (words.size() < kHeaderWords || words[0] != kSpirvMagic)
    return fail(
        Code::INVALID_ARGUMENT,
        "a SPIR-V module begins with 0x{:08x} and has {} words or more; found {} words that begin with "
        "0x{:08x}",
        kSpirvMagic, kHeaderWords, words.size(), words.empty() ? 0 : words[0]);
  HALYARD_TRY(validate(words));
  Reader reader;
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t length = words[at] >> 16;
    if (length == 0 || length > words.size() - at)
      return fail(Code::INVALID_ARGUMENT, "the SPIR-V instruction at word {} has {} words of {}", at, length,
                  words.size() - at);
    reader.read(static_cast<uint16_t>(words[at]), words.subspan(at + 1, length - 1));
    at += length;
  }
  reader.finish();
  return std::move(reader.module);
}

}  // namespace halyard::vulkan
