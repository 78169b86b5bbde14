// SPIR-V that SPIRV-Tools does not accept: errors of compilers, unknown extensions, and damage.
#include "spirv.h"

#include <algorithm>
#include <bit>

#include "assemble.h"
#include "cooperative_matrix.h"
#include "one_function.h"
#include "spirv_check.h"

namespace halyard::vulkan_tests {
namespace {

using vulkan::Features;
using vulkan::SpirvPolicy;
using Words = std::vector<uint32_t>;

// words[x] *= 2, where x is the workgroup. The entry point lists all variables, which is for SPIR-V 1.4 and
// later.
constexpr const char* kTwice = R"(
               OpCapability Shader
               {more}
               OpExtension "SPV_KHR_storage_buffer_storage_class"
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %group %words
               OpExecutionMode %main LocalSize 1 1 1
               OpDecorate %group BuiltIn WorkgroupId
               {decorate_words}
               {decoration}
               {words}
       %uint3 = OpTypeVector %uint 3
%input_uint3 = OpTypePointer Input %uint3
      %group = OpVariable %input_uint3 Input
     %uint_1 = OpConstant %uint 1
       %main = OpFunction %void None %action
      %begin = OpLabel
     %where3 = OpLoad %uint3 %group
      %where = OpCompositeExtract %uint %where3 0
    %element = OpAccessChain %buffer_uint %words %uint_0 %where
        %old = OpLoad %uint %element
        %new = {operation}
               OpStore %element %new
               OpReturn
               OpFunctionEnd
)";

constexpr const char* kShift = "OpShiftLeftLogical %uint %old %uint_1";

Words twice(const std::string& more = "", const char* decoration = "", const char* operation = kShift) {
  return assemble(fmt::format(fmt::runtime(kTwice), fmt::arg("more", more),
                              fmt::arg("decoration", decoration), fmt::arg("operation", operation),
                              fmt::arg("words", kDeclareWords), fmt::arg("decorate_words", kDecorateWords)));
}

Words with_version(Words words, uint32_t minor) {
  words[1] = vulkan::spirv_version(1, minor);
  return words;
}

// Uses a decoration that is part of SPIR-V 1.4, and an extension before.
Words newer_than_its_header(uint32_t minor) {
  return with_version(twice("", "OpDecorate %new NoSignedWrap", "OpIAdd %uint %old %old"), minor);
}

Features features_of(uint32_t api_version) {
  Features features;
  features.api_version = api_version;
  return features;
}

vulkan::Result<> check_and_repair(Words& words, const Features& features,
                                  SpirvPolicy policy = SpirvPolicy::tolerant) {
  return vulkan::check_spirv(words, {policy, features, "Made Up 9000"});
}
vulkan::Result<> check(Words words, const Features& features, SpirvPolicy policy = SpirvPolicy::tolerant) {
  return check_and_repair(words, features, policy);
}

bool mentions(const std::string& message, std::initializer_list<const char*> parts) {
  return std::ranges::all_of(parts, [&](const char* part) { return message.contains(part); });
}

// Checks the code of a refusal and the parts of its message.
void expect_refused(const vulkan::Result<>& checked, halyard_status_code_t code,
                    std::initializer_list<const char*> named = {}) {
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.failure().code, code);
  EXPECT_TRUE(mentions(checked.failure().message, named)) << checked.failure().message;
}

class SpirvTest : public VulkanTest {
 public:
  Outcome load_words(const Words& words, Executable* loaded) {
    return load("vulkan-spirv-fb",
                one_function("iota", 1, 0,
                             [&](format::ExecutableT& e) {
                               e.shader_modules[0]->code = words;
                               e.pipelines[0]->entry_point = "main";
                             }),
                loaded);
  }
  void expect_doubles(const Words& code) {
    Executable loaded = nullptr;
    ASSERT_OK(load_words(code, &loaded));
    Memory memory = allocate(Words{1, 20, 300});
    EXPECT_OK(run_kernel(loaded, 0, {range(memory, 0, 12)}, {}, 3));
    EXPECT_EQ(words(memory, 3), (Words{2, 40, 600}));
  }
};

TEST_F(SpirvTest, InterfacesOfLaterVersions) {
  for (const uint32_t minor : {0u, 3u, 4u}) expect_doubles(with_version(twice(), minor));
}

