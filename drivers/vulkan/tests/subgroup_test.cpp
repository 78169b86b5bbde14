// Subgroup sizes: the size that a kernel was compiled for, and its use on devices with other sizes.
#include <algorithm>

#include "assemble.h"
#include "one_function.h"
#include "spirv.h"
#include "subgroups.h"

namespace halyard::vulkan_tests {
namespace {

using Words = std::vector<uint32_t>;

// words[invocation] = the result of `operation` on the invocation's number.
constexpr const char* kAmongInvocations = R"(
               OpCapability Shader
               OpCapability GroupNonUniform
               OpCapability GroupNonUniformArithmetic
               OpCapability GroupNonUniformBallot
               OpCapability GroupNonUniformShuffle
               OpCapability GroupNonUniformShuffleRelative
               {clusters}
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %index %size
               OpExecutionMode %main LocalSize 8 1 1
               OpDecorate %index BuiltIn LocalInvocationIndex
               OpDecorate %size BuiltIn SubgroupSize
               OpDecorate %specialized SpecId 0
               {decorate_words}
               {words}
 %input_uint = OpTypePointer Input %uint
      %index = OpVariable %input_uint Input
       %size = OpVariable %input_uint Input
   %subgroup = OpConstant %uint 3
     %number = OpConstant %uint {number}
%specialized = OpSpecConstant %uint {number}
     %helper = OpTypeFunction %uint %uint
      %among = OpFunction %uint None %helper
      %given = OpFunctionParameter %uint
     %begin1 = OpLabel
               {operation}
               OpReturnValue %taken
               OpFunctionEnd
       %main = OpFunction %void None %action
      %begin = OpLabel
      %where = OpLoad %uint %index
       %made = OpFunctionCall %uint %among %where
    %element = OpAccessChain %buffer_uint %words %uint_0 %where
               OpStore %element %made
               OpReturn
               OpFunctionEnd
)";

Words among(uint32_t number, const std::string& operation) {
  const bool clusters = operation.contains("Clustered");
  return assemble(fmt::format(fmt::runtime(kAmongInvocations), fmt::arg("number", number),
                              fmt::arg("operation", operation),
                              fmt::arg("clusters", clusters ? "OpCapability GroupNonUniformClustered" : ""),
                              fmt::arg("words", kDeclareWords), fmt::arg("decorate_words", kDecorateWords)));
}

constexpr const char* kXor = "%taken = OpGroupNonUniformShuffleXor %uint %subgroup %given %number";

struct Kernel {
  const char* operation;
  uint32_t number;
  uint32_t least;  // the size that it needs
  bool whole;      // its results depend on the size
};
constexpr Kernel kKernels[] = {
    {kXor, 16, 32, false},
    {kXor, 4, 8, false},
    {kXor, 5, 8, false},
    {"%taken = OpGroupNonUniformShuffle %uint %subgroup %given %number", 31, 32, true},
    {"%taken = OpGroupNonUniformShuffleUp %uint %subgroup %given %number", 32, 64, true},
    {"%taken = OpGroupNonUniformShuffleDown %uint %subgroup %given %number", 1, 2, true},
    {"%taken = OpGroupNonUniformBroadcast %uint %subgroup %given %number", 15, 16, true},
    {"%taken = OpGroupNonUniformIAdd %uint %subgroup ClusteredReduce %given %number", 32, 32, false},
    // These kernels have no such constants.
    {"%taken = OpGroupNonUniformIAdd %uint %subgroup Reduce %given", 64, 1, true},
    {"%taken = OpGroupNonUniformShuffle %uint %subgroup %given %given", 64, 1, true},
    {"%taken = OpGroupNonUniformShuffleXor %uint %subgroup %given %given", 64, 1, true},
    // A specialization constant that the host sets.
    {"%taken = OpGroupNonUniformShuffle %uint %subgroup %given %specialized", 64, 1, true},
    // No device has subgroups of this size, so the constant is not a lane.
    {kXor, 0x80000000, 1, true},
    {"%taken = OpGroupNonUniformShuffle %uint %subgroup %given %number", 0xFFFFFFFF, 1, true},
    // This kernel reads the size.
    {"%unused = OpLoad %uint %size\n %taken = OpGroupNonUniformShuffleXor %uint %subgroup %given %number", 16,
     1, false},
};

TEST(Subgroups, ConstantsLimitTheSize) {
  for (const Kernel& kernel : kKernels) {
    const auto module = vulkan::read_spirv(among(kernel.number, kernel.operation));
    ASSERT_TRUE(module);
    ASSERT_EQ(module->entries.size(), 1u);
    EXPECT_TRUE(module->entries[0].subgroups.any) << kernel.operation;
    EXPECT_EQ(module->entries[0].subgroups.least, kernel.least) << kernel.operation << ", " << kernel.number;
    EXPECT_EQ(module->entries[0].subgroups.whole, kernel.whole) << kernel.operation << ", " << kernel.number;
  }
  const auto without = vulkan::read_spirv(kernel_words("iota.spv"));
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->entries[0].subgroups.any);
}

