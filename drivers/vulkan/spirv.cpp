// Iterates over the instructions of a module.
#include "spirv.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>

namespace halyard::vulkan {

namespace {

constexpr uint32_t kMaxSubgroup = 128;  // of any device

bool is_about_subgroups(uint32_t builtin) {
  return builtin == kBuiltInSubgroupSize || builtin == kBuiltInNumSubgroups ||
         builtin == kBuiltInSubgroupId || builtin == kBuiltInSubgroupInvocation ||
         (builtin >= kBuiltInSubgroupEqMask && builtin <= kBuiltInSubgroupLtMask);
}

struct Reader {
  SpirvModule module;
  std::map<uint32_t, uint32_t> entry_of_id;                  // function id -> index in entries
  std::map<uint32_t, uint32_t> pointee;                      // pointer type -> type
  std::map<uint32_t, size_t> member_counts;                  // struct type -> members
  std::map<uint32_t, std::map<uint32_t, uint32_t>> offsets;  // struct type -> member -> offset
  std::vector<uint32_t> blocks;
  std::vector<uint32_t> push_constant_pointers;  // types of the push constant variables

  struct Variable {
    uint32_t type;
    uint32_t storage;
  };
  struct Array {
    uint32_t element;
    uint32_t length;  // a constant; 0: none
  };
  std::map<uint32_t, Variable> variables;
  std::map<uint32_t, Array> arrays;
  std::map<uint32_t, uint32_t> constants;
  std::vector<uint32_t> buffer_blocks;
  std::map<uint32_t, uint32_t> set_of, binding_of;  // variable -> number
  uint32_t function = 0;                            // the current one
  uint32_t workgroup_size = 0;                      // a constant of three values, which overrides LocalSize
  std::array<uint32_t, 3> size_for_all = {};        // its values; 0: none
  std::map<uint32_t, std::array<uint32_t, 3>> size_ids;  // index in entries -> constants
  std::map<uint32_t, uint32_t> spec_id_of;               // constant -> number
  std::map<uint32_t, std::set<uint32_t>> uses;           // function -> variables and functions
  std::set<uint32_t> spec_constants;                     // the members of `constants` that can be specialized
  std::map<uint32_t, uint32_t> builtin_of;               // variable -> BuiltIn
  std::map<uint32_t, SubgroupUse> subgroups_of;          // function -> its own use