TEST_F(SpirvTest, StrictnessIsAnOption) {
  const Words slip = with_version(twice(), 0);
  Executable loaded = nullptr;
  reopen({{"cache", ""}, {"spirv", "strict"}});
  const Outcome outcome = load_words(slip, &loaded);
  EXPECT_CODE(INVALID_ARGUMENT, outcome);
  EXPECT_TRUE(mentions(outcome.message(), {"spirv=strict", "spirv=tolerant"})) << outcome.message();
  EXPECT_OK(load_words(with_version(twice(), 4), &loaded));
  for (const char* policy : {"tolerant", "off"}) {
    reopen({{"cache", ""}, {"spirv", policy}});
    EXPECT_OK(load_words(slip, &loaded)) << policy;
  }
  halyard_driver_device_t device = nullptr;
  EXPECT_CODE(INVALID_ARGUMENT, try_open("", {{"spirv", "lenient"}}, &device));
}

TEST_F(SpirvTest, HeadersWithTooOldVersions) {
  for (const uint32_t minor : {0u, 1u, 2u, 3u, 4u}) expect_doubles(newer_than_its_header(minor));
  reopen({{"cache", ""}, {"spirv", "strict"}});
  Executable loaded = nullptr;
  EXPECT_CODE(INVALID_ARGUMENT, load_words(newer_than_its_header(0), &loaded));
}

TEST(SpirvCheck, TheHeaderGetsTheFirstVersionInWhichTheModuleIsValid) {
  Features features = features_of(VK_API_VERSION_1_3);
  Words words = newer_than_its_header(0);
  ASSERT_TRUE(check_and_repair(words, features));
  EXPECT_EQ(words, newer_than_its_header(4));
  EXPECT_TRUE(check(words, features, SpirvPolicy::strict));
  // Its interface lists only inputs, as before version 1.4.
  words = vulkan::with_interfaces(newer_than_its_header(0));
  ASSERT_NE(words, newer_than_its_header(0));
  ASSERT_TRUE(check_and_repair(words, features));
  EXPECT_EQ(words, newer_than_its_header(4));
  // No version has these numbers.
  for (const uint32_t odd : {0u, 0x00010001u, 0x00000100u}) {
    words = newer_than_its_header(0);
    words[1] = odd;
    EXPECT_FALSE(check(words, features)) << odd;
  }
  words = newer_than_its_header(0);
  words[words.size() - 2] = 0x0001FFFF;  // not OpReturn
  const auto damaged = check(words, features);
  ASSERT_FALSE(damaged);
  EXPECT_TRUE(mentions(damaged.failure().message, {"1.6", "1.0"})) << damaged.failure().message;
  EXPECT_FALSE(damaged.failure().message.contains('\n')) << damaged.failure().message;
}

// Dot products are part of SPIR-V 1.6; devices with Vulkan 1.2 have them as an extension.
TEST(SpirvCheck, UndeclaredExtensionsAreDeclared) {
  const Words product =
      with_version(twice("OpCapability DotProductKHR\n OpCapability DotProductInput4x8BitPackedKHR", "",
                         "OpUDotKHR %uint %old %old PackedVectorFormat4x8BitKHR"),
                   0);
  Features features;
  features.integer_dot_product.shaderIntegerDotProduct = VK_TRUE;
  for (const uint32_t api : {VK_API_VERSION_1_2, VK_API_VERSION_1_3}) {
    features.api_version = api;
    Words words = product;
    const auto taken = check_and_repair(words, features);
    ASSERT_TRUE(taken) << taken.failure().message;
    EXPECT_LT(words[1], vulkan::spirv_version(1, 6));
    EXPECT_TRUE(check(words, features, SpirvPolicy::strict));
  }
  features.integer_dot_product.shaderIntegerDotProduct = VK_FALSE;
  EXPECT_EQ(check(product, features).failure().code, HALYARD_INCOMPATIBLE);
}