// Simulated devices: subgroup sizes from `least` to `most`, with `usual` as the default.
vulkan::Features device_with(uint32_t usual, uint32_t least, uint32_t most, bool control = true) {
  vulkan::Features features;
  features.subgroup.subgroupSize = usual;
  features.subgroup_size.subgroupSizeControl = control;
  if (!control) return features;
  features.subgroup_sizes.minSubgroupSize = least;
  features.subgroup_sizes.maxSubgroupSize = most;
  features.subgroup_sizes.maxComputeWorkgroupSubgroups = 16;
  features.subgroup_sizes.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
  return features;
}

constexpr int kRefused = -1;

// Checks the size that is requested, or the message of the refusal.
void expect_requested(vulkan::PipelineImage pipeline, std::vector<uint32_t> compiled, uint32_t workgroup,
                      const vulkan::Features& device, int requested, std::string_view named) {
  pipeline.name = "kernel";
  pipeline.workgroup_size = {workgroup, 1, 1};
  const auto size = vulkan::subgroup_size_for(pipeline, compiled, device, "Made Up 9000");
  EXPECT_EQ(size ? static_cast<int>(*size) : kRefused, requested);
  if (size) return;
  EXPECT_EQ(size.failure().code, HALYARD_INCOMPATIBLE);
  for (const std::string_view part :
       {std::string_view("'kernel'"), std::string_view("'Made Up 9000'"), named})
    EXPECT_TRUE(size.failure().message.contains(part)) << size.failure().message;
}

