// Running SPIRV-Tools, and handling its result.
#include "spirv_check.h"

#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cooperative_matrix.h"
#include "spirv.h"

namespace halyard::vulkan {

namespace {

using Context = std::unique_ptr<spv_context_t, void (*)(spv_context)>;

Context make_context() { return {spvContextCreate(SPV_ENV_VULKAN_1_3), spvContextDestroy}; }

const char* advice(SpirvPolicy policy) {
  return policy == SpirvPolicy::strict
             ? "the device was opened with spirv=strict, spirv=tolerant takes what compilers are known to "
               "write"
             : "compile it again, or open the device with spirv=off if it can be trusted";
}

Result<> validate(std::span<const uint32_t> words, SpirvPolicy policy) {
  const Context context = make_context();
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
  return fail(HALYARD_INVALID_ARGUMENT, "the SPIR-V module is not valid for Vulkan: {} (at word {}); {}",
              diagnostic && diagnostic->error ? diagnostic->error : "no details",
              diagnostic ? diagnostic->position.index : 0, advice(policy));
}

// Whether SPIRV-Tools can parse a module that declares only this capability.
bool is_known_to_tools(const Context& context, uint32_t capability) {
  const uint32_t words[] = {kSpirvMagic, spirv_version(1, 6), 0, 1, 0, 2u << 16 | kOpCapability, capability};
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result =
      spvBinaryParse(context.get(), nullptr, words, std::size(words), nullptr, nullptr, &diagnostic);
  spvDiagnosticDestroy(diagnostic);
  return result == SPV_SUCCESS;
}

Result<> check_version(uint32_t version, const SpirvJudge& judge) {
  const uint32_t newest =
      judge.features.api_version >= VK_API_VERSION_1_3 ? spirv_version(1, 6) : spirv_version(1, 5);
  if (version <= newest) return {};
  return fail(HALYARD_INCOMPATIBLE,
              "the executable is SPIR-V {}.{}, device '{}' takes {}.{} at most; compile it for this device",
              version >> 16, version >> 8 & 0xFF, judge.device, newest >> 16, newest >> 8 & 0xFF);
}

Result<> check_capability(uint32_t capability, const Context& context, const SpirvJudge& judge) {
  const CapabilityAnswer answer = judge.features.capability(capability);
  switch (answer.state) {
    case CapabilityState::present:
      return {};
    case CapabilityState::missing:
      return fail(HALYARD_INCOMPATIBLE,
                  "the executable needs {}, which device '{}' lacks; compile it for this device",
                  answer.feature, judge.device);
    case CapabilityState::unused:
      return fail(HALYARD_INCOMPATIBLE,
                  "the executable needs {}, which this driver enables on no device, so not on '{}'; compile "
                  "it without",
                  answer.feature, judge.device);
    case CapabilityState::unknown:
      break;
  }
  if (judge.policy == SpirvPolicy::off || is_known_to_tools(context, capability)) return {};
  return fail(HALYARD_INCOMPATIBLE,
              "the executable needs SPIR-V capability {}, which neither SPIRV-Tools nor this driver knows, "
              "so it is unknown whether device '{}' has it; compile it without, or open the device with "
              "spirv=off if the executable can be trusted",
              capability, judge.device);
}

// The number of words of a string, including its terminator.
size_t text_words(std::span<const uint32_t> words) {
  for (size_t i = 0; i < words.size(); ++i)
    for (unsigned shift = 0; shift < 32; shift += 8)
      if ((words[i] >> shift & 0xFF) == 0) return i + 1;
  return words.size();
}

}  // namespace

std::vector<uint32_t> with_short_interfaces(std::span<const uint32_t> words) {
  std::vector<uint32_t> result(words.begin(), words.end());
  if (words[1] >= spirv_version(1, 4)) return result;
  std::map<uint32_t, uint32_t> storage_of;  // of variables outside of functions
  (void)for_each_instruction(words, [&](uint16_t op, std::span<const uint32_t> operands) -> Result<> {
    if (op == kOpVariable && operands.size() >= 3 && operands[2] != kStorageFunction)
      storage_of[operands[1]] = operands[2];
    return {};
  });
  const auto is_for_later = [&](uint32_t id) {
    const auto found = storage_of.find(id);
    return found != storage_of.end() && found->second != kStorageInput && found->second != kStorageOutput;
  };
  result.resize(kSpirvHeaderWords);
  (void)for_each_instruction(words, [&](uint16_t op, std::span<const uint32_t> operands) -> Result<> {
    const size_t begin = result.size();
    result.push_back(0);
    const size_t kept =
        op == kOpEntryPoint && operands.size() >= 2 ? 2 + text_words(operands.subspan(2)) : operands.size();
    result.insert(result.end(), operands.begin(), operands.begin() + static_cast<ptrdiff_t>(kept));
    std::ranges::remove_copy_if(operands.subspan(kept), std::back_inserter(result), is_for_later);
    result[begin] = static_cast<uint32_t>(result.size() - begin) << 16 | op;
    return {};
  });
  return result;
}

Result<> check_spirv(std::vector<uint32_t>& words, const SpirvJudge& judge) {
  HALYARD_TRY(check_spirv_header(words));
  if (judge.policy == SpirvPolicy::strict) HALYARD_TRY(validate(words, judge.policy));
  std::vector<uint32_t> capabilities;
  HALYARD_TRY(for_each_instruction(words, [&](uint16_t op, std::span<const uint32_t> operands) -> Result<> {
    if (op == kOpCapability && !operands.empty()) capabilities.push_back(operands[0]);
    return {};
  }));
  HALYARD_TRY(check_version(words[1], judge));
  const Context context = make_context();
  for (const uint32_t capability : capabilities) HALYARD_TRY(check_capability(capability, context, judge));
  const bool has_matrices =
      std::ranges::find(capabilities, kCapabilityCooperativeMatrixKHR) != capabilities.end();
  if (has_matrices) HALYARD_TRY(check_cooperative_matrices(words, judge.features, judge.device));
  if (judge.policy != SpirvPolicy::tolerant) return {};
  words = with_short_interfaces(words);
  if (!has_matrices || is_known_to_tools(context, kCapabilityCooperativeMatrixKHR))
    return validate(words, judge.policy);
  return validate(HALYARD_TRY(with_older_matrices(words)), judge.policy);
}

}  // namespace halyard::vulkan