TEST(SpirvCheck, InterfacesMatchTheVersion) {
  const Words all = twice();
  const Words shorter = vulkan::with_interfaces(with_version(all, 3));
  EXPECT_EQ(shorter.size() + 1, all.size());
  EXPECT_EQ(vulkan::with_interfaces(shorter), shorter);
  EXPECT_EQ(vulkan::with_interfaces(with_version(all, 4)), with_version(all, 4));
  EXPECT_EQ(vulkan::with_interfaces(with_version(shorter, 4)), with_version(all, 4));
  Features features = features_of(VK_API_VERSION_1_3);
  EXPECT_TRUE(check(shorter, features, SpirvPolicy::strict));
}

TEST(SpirvCheck, UnknownCapabilitiesAreCheckedAgainstTheFeatures) {
  Features features = features_of(VK_API_VERSION_1_3);
  struct Case {
    uint32_t capability;
    std::initializer_list<const char*> named;
  };
  const Case kCases[] = {
      {6022, {"VK_KHR_cooperative_matrix", "'Made Up 9000'", "lacks"}},
      {9, {"shaderFloat16", "'Made Up 9000'", "lacks"}},
      {5116, {"shaderBFloat16Type", "'Made Up 9000'", "enables on no device"}},
      {9999, {"9999", "'Made Up 9000'", "spirv=off"}},
  };
  for (const auto& [capability, named] : kCases) {
    // "OpCapability N", for numbers that the assembler may not know.
    const Words words = twice(fmt::format("!{} !{}", 2u << 16 | vulkan::kOpCapability, capability));
    SCOPED_TRACE(capability);
    expect_refused(check(words, features), HALYARD_INCOMPATIBLE, named);
  }
  const Words unknown = twice(fmt::format("!{} !9999", 2u << 16 | vulkan::kOpCapability));
  EXPECT_TRUE(check(unknown, features, SpirvPolicy::off));
  EXPECT_EQ(check(unknown, features, SpirvPolicy::strict).failure().code, HALYARD_INVALID_ARGUMENT);
  EXPECT_TRUE(check(twice("OpExtension \"SPV_KHR_of_tomorrow\""), features));
}

TEST(SpirvCheck, VersionsNewerThanTheDevice) {
  Features features = features_of(VK_API_VERSION_1_2);
  EXPECT_TRUE(check(with_version(twice(), 5), features));
  for (const SpirvPolicy policy : {SpirvPolicy::tolerant, SpirvPolicy::strict, SpirvPolicy::off}) {
    const auto checked = check(with_version(twice(), 6), features, policy);
    if (policy == SpirvPolicy::strict && checked) continue;
    expect_refused(checked, HALYARD_INCOMPATIBLE, {"1.6", "1.5", "'Made Up 9000'"});
  }
  features.api_version = VK_API_VERSION_1_3;
  EXPECT_TRUE(check(with_version(twice(), 6), features));
}

// result = left * right, matrices stored by rows. The words of the KHR extension are written as numbers,
// since the assembler does not know it; OpNoLine ends the previous instruction.
constexpr const char* kProduct = R"(
               OpCapability Shader
               {capabilities}
               !0x00020011 !6022
               OpExtension "SPV_KHR_cooperative_matrix"
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %left_data %right_data %result_data
               OpExecutionMode %main LocalSize {lanes} 1 1
               OpDecorate %factors ArrayStride {factor_size}
               OpMemberDecorate %factor_block 0 Offset 0
               OpDecorate %factor_block Block
               OpDecorate %left_data DescriptorSet 0
               OpDecorate %left_data Binding 0
               OpDecorate %right_data DescriptorSet 0
               OpDecorate %right_data Binding 1
               OpDecorate %sums ArrayStride 4
               OpMemberDecorate %sum_block 0 Offset 0
               OpDecorate %sum_block Block
               OpDecorate %result_data DescriptorSet 0
               OpDecorate %result_data Binding 2
       %void = OpTypeVoid
     %action = OpTypeFunction %void
       %uint = OpTypeInt 32 0
     %factor = {factor}
        %sum = {sum}
     %uint_0 = OpConstant %uint 0
   %subgroup = OpConstant %uint 3
          %m = OpConstant %uint {m}
          %n = OpConstant %uint {n}
          %k = OpConstant %uint {k}
      %use_b = OpConstant %uint 1
      %use_c = OpConstant %uint 2
       %zero = OpConstant %sum 0
               OpNoLine
               !0x00071168 %a %factor %subgroup %m %k %uint_0
               !0x00071168 %b %factor %subgroup %k %n %use_b
               !0x00071168 %c %sum %subgroup %m %n %use_c
    %factors = OpTypeRuntimeArray %factor
