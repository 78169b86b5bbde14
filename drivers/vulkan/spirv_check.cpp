// Runs SPIRV-Tools, and handles its result.
#include "spirv_check.h"

#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "cooperative_matrix.h"
#include "spirv.h"

namespace halyard::vulkan {

namespace {

constexpr uint32_t kSpirvVersions[] = {spirv_version(1, 0), spirv_version(1, 1), spirv_version(1, 2),
                                       spirv_version(1, 3), spirv_version(1, 4), spirv_version(1, 5),
                                       spirv_version(1, 6)};
// The versions that add something to the previous one for Vulkan. SPIR-V 1.1 and 1.2 do not.
constexpr std::span<const uint32_t> kVersionsToTry = std::span(kSpirvVersions).subspan(3);
constexpr uint32_t kSpirvWithAllVariables = spirv_version(1, 4);  // in the interfaces of entry points

using Context = std::unique_ptr<spv_context_t, void (*)(spv_context)>;

Context make_context() { return {spvContextCreate(SPV_ENV_VULKAN_1_3), spvContextDestroy}; }

const char* advice(SpirvPolicy policy) {
  return policy == SpirvPolicy::strict
             ? "the device was opened with spirv=strict, spirv=tolerant takes what compilers are known to "
               "write"
             : "compile it again, or open the device with spirv=off if it can be trusted";
}

std::string version_name(uint32_t version) {
  return fmt::format("{}.{}", version >> 16, version >> 8 & 0xFF);
}

// The text of a diagnostic on one line.
std::string one_line(const char* text) {
  std::string line;
  for (const char c : std::string_view(text)) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space || (!line.empty() && line.back() != ' ')) line += space ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

// `header`: the version in the module's header; `words` may have another version.
Result<> validate(std::span<const uint32_t> words, uint32_t header, SpirvPolicy policy) {
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
  const std::string read_as = words[1] == header ? ""
                                                 : fmt::format(" (read as SPIR-V {}, its header says {})",
                                                               version_name(words[1]), version_name(header));
  return fail(HALYARD_INVALID_ARGUMENT, "the SPIR-V module is not valid for Vulkan{}: {} (at word {}); {}",
              read_as, diagnostic && diagnostic->error ? one_line(diagnostic->error) : "no details",
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

uint32_t newest_version(const SpirvJudge& judge) {
  return judge.features.api_version >= VK_API_VERSION_1_3 ? spirv_version(1, 6) : spirv_version(1, 5);
}

Result<> check_version(uint32_t version, const SpirvJudge& judge) {
  const uint32_t newest = newest_version(judge);
  if (version <= newest) return {};
  return fail(HALYARD_INCOMPATIBLE,
              "the executable is SPIR-V {}, device '{}' takes {} at most; compile it for this device",
              version_name(version), judge.device, version_name(newest));
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

std::vector<uint32_t> with_interfaces(std::span<const uint32_t> words) {
  const bool lists_all = words[1] >= kSpirvWithAllVariables;
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
  std::vector<uint32_t> result(words.begin(), words.begin() + kSpirvHeaderWords);
  (void)for_each_instruction(words, [&](uint16_t op, std::span<const uint32_t> operands) -> Result<> {
    const size_t begin = result.size();
    result.push_back(0);
    const bool is_entry = op == kOpEntryPoint && operands.size() >= 2;
    const size_t kept = is_entry ? 2 + text_words(operands.subspan(2)) : operands.size();
    result.insert(result.end(), operands.begin(), operands.begin() + static_cast<ptrdiff_t>(kept));
    const std::span<const uint32_t> listed = operands.subspan(kept);
    if (lists_all) {
      result.insert(result.end(), listed.begin(), listed.end());
      for (const auto& [id, storage] : storage_of)
        if (is_entry && is_for_later(id) && std::ranges::find(listed, id) == listed.end())
          result.push_back(id);
    } else {
      std::ranges::remove_copy_if(listed, std::back_inserter(result), is_for_later);
    }
    result[begin] = static_cast<uint32_t>(result.size() - begin) << 16 | op;
    return {};
  });
  return result;
}

namespace {

constexpr char kDotProduct[] = "SPV_KHR_integer_dot_product";  // part of SPIR-V 1.6

// Declares the extension if the module uses it without declaring it, because devices with Vulkan 1.2 do not
// accept SPIR-V 1.6.
std::vector<uint32_t> with_dot_product(std::vector<uint32_t> words) {
  bool uses = false;
  size_t capabilities_end = kSpirvHeaderWords;
  size_t at = kSpirvHeaderWords;
  bool names = false;
  (void)for_each_instruction(words, [&](uint16_t op, std::span<const uint32_t> operands) -> Result<> {
    at += 1 + operands.size();
    if (op == kOpCapability && !operands.empty()) {
      capabilities_end = at;
      uses |= operands[0] >= kCapabilityFirstDotProduct && operands[0] <= kCapabilityLastDotProduct;
    }
    names |= op == kOpExtension && text_at(operands) == kDotProduct;
    return {};
  });
  if (!uses || names) return words;
  std::vector<uint32_t> extension(1 + sizeof kDotProduct / 4 + (sizeof kDotProduct % 4 != 0));
  extension[0] = static_cast<uint32_t>(extension.size()) << 16 | kOpExtension;
  std::memcpy(&extension[1], kDotProduct, sizeof kDotProduct);
  words.insert(words.begin() + static_cast<ptrdiff_t>(capabilities_end), extension.begin(), extension.end());
  return words;
}

// Repairs modules of compilers that write a version into the header that is older than the core features that
// they use: selects the first version in which the module is valid.
Result<> repair(std::vector<uint32_t>& words, const SpirvJudge& judge, bool has_older_matrices) {
  const uint32_t header = words[1];
  const auto take = [&](std::vector<uint32_t> tried) -> Result<> {
    HALYARD_KIT_TRY(has_older_matrices
                        ? validate(HALYARD_KIT_TRY(with_older_matrices(tried)), header, judge.policy)
                        : validate(tried, header, judge.policy));
    words = std::move(tried);
    return {};
  };
  Result<> result = take(header < kSpirvWithAllVariables ? with_interfaces(words) : words);
  if (std::ranges::find(kSpirvVersions, header) == std::end(kSpirvVersions)) return result;
  for (const uint32_t version : kVersionsToTry) {
    if (result) return result;
    const bool is_new = version > header || (version == header && header >= kSpirvWithAllVariables);
    if (!is_new || version > newest_version(judge)) continue;
    std::vector<uint32_t> raised = words;
    raised[1] = version;
    raised = with_interfaces(raised);
    result = take(version < spirv_version(1, 6) ? with_dot_product(std::move(raised)) : std::move(raised));
  }
  return result;
}

}  // namespace

Result<> check_spirv(std::vector<uint32_t>& words, const SpirvJudge& judge) {
  HALYARD_KIT_TRY(check_spirv_header(words));
  if (judge.policy == SpirvPolicy::strict) HALYARD_KIT_TRY(validate(words, words[1], judge.policy));
  std::vector<uint32_t> capabilities;
  HALYARD_KIT_TRY(
      for_each_instruction(words, [&](uint16_t op, std::span<const uint32_t> operands) -> Result<> {
        if (op == kOpCapability && !operands.empty()) capabilities.push_back(operands[0]);
        return {};
      }));
  HALYARD_KIT_TRY(check_version(words[1], judge));
  const Context context = make_context();
  for (const uint32_t capability : capabilities)
    HALYARD_KIT_TRY(check_capability(capability, context, judge));
  const bool has_matrices =
      std::ranges::find(capabilities, kCapabilityCooperativeMatrixKHR) != capabilities.end();
  if (has_matrices) HALYARD_KIT_TRY(check_cooperative_matrices(words, judge.features, judge.device));
  if (judge.policy != SpirvPolicy::tolerant) return {};
  return repair(words, judge, has_matrices && !is_known_to_tools(context, kCapabilityCooperativeMatrixKHR));
}

}  // namespace halyard::vulkan