TEST(Subgroups, RequestedSizes) {
  const vulkan::Features amd = device_with(64, 32, 64), intel = device_with(32, 8, 32),
                         nvidia = device_with(32, 32, 32), fixed = device_with(16, 0, 0, false);
  constexpr uint32_t k13 = vulkan::spirv_version(1, 3), k16 = vulkan::spirv_version(1, 6);
  struct Case {
    const vulkan::Features& device;
    uint32_t version;
    uint32_t stated;  // by the module
    bool any;         // uses subgroup operations
    uint32_t least;   // that the shader needs
    int requested;
    uint32_t workgroup = 64;
  };
  const Case kCases[] = {
      // A module that states a size gets it, if pipelines can request sizes.
      {amd, k13, 32, true, 1, 32},
      {amd, k13, 64, true, 1, 0},   // the default gives exactly this
      {amd, k16, 64, true, 1, 64},  // might get 32 otherwise
      {nvidia, k16, 32, true, 1, 0},
      {nvidia, k13, 64, true, 1, kRefused},
      {intel, k13, 64, true, 32, kRefused},
      {amd, k13, 48, true, 1, kRefused},
      {fixed, k13, 16, true, 1, 0},
      {fixed, k13, 32, true, 1, kRefused},
      // Without subgroup operations, any size is right.
      {nvidia, k13, 64, false, 1, 0},
      {fixed, k13, 32, false, 1, 0},
      // At most 16 subgroups of the size fit in a workgroup.
      {amd, k13, 32, true, 1, 32, 512},
      {amd, k13, 32, true, 1, kRefused, 1024},
      {nvidia, k13, 32, true, 1, 0, 1024},
      // No stated size: the constants of the shader decide.
      {amd, k13, 0, true, 1, 0},
      {amd, k16, 0, true, 1, 0},
      {amd, k13, 0, true, 64, 0},
      {amd, k16, 0, true, 64, 64},  // might get 32 otherwise
      {intel, k16, 0, true, 16, 16},
      {intel, k13, 0, true, 16, 0},
      {intel, k13, 0, true, 64, kRefused},
      {fixed, k16, 0, true, 16, 0},
      {fixed, k13, 0, true, 32, kRefused},
  };
  for (const Case& test : kCases) {
    SCOPED_TRACE(fmt::format("case {}", &test - kCases));
    vulkan::PipelineImage pipeline;
    pipeline.version = test.version;
    pipeline.subgroup_size = test.stated;
    pipeline.subgroups = {.any = test.any, .whole = test.any, .least = test.least};
    expect_requested(pipeline, {}, test.workgroup, test.device, test.requested,
                     std::to_string(std::max(test.stated, test.least)));
  }
}

TEST(Subgroups, SizesOfTheProgram) {
  const vulkan::Features amd = device_with(64, 32, 64), nvidia = device_with(32, 32, 32),
                         software = device_with(8, 8, 8), fixed = device_with(8, 0, 0, false);
  struct Case {
    const vulkan::Features& device;
    std::vector<uint32_t> compiled;  // sizes for which the program says that it was compiled
    uint32_t workgroup;
    bool whole;
    uint32_t least;
    int requested;
    const char* named = "";  // by the refusal
    uint32_t stated = 0;
  };
  const Case kCases[] = {
      {nvidia, {32}, 64, true, 1, 0},
      {amd, {32}, 64, true, 1, 32},
      {amd, {64}, 64, true, 1, 0},
      {nvidia, {64}, 64, true, 1, kRefused, "64"},
      {software, {32}, 32, true, 1, kRefused, "32"},
      {fixed, {16}, 32, true, 1, kRefused, "16"},
      // Of several, the first that divides the workgroup and has the lanes that the kernel names.
      {amd, {32, 64}, 32, true, 1, 32},
      {amd, {32, 64}, 64, true, 1, 32},
      {amd, {32, 64}, 64, true, 64, 0},
      {amd, {64, 32}, 32, true, 1, 32},
      {amd, {64, 32}, 8, true, 1, 0},
      {nvidia, {32, 64}, 128, true, 1, 0},
      {software, {32, 64}, 64, true, 1, kRefused, "32"},
      {software, {8, 32}, 64, true, 1, 0},
      // Kernels whose results do not depend on the size, with the smallest size that they need.
      {software, {32}, 32, false, 1, 0},
      {software, {32}, 32, false, 8, 0},
      {software, {32}, 32, false, 16, kRefused, "16"},
      // A size that the module states takes precedence.
      {amd, {32}, 64, true, 1, 0, "", 64},
      {software, {8}, 64, true, 1, kRefused, "64", 64},
      // The program states no size.
      {software, {}, 32, true, 1, 0},
  };
  for (const Case& test : kCases) {
    SCOPED_TRACE(fmt::format("case {}", &test - kCases));
    vulkan::PipelineImage pipeline;
    pipeline.version = vulkan::spirv_version(1, 3);
    pipeline.subgroup_size = test.stated;
    pipeline.subgroups = {.any = true, .whole = test.whole, .least = test.least};
    expect_requested(pipeline, test.compiled, test.workgroup, test.device, test.requested, test.named);
  }
}