%factor_block = OpTypeStruct %factors
%factor_blocks = OpTypePointer StorageBuffer %factor_block
%factor_pointer = OpTypePointer StorageBuffer %factor
  %left_data = OpVariable %factor_blocks StorageBuffer
 %right_data = OpVariable %factor_blocks StorageBuffer
       %sums = OpTypeRuntimeArray %sum
  %sum_block = OpTypeStruct %sums
 %sum_blocks = OpTypePointer StorageBuffer %sum_block
%sum_pointer = OpTypePointer StorageBuffer %sum
%result_data = OpVariable %sum_blocks StorageBuffer
    %nothing = OpConstantComposite %c %zero
       %main = OpFunction %void None %action
      %begin = OpLabel
       %from = OpAccessChain %factor_pointer %left_data %uint_0 %uint_0
      %other = OpAccessChain %factor_pointer %right_data %uint_0 %uint_0
         %to = OpAccessChain %sum_pointer %result_data %uint_0 %uint_0
               OpNoLine
               !0x00061169 %a %left %from %uint_0 %k
               !0x00061169 %b %right %other %uint_0 %n
               !0x0007116B %c %product %left %right %nothing !{signs}
               !0x0005116A %to %product %uint_0 %n
               OpReturn
               OpFunctionEnd
)";

struct Product {
  uint32_t m = 16, n = 16, k = 16;
  bool is_half = false;  // true: f16 into f32; false: i8 into i32
  uint32_t lanes = 32;

  std::string text() const {
    return fmt::format(
        fmt::runtime(kProduct), fmt::arg("m", m), fmt::arg("n", n), fmt::arg("k", k),
        fmt::arg("lanes", lanes), fmt::arg("factor", is_half ? "OpTypeFloat 16" : "OpTypeInt 8 1"),
        fmt::arg("sum", is_half ? "OpTypeFloat 32" : "OpTypeInt 32 1"),
        fmt::arg("factor_size", is_half ? 2 : 1), fmt::arg("signs", is_half ? 0 : 15),
        fmt::arg("capabilities", is_half ? "OpCapability Float16\nOpCapability StorageBuffer16BitAccess"
                                         : "OpCapability Int8\nOpCapability StorageBuffer8BitAccess"));
  }
};

Words product() { return assemble(Product().text(), SPV_ENV_UNIVERSAL_1_6); }

// The module with the first `from` replaced.
Words changed_product(std::string_view from, std::string_view to) {
  std::string text = Product().text();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return assemble(text, SPV_ENV_UNIVERSAL_1_6);
}

// A device with cooperative matrices, which lavapipe lacks.
Features with_matrices() {
  Features features = features_of(VK_API_VERSION_1_3);
  features.vulkan12.shaderInt8 = features.vulkan12.storageBuffer8BitAccess = VK_TRUE;
  features.cooperative_matrix.cooperativeMatrix = VK_TRUE;
  features.matrix_stages = VK_SHADER_STAGE_COMPUTE_BIT;
  VkCooperativeMatrixPropertiesKHR shape = {};
  shape.MSize = shape.NSize = shape.KSize = 16;
  shape.AType = shape.BType = VK_COMPONENT_TYPE_SINT8_KHR;
  shape.CType = shape.ResultType = VK_COMPONENT_TYPE_SINT32_KHR;
  shape.scope = VK_SCOPE_SUBGROUP_KHR;
  features.matrix_shapes = {shape};
  return features;
}

TEST(SpirvCheck, CooperativeMatricesAreAccepted) {
  const Words original = product();
  Words words = original;
  const Features features = with_matrices();
  const auto checked = check_and_repair(words, features);
  EXPECT_TRUE(checked) << checked.failure().message;
  EXPECT_EQ(words, original) << "the device gets what the compiler wrote";
  Features halves = with_matrices();
  halves.vulkan12.shaderFloat16 = halves.vulkan11.storageBuffer16BitAccess = VK_TRUE;
  VkCooperativeMatrixPropertiesKHR& shape = halves.matrix_shapes[0];
  shape.NSize = 8;
  shape.AType = shape.BType = VK_COMPONENT_TYPE_FLOAT16_KHR;
  shape.CType = shape.ResultType = VK_COMPONENT_TYPE_FLOAT32_KHR;
  const Words product_of_halves = assemble(Product{16, 8, 16, true}.text(), SPV_ENV_UNIVERSAL_1_6);
  EXPECT_TRUE(check(product_of_halves, halves));
  // Added to a pointer: a validator that knows the extension rejects it.
  expect_refused(check(changed_product("%right %nothing", "%right %from"), features),
                 HALYARD_INVALID_ARGUMENT);
}