  void read(uint16_t op, std::span<const uint32_t> operands);
  void read_use(uint16_t op, std::span<const uint32_t> operands);
  void read_subgroups(uint16_t op, std::span<const uint32_t> operands);
  SpirvDescriptor descriptor(uint32_t variable);
  void set_size(SpirvEntry& entry, const std::array<uint32_t, 3>& ids);
  void walk(SpirvEntry& entry);
  void finish();
};

// Records the variables that an instruction uses, or the function that it calls.
void Reader::read_use(uint16_t op, std::span<const uint32_t> operands) {
  const auto use = [&](size_t first, size_t count) {
    for (size_t i = first; i < std::min(first + count, operands.size()); ++i)
      uses[function].insert(operands[i]);
  };
  constexpr size_t kAll = 1u << 16;
  switch (op) {
    case kOpStore:
    case kOpAtomicStore:
      return use(0, 1);
    case kOpCopyMemory:
      return use(0, 2);
    case kOpLoad:
    case kOpAccessChain:
    case kOpInBoundsAccessChain:
    case kOpPtrAccessChain:
    case kOpInBoundsPtrAccessChain:
    case kOpArrayLength:
    case kOpCopyObject:
      return use(2, 1);
    case kOpFunctionCall:
    case kOpSelect:
    case kOpPhi:
      return use(2, kAll);
    default:
      if (op >= kOpAtomicLoad && op <= kOpAtomicXor) use(2, 1);
  }
}

// A constant lane, distance or cluster size shows the minimum subgroup size that the author assumed:
// compilers write a reduction over 32 invocations as steps of 16, 8, 4, 2 and 1.
void Reader::read_subgroups(uint16_t op, std::span<const uint32_t> operands) {
  const bool is_operation = (op >= kOpGroupNonUniformElect && op <= kOpGroupNonUniformQuadSwap) ||
                            op == kOpSubgroupBallotKHR || op == kOpSubgroupFirstInvocationKHR ||
                            (op >= kOpSubgroupAllKHR && op <= kOpSubgroupReadInvocationKHR) ||
                            (op >= kOpTypeCooperativeMatrixKHR && op <= kOpCooperativeMatrixLengthKHR) ||
                            (op >= kOpTypeCooperativeMatrixNV && op <= kOpCooperativeMatrixLengthNV);
  if (function == 0 || !is_operation) return;
  SubgroupUse& use = subgroups_of[function];
  use.any = true;
  // False: there is no such constant.
  const auto at_least = [&](size_t operand, uint32_t more) {
    if (operand >= operands.size() || spec_constants.contains(operands[operand])) return false;
    const auto found = constants.find(operands[operand]);
    if (found == constants.end() || found->second > kMaxSubgroup - more) return false;
    use.least = std::max(use.least, std::bit_ceil(found->second + more));
    return true;
  };
  bool among_neighbours = op == kOpGroupNonUniformQuadBroadcast || op == kOpGroupNonUniformQuadSwap;
  switch (op) {
    case kOpGroupNonUniformShuffleXor:
      among_neighbours = at_least(4, 1);
      break;
    case kOpGroupNonUniformBroadcast:
    case kOpGroupNonUniformShuffle:
    case kOpGroupNonUniformShuffleUp:
    case kOpGroupNonUniformShuffleDown:
      at_least(4, 1);
      break;
    case kOpSubgroupReadInvocationKHR:
      at_least(3, 1);
      break;
    case kOpGroupNonUniformRotateKHR:
      among_neighbours = at_least(5, 0);
      break;
    default:
      if (op >= kOpGroupNonUniformIAdd && op <= kOpGroupNonUniformLogicalXor && operands.size() >= 6 &&
          operands[3] == kGroupClusteredReduce)
        among_neighbours = at_least(5, 0);
  }
  use.whole |= !among_neighbours;
}

void Reader::read(uint16_t op, std::span<const uint32_t> operands) {
  const size_t count = operands.size();
  read_use(op, operands);
  read_subgroups(op, operands);
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
      module.entries.push_back({.name = text_at(operands.subspan(2)), .function = operands[1]});
      break;
    case kOpExecutionMode:
      if (count < 5 || operands[1] != kModeLocalSize || !entry_of_id.contains(operands[0])) break;
      std::copy_n(&operands[2], 3, module.entries[entry_of_id[operands[0]]].local_size.begin());
      module.entries[entry_of_id[operands[0]]].workgroup_size =
          module.entries[entry_of_id[operands[0]]].local_size;
      break;
    case kOpExecutionModeId:
      if (count >= 5 && operands[1] == kModeLocalSizeId && entry_of_id.contains(operands[0]))
        std::copy_n(&operands[2], 3, size_ids[entry_of_id[operands[0]]].begin());
      break;
    case kOpModuleProcessed:
      if (count >= 1) module.processed.push_back(text_at(operands));
      break;
    case kOpDecorate:
      if (count < 2) break;
      if (operands[1] == kDecorationBinding || operands[1] == kDecorationDescriptorSet)
        module.has_descriptors = true;
      if (operands[1] == kDecorationBlock) blocks.push_back(operands[0]);
      if (operands[1] == kDecorationBufferBlock) buffer_blocks.push_back(operands[0]);
      if (count >= 3 && operands[1] == kDecorationSpecId) spec_id_of[operands[0]] = operands[2];
      if (count >= 3 && operands[1] == kDecorationBuiltIn && operands[2] == kBuiltInWorkgroupSize)
        workgroup_size = operands[0];
      if (count >= 3 && operands[1] == kDecorationBuiltIn) builtin_of[operands[0]] = operands[2];
      if (count >= 3 && operands[1] == kDecorationBinding) binding_of[operands[0]] = operands[2];
      if (count >= 3 && operands[1] == kDecorationDescriptorSet) set_of[operands[0]] = operands[2];
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
    case kOpTypeArray:
      if (count >= 3) arrays[operands[0]] = {operands[1], operands[2]};
      break;
    case kOpTypeRuntimeArray:
      if (count >= 2) arrays[operands[0]] = {operands[1], 0};
      break;
    case kOpConstant:
    case kOpSpecConstant:
      if (count >= 3) constants[operands[1]] = operands[2];
      if (count >= 3 && op == kOpSpecConstant) spec_constants.insert(operands[1]);
      break;
    case kOpConstantComposite:
    case kOpSpecConstantComposite:
      if (count >= 5 && operands[1] == workgroup_size) std::copy_n(&operands[2], 3, size_for_all.begin());
      break;
    case kOpFunction:
      if (count >= 2) function = operands[1];
      break;
    case kOpVariable:
      if (count >= 3) variables[operands[1]] = {operands[0], operands[2]};
      if (count >= 3 && operands[2] == kStoragePushConstant) push_constant_pointers.push_back(operands[0]);
      break;
    default:
      break;
  }
}

SpirvDescriptor Reader::descriptor(uint32_t variable) {
  SpirvDescriptor result = {.set = set_of[variable], .binding = binding_of[variable]};
  uint32_t type = pointee[variables[variable].type];
  if (const auto array = arrays.find(type); array != arrays.end()) {
    result.count = array->second.length != 0 ? constants[array->second.length] : 0;
    type = array->second.element;
  }
  const uint32_t storage = variables[variable].storage;
  result.is_buffer = storage == kStorageUniform || storage == kStorageStorageBuffer;
  result.is_uniform =
      storage == kStorageUniform && std::ranges::find(buffer_blocks, type) == buffer_blocks.end();
  return result;
}

void Reader::set_size(SpirvEntry& entry, const std::array<uint32_t, 3>& ids) {
  for (size_t i = 0; i < 3; ++i) {
    entry.workgroup_size[i] = constants[ids[i]];
    if (const auto found = spec_id_of.find(ids[i]); found != spec_id_of.end())
      entry.workgroup_constants[i] = found->second;
  }
}

// Collects everything that the entry point or its callees use.
void Reader::walk(SpirvEntry& entry) {
  bool knows_size = false;
  std::set<uint32_t> seen;
  std::vector<uint32_t> open = {entry.function};
  while (!open.empty()) {
    const uint32_t id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    if (variables.contains(id) && (binding_of.contains(id) || set_of.contains(id)))
      entry.descriptors.push_back(descriptor(id));
    if (const auto found = builtin_of.find(id); found != builtin_of.end() && variables.contains(id)) {
      knows_size |= found->second == kBuiltInSubgroupSize;
      entry.subgroups.any |= is_about_subgroups(found->second);
      entry.subgroups.whole |= is_about_subgroups(found->second);
    }
    if (const auto found = subgroups_of.find(id); found != subgroups_of.end()) {
      entry.subgroups.any |= found->second.any;
      entry.subgroups.whole |= found->second.whole;
      entry.subgroups.least = std::max(entry.subgroups.least, found->second.least);
    }
    if (const auto found = uses.find(id); found != uses.end())
      open.insert(open.end(), found->second.begin(), found->second.end());
  }
  if (!knows_size) return;
  entry.subgroups.least = 1;
  entry.subgroups.whole = false;
}

void Reader::finish() {
  for (const auto& [position, ids] : size_ids) set_size(module.entries[position], ids);
  if (size_for_all[0] != 0)
    for (SpirvEntry& entry : module.entries) set_size(entry, size_for_all);
  for (SpirvEntry& entry : module.entries) walk(entry);
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

Result<> check_spirv_header(std::span<const uint32_t> words) {
  if (words.size() >= kSpirvHeaderWords && words[0] == kSpirvMagic) return {};
  return fail(HALYARD_INVALID_ARGUMENT,
              "a SPIR-V module begins with 0x{:08x} and has {} words or more; found {} words that begin with "
              "0x{:08x}",
              kSpirvMagic, kSpirvHeaderWords, words.size(), words.empty() ? 0 : words[0]);
}

Result<SpirvModule> read_spirv(std::span<const uint32_t> words) {
  HALYARD_KIT_TRY(check_spirv_header(words));
  Reader reader;
  reader.module.version = words[1];
  HALYARD_KIT_TRY(
      for_each_instruction(words, [&](uint16_t op, std::span<const uint32_t> operands) -> Result<> {
        reader.read(op, operands);
        return {};
      }));
  reader.finish();
  return std::move(reader.module);
}

}  // namespace halyard::vulkan