class SubgroupTest : public VulkanTest {
 public:
  // Two functions: the kernel and "iota", which does not depend on subgroups.
  Outcome load_kernel(const Words& code, uint32_t stated, Executable* loaded, const Words& compiled = {}) {
    return load("vulkan-spirv-fb",
                one_function("iota", 1, 8,
                             [&](format::ExecutableT& e) {
                               e.shader_modules.push_back(std::make_unique<format::ShaderModuleT>());
                               e.shader_modules[1]->code = code;
                               e.pipelines.push_back(std::make_unique<format::PipelineT>(*e.pipelines[0]));
                               std::swap(e.pipelines[0], e.pipelines[1]);
                               e.pipelines[0]->entry_point = "main";
                               e.pipelines[0]->shader_module = 1;
                               e.pipelines[0]->subgroup_size = stated;
                             }),
                loaded, {}, compiled);
  }
  // Dispatches of function 0 are refused with a message that contains `named`; function 1 runs.
  void expect_refused(Executable loaded, std::initializer_list<std::string_view> named) {
    Memory memory = allocate(Words(8, 0));
    const auto command = dispatch(loaded, 0, {range(memory, 0, 32)}, {0, 0});
    expect_fails(Code::INCOMPATIBLE, named, try_finish(Recording().dispatch(command)));
    EXPECT_EQ(words(memory, 8), Words(8, 0));
    EXPECT_OK(run_kernel(loaded, 1, {range(memory, 0, 32)}, {8, 5}));
    EXPECT_NE(words(memory, 8), Words(8, 0));
  }
};

TEST_F(SubgroupTest, KernelsForAnUnsupportedSize) {
  const uint32_t size = device_->features().subgroup.subgroupSize;
  const uint32_t most = std::max(size, device_->features().subgroup_sizes.maxSubgroupSize);
  if (most >= 128) GTEST_SKIP() << "the device has subgroups of every size";
  const std::string device(device_->name());
  const std::string needed = std::to_string(2 * most);
  Executable loaded = nullptr;
  ASSERT_OK(load_kernel(among(most, kXor), 0, &loaded));
  expect_refused(loaded, {needed, device, "'main'"});
  ASSERT_OK(load_kernel(among(1, kXor), 2 * most, &loaded));
  expect_refused(loaded, {needed, std::to_string(most), device, "'main'"});
  // The sizes of the program apply only to kernels whose results depend on the size.
  constexpr const char* kSum = "%taken = OpGroupNonUniformIAdd %uint %subgroup Reduce %given";
  ASSERT_OK(load_kernel(among(1, kSum), 0, &loaded, {2 * most, 4 * most}));
  expect_refused(loaded, {needed, std::to_string(most), device, "'main'"});
  ASSERT_OK(load_kernel(among(1, kXor), 0, &loaded, {2 * most}));
  Memory memory = allocate(Words(8, 9));
  EXPECT_OK(run_kernel(loaded, 0, {range(memory, 0, 32)}, {0, 0}));
  EXPECT_EQ(words(memory, 8), (Words{1, 0, 3, 2, 5, 4, 7, 6}));
}

TEST_F(SubgroupTest, KernelsForASupportedSize) {
  const auto& features = device_->features();
  if (!(features.subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) ||
      features.subgroup.subgroupSize < 8)
    GTEST_SKIP() << "the device does not shuffle among eight";
  for (const uint32_t stated : {0u, features.subgroup.subgroupSize}) {
    Executable loaded = nullptr;
    ASSERT_OK(load_kernel(among(5, kXor), stated, &loaded, {features.subgroup.subgroupSize, 128}));
    Memory memory = allocate(Words(8, 0));
    EXPECT_OK(run_kernel(loaded, 0, {range(memory, 0, 32)}, {0, 0}));
    EXPECT_EQ(words(memory, 8), (Words{5, 4, 7, 6, 1, 0, 3, 2}));
  }
}

}  // namespace
}  // namespace halyard::vulkan_tests