// Errors in parts that the older extension cannot express must still be found.
TEST(SpirvCheck, PartsBeyondTheOlderMatrixExtensionAreChecked) {
  const Features features = with_matrices();
  const auto refuses = [&](std::string_view from, std::string_view to) {
    SCOPED_TRACE(to);
    expect_refused(check(changed_product(from, to), features), HALYARD_INVALID_ARGUMENT);
  };
  constexpr const char* kType = "!0x00071168 %b %factor %subgroup %k %n %use_b";
  refuses(kType, "!0x00071168 %b %factor %subgroup %k %n %n");
  refuses(kType, "!0x00071168 %b %factor %subgroup %k %n %factor");
  refuses(kType, "!0x00081168 %b %factor %subgroup %k %n %use_b %use_b");
  constexpr const char* kLoad = "!0x00061169 %a %left %from %uint_0 %k";
  refuses(kLoad, "!0x00061169 %a %left %from %use_c %k");
  refuses(kLoad, "!0x00061169 %a %left %from %left %k");
  refuses("!0x0005116A %to %product %uint_0 %n", "!0x0005116A %to %product %n %n");
  constexpr const char* kMultiply = "!0x0007116B %c %product %left %right %nothing !15";
  refuses(kMultiply, "!0x0007116B %c %product %left %right %nothing !32");
  refuses(kMultiply, "!0x0008116B %c %product %left %right %nothing !15 !15");
  refuses(kMultiply, "!0x000614F1 %c %product %left %right %nothing");  // the name in the older extension
  Words words = product();
  words[3] = 0xFFFFFFFF;
  EXPECT_EQ(check(words, features).failure().code, HALYARD_INVALID_ARGUMENT);
}

TEST(SpirvCheck, UnsupportedProductsOfCooperativeMatrices) {
  const std::pair<const char*, std::function<void(VkCooperativeMatrixPropertiesKHR&)>> kOthers[] = {
      {"rows", [](auto& shape) { shape.MSize = 8; }},
      {"columns", [](auto& shape) { shape.NSize = 8; }},
      {"depth", [](auto& shape) { shape.KSize = 32; }},
      {"type", [](auto& shape) { shape.AType = VK_COMPONENT_TYPE_FLOAT16_KHR; }},
      {"sum", [](auto& shape) { shape.CType = VK_COMPONENT_TYPE_FLOAT32_KHR; }},
      {"result", [](auto& shape) { shape.ResultType = VK_COMPONENT_TYPE_SINT64_KHR; }},
  };
  for (const auto& [name, change] : kOthers) {
    Features features = with_matrices();
    change(features.matrix_shapes[0]);
    SCOPED_TRACE(name);
    expect_refused(check(product(), features), HALYARD_INCOMPATIBLE,
                   {"16x16x16", "i8", "i32", "'Made Up 9000'"});
  }
}

// If the device has some: products of bytes and of halves, of the listed shapes.
TEST_F(SpirvTest, SupportedProductsOfCooperativeMatrices) {
  size_t count = 0;
  for (const VkCooperativeMatrixPropertiesKHR& shape : device_->features().matrix_shapes) {
    const auto has = [&](VkComponentTypeKHR factor, VkComponentTypeKHR sum) {
      return shape.AType == factor && shape.BType == factor && shape.CType == sum && shape.ResultType == sum;
    };
    const bool is_half = has(VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR);
    if (shape.scope != VK_SCOPE_SUBGROUP_KHR || shape.saturatingAccumulation ||
        (!is_half && !has(VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_SINT32_KHR)))
      continue;
    const Product product = {shape.MSize, shape.NSize, shape.KSize, is_half,
                             device_->features().subgroup.subgroupSize};
    SCOPED_TRACE(fmt::format("{}x{}x{} {}", product.m, product.n, product.k, is_half ? "f16" : "i8"));
    ++count;
    Executable loaded = nullptr;
    const std::vector<uint8_t> data = one_function("iota", 3, 0, [&](format::ExecutableT& e) {
      e.shader_modules[0]->code = assemble(product.text(), SPV_ENV_UNIVERSAL_1_6);
      e.pipelines[0]->entry_point = "main";
      e.pipelines[0]->subgroup_size = product.lanes;
    });
    ASSERT_OK(load("vulkan-spirv-fb", data, &loaded));
    // Small integers from -2 to 2, which f16 can represent.
    const auto number = [](uint32_t i, uint32_t seed) {
      return static_cast<int>((i * 7 + i / 5 + seed) % 5) - 2;
    };
    const uint64_t size = is_half ? 2 : 1;
    constexpr uint16_t kHalves[] = {0xC000, 0xBC00, 0, 0x3C00, 0x4000};
    const auto factors = [&](uint32_t elements, uint32_t seed) {
      Memory memory = allocate(elements * size);
      for (uint32_t i = 0; i < elements; ++i) {
        const int value = number(i, seed);
        if (is_half) std::memcpy(bytes(memory) + i * size, &kHalves[value + 2], size);
        if (!is_half) bytes(memory)[i] = static_cast<uint8_t>(value);
      }
      EXPECT_OK(host_.take(table_.memory_flush(device_, memory, 0, elements * size)));
      return memory;
    };
    Memory left = factors(product.m * product.k, 1);
    Memory right = factors(product.k * product.n, 3);
    Memory result = allocate(Words(product.m * product.n, 99));
    EXPECT_OK(run_kernel(
        loaded, 0,
        {range(left, 0, product.m * product.k * size), range(right, 0, product.k * product.n * size),
         range(result, 0, product.m * product.n * 4)}));
    const Words found = words(result, product.m * product.n);
    for (uint32_t row = 0; row < product.m; ++row)
      for (uint32_t column = 0; column < product.n; ++column) {
        int expected = 0;
        for (uint32_t i = 0; i < product.k; ++i)
          expected += number(row * product.k + i, 1) * number(i * product.n + column, 3);
        const uint32_t word = found[row * product.n + column];
        ASSERT_EQ(is_half ? std::bit_cast<float>(word) : static_cast<float>(static_cast<int32_t>(word)),
                  static_cast<float>(expected))
            << row << ", " << column;
      }
  }
  if (count == 0) GTEST_SKIP() << "the device lists no product of cooperative matrices that this test knows";
}

// Damages every word of valid modules in turn. Accepted modules are those that SPIRV-Tools accepts.
TEST(SpirvCheck, DamageIsRefusedAndNothingElseHappens) {
  const Features features = with_matrices();
  size_t refused = 0, total = 0;
  for (const Words& good : {with_version(twice(), 0), newer_than_its_header(0), product()}) {
    const bool has_matrices = good == product();
    for (size_t i = 0; i < good.size(); ++i)
      for (const uint32_t bad : {0u, good[i] + 1, good[i] ^ 0x10000, ~0u}) {
        Words words = good;
        words[i] = bad;
        const auto checked = check_and_repair(words, features);
        refused += !checked;
        ++total;
        if (checked && !has_matrices) {
          EXPECT_TRUE(check(words, features, SpirvPolicy::strict)) << i << ": " << bad;
        }
        words = good;  // modules accepted with `off` do no harm to this driver either
        words[i] = bad;
        if (check(words, features, SpirvPolicy::off)) (void)vulkan::read_spirv(words);
      }
  }
  EXPECT_GT(refused, total / 2);
  EXPECT_LT(refused, total);
}

TEST(SpirvCheck, TruncatedModules) {
  const Features features = with_matrices();
  for (const Words& good : {with_version(twice(), 0), newer_than_its_header(0), product()})
    for (size_t size = 0; size < good.size(); ++size) {
      const Words cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
      SCOPED_TRACE(size);
      expect_refused(check(cut, features), HALYARD_INVALID_ARGUMENT);
      (void)vulkan::read_spirv(cut);
    }
}

}  // namespace
}  // namespace halyard::vulkan_tests
