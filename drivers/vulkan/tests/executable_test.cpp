// Executables on a device: ways of binding, constants, specialization, subgroup sizes, missing features.
#include "executable.h"

#include <algorithm>
#include <optional>
#include <string>

#include "harness.h"
#include "one_function.h"

namespace halyard::vulkan_tests {
namespace {

std::vector<uint8_t> with_header(const std::vector<uint8_t>& content, uint32_t version, uint64_t size) {
  std::vector<uint8_t> data(64 + content.size(), 0);
  std::memcpy(data.data(), "VKE1", 4);
  std::memcpy(data.data() + 4, &version, 4);
  std::memcpy(data.data() + 8, &size, 8);
  std::ranges::copy(content, data.begin() + 64);
  return data;
}

class ExecutableTest : public VulkanTest {
 public:
  Outcome load_changed(const Change& change, Executable* executable) {
    return load("vulkan-spirv-fb", one_function("iota", 1, 8, change), executable);
  }
  Outcome load_changed(const Change& change) {
    Executable executable = nullptr;
    return load_changed(change, &executable);
  }
};

TEST_F(ExecutableTest, ContainersOfEveryRelease) {
  const std::vector<uint8_t> bare = one_function("iota", 1, 8);
  std::vector<uint8_t> trailing = with_header(bare, 0, bare.size());
  trailing.resize(trailing.size() + 13, 0xEE);
  for (const std::vector<uint8_t>& data : {bare, with_header(bare, 0, bare.size()), trailing})
    for (const char* name : {"vulkan-spirv-fb", "vulkan-spirv-fb-ptr"}) {
      Executable loaded = executable(name, data);
      ASSERT_NE(loaded, nullptr);
      Memory out = allocate(std::vector<uint32_t>(4, 0));
      EXPECT_OK(run_kernel(loaded, 0, {range(out, 0, 16)}, {10, 3}, 4));
      EXPECT_EQ(words(out, 4), (std::vector<uint32_t>{10, 13, 16, 19}));
    }
}

TEST_F(ExecutableTest, FunctionsHaveAPlaceInTheSource) {
  const auto source = [&](const std::optional<std::string>& file) {
    Executable loaded = nullptr;
    EXPECT_OK(load_changed(
        [&](format::ExecutableT& executable) {
          auto& info = executable.pipelines[0]->export_info;
          info = std::make_unique<format::ExportInfoT>();
          if (!file) return;
          info->location = std::make_unique<format::LocationT>();
          info->location->file = *file;
          info->location->line = 7;
        },
        &loaded));
    const halyard_text_t text = info(loaded, 0).source;
    return std::string(text.data, text.size);
  };
  EXPECT_EQ(source("a model.mlir"), "a model.mlir:7");
  EXPECT_EQ(source(std::nullopt), "");
  EXPECT_EQ(source(""), "");
  EXPECT_EQ(source(std::string(4096, 'x')), std::string(4096, 'x') + ":7");
  EXPECT_EQ(source(std::string(4097, 'x')), "");
}

TEST_F(ExecutableTest, InvalidHeaders) {
  const std::vector<uint8_t> bare = one_function("iota", 1, 8);
  Executable loaded = nullptr;
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-fb", with_header(bare, 1, bare.size()), &loaded));
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-fb", with_header(bare, 0, bare.size() + 1), &loaded));
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-fb", with_header(bare, 0, ~uint64_t{0}), &loaded));
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-fb", with_header(bare, 0, 4), &loaded));
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-fb", {'V', 'K', 'E', '1'}, &loaded));
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-fb", {}, &loaded));
}

// Each breaks one requirement of an executable (exec-vulkan.md, section 3).
TEST_F(ExecutableTest, OneErrorEach) {
  const std::pair<const char*, Change> kBroken[] = {
      {"no pipelines", [](auto& e) { e.pipelines.clear(); }},
      {"module out of range", [](auto& e) { e.pipelines[0]->shader_module = 1; }},
      {"layout out of range", [](auto& e) { e.pipelines[0]->layout = 7; }},
      {"set out of range", [](auto& e) { e.pipeline_layouts[0]->sets = {1}; }},
      {"no entry point", [](auto& e) { e.pipelines[0]->entry_point = ""; }},
      {"another entry point", [](auto& e) { e.pipelines[0]->entry_point = "main"; }},
      {"one binding twice",
       [](auto& e) {
         e.set_layouts[0]->bindings.push_back(
             std::make_unique<format::BindingT>(*e.set_layouts[0]->bindings[0]));
       }},
      {"stages without compute", [](auto& e) { e.set_layouts[0]->bindings[0]->stages = 0x10; }},
      {"a sampler", [](auto& e) { e.set_layouts[0]->bindings[0]->type = 0; }},
      {"too many descriptors", [](auto& e) { e.set_layouts[0]->bindings[0]->count = 1u << 31; }},
      {"a binding that the kernel uses is missing", [](auto& e) { e.set_layouts[0]->bindings.clear(); }},
      {"a binding of another type", [](auto& e) { e.set_layouts[0]->bindings[0]->type = 6; }},
      {"push constants that are too few",
       [](auto& e) { e.pipeline_layouts[0]->push_constants = {{0x20, 0, 4}}; }},
      {"push constants not aligned", [](auto& e) { e.pipeline_layouts[0]->push_constants = {{0x20, 2, 8}}; }},
      {"push constants beyond the device",
       [](auto& e) { e.pipeline_layouts[0]->push_constants = {{0x20, 0, 1u << 20}}; }},
      {"push constants that overflow",
       [](auto& e) { e.pipeline_layouts[0]->push_constants = {{0x20, 0xFFFFFFFC, 8}}; }},
      {"push constants without compute",
       [](auto& e) { e.pipeline_layouts[0]->push_constants = {{0x1, 0, 8}}; }},
      {"no SPIR-V", [](auto& e) { e.shader_modules[0]->code.clear(); }},
      {"another magic", [](auto& e) { e.shader_modules[0]->code[0] = 1; }},
      {"SPIR-V cut short", [](auto& e) { e.shader_modules[0]->code.resize(40); }},
      {"descriptors with a layout of addresses",
       [](auto& e) { e.pipelines[0]->addresses = std::make_unique<format::AddressLayoutT>(); }},
      {"addresses in a format of descriptors", [](auto& e) { e.pipelines[0]->abi = format::Abi::Addresses; }},
      {"an ABI that nobody knows", [](auto& e) { e.pipelines[0]->abi = static_cast<format::Abi>(9); }},
  };
  EXPECT_OK(load_changed({}));
  for (const auto& [what, change] : kBroken) EXPECT_CODE(INVALID_ARGUMENT, load_changed(change)) << what;
}

// A function whose bindings are addresses, with one binding.
using ChangeLayout = std::function<void(format::AddressLayoutT&)>;
std::vector<uint8_t> by_address(const std::string& shader, uint32_t push, const ChangeLayout& change) {
  return one_function(shader, 0, push, [&](format::ExecutableT& e) {
    e.shader_modules[0]->code = kernel_words(shader + "_bda.spv");
    e.set_layouts.clear();
    e.pipeline_layouts[0]->sets.clear();
    e.pipelines[0]->abi = format::Abi::Addresses;
    e.pipelines[0]->addresses = std::make_unique<format::AddressLayoutT>();
    e.pipelines[0]->addresses->binding_count = 1;
    change(*e.pipelines[0]->addresses);
  });
}

TEST_F(ExecutableTest, LayoutsOfAddresses) {
  const auto load_addresses = [&](const ChangeLayout& change) {
    Executable loaded = nullptr;
    const std::vector<uint8_t> data = by_address("iota", 40, [&](format::AddressLayoutT& layout) {
      layout.constant_count = 2;
      change(layout);
    });
    return load("vulkan-spirv-bda-v1", data, &loaded);
  };
  EXPECT_OK(load_addresses([](auto&) {}));
  const std::pair<const char*, ChangeLayout> kBroken[] = {
      {"another version", [](auto& a) { a.version = 2; }},
      {"a root that is too short", [](auto& a) { a.root_length = 16; }},
      {"a root that is not aligned", [](auto& a) { a.root_offset = 12; }},
      {"a root that overflows", [](auto& a) { a.root_offset = 0xFFFFFFF0; }},
      {"constants within the root", [](auto& a) { a.constant_offset = 16; }},
      {"constants past the push constants", [](auto& a) { a.constant_count = 3; }},
      {"constants that overflow", [](auto& a) { a.constant_count = 0x40000000; }},
      {"another type of entries", [](auto& a) { a.entry_type = format::EntryType::AddressAndLength; }},
      {"too many bindings", [](auto& a) { a.binding_count = 1u << 31; }},
      {"requirements of more bindings than there are",
       [](auto& a) {
         for (int i = 0; i < 2; ++i) a.bindings.push_back(std::make_unique<format::AddressBindingT>());
       }},
  };
  for (const auto& [name, change] : kBroken) EXPECT_CODE(INVALID_ARGUMENT, load_addresses(change)) << name;
}

TEST_F(ExecutableTest, BindingsByAddressAreCheckedAgainstTheLayout) {
  Executable loaded =
      executable("vulkan-spirv-bda-v1", by_address("increment", 32, [](format::AddressLayoutT& layout) {
                   layout.bindings.push_back(std::make_unique<format::AddressBindingT>());
                   layout.bindings[0]->minimum_alignment = 8;
                   layout.bindings[0]->minimum_length = 8;
                 }));
  Memory memory = allocate(std::vector<uint32_t>(16, 5));
  EXPECT_OK(run_kernel(loaded, 0, {range(memory, 8, 8)}));
  EXPECT_CODE(INVALID_ARGUMENT, run_kernel(loaded, 0, {range(memory, 4, 8)}));
  EXPECT_CODE(INVALID_ARGUMENT, run_kernel(loaded, 0, {range(memory, 8, 4)}));
  EXPECT_EQ(words(memory, 4), (std::vector<uint32_t>{5, 5, 6, 5}));
}

TEST_F(ExecutableTest, StandAloneSpirv) {
  Executable loaded = executable("vulkan-spirv-bda-raw", kernel_file("increment_bda.spv"));
  Memory memory = allocate(std::vector<uint32_t>(4, 7));
  EXPECT_OK(run_kernel(loaded, 0, {range(memory, 0, 16)}, {}, 3));
  EXPECT_EQ(words(memory, 4), (std::vector<uint32_t>{8, 8, 8, 7}));
  EXPECT_EQ(info(loaded, 0).binding_count, HALYARD_COUNT_UNDECLARED);
  // Descriptors; more push constants than the root; a length that is not a whole number of words.
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-bda-raw", kernel_file("increment.spv"), &loaded));
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-bda-raw", kernel_file("iota_bda.spv"), &loaded));
  std::vector<uint8_t> odd = kernel_file("increment_bda.spv");
  odd.push_back(0);
  EXPECT_CODE(INVALID_ARGUMENT, load("vulkan-spirv-bda-raw", odd, &loaded));
}

TEST_F(ExecutableTest, SetsAndArraysAndUniformBuffers) {
  const std::vector<uint8_t> data = one_function("sets", 0, 0, [](format::ExecutableT& e) {
    const auto add = [&](uint32_t set, uint32_t number, uint32_t type, uint32_t count) {
      auto binding = std::make_unique<format::BindingT>();
      binding->binding = number;
      binding->type = type;
      binding->count = count;
      binding->stages = 0x7FFFFFFF;
      e.set_layouts[set]->bindings.push_back(std::move(binding));
    };
    e.set_layouts.push_back(std::make_unique<format::SetLayoutT>());
    e.pipeline_layouts[0]->sets = {0, 1};
    add(0, 3, 7, 1);
    add(0, 1, 7, 2);
    add(1, 0, 6, 1);
    add(1, 5, 7, 1);
  });
  Executable loaded = executable("vulkan-spirv-fb", data);
  ASSERT_NE(loaded, nullptr);
  std::vector<halyard_range_t> bindings;
  for (uint32_t i = 0; i < 4; ++i) bindings.push_back(range(allocate(std::vector<uint32_t>{100 + i}), 0, 4));
  Memory out = allocate(std::vector<uint32_t>(4, 0));
  bindings.push_back(range(out, 0, 16));
  EXPECT_OK(run_kernel(loaded, 0, bindings));
  EXPECT_EQ(words(out, 4), (std::vector<uint32_t>{100, 101, 102, 103}));
}

TEST_F(ExecutableTest, SpecializationAndSubgroupSize) {
  const vulkan::Features& features = device_->features();
  Memory out = allocate(std::vector<uint32_t>(3, 0));
  const auto run_it = [&](const std::vector<uint8_t>& data, const std::vector<uint32_t>& constants) {
    Executable loaded = executable("vulkan-spirv-fb", data, constants);
    EXPECT_OK(run_kernel(loaded, 0, {range(out, 0, 12)}));
    return words(out, 3);
  };
  const std::vector<uint8_t> plain = one_function("specialized", 1, 0);
  EXPECT_EQ(run_it(plain, {})[0], 7u);
  EXPECT_EQ(run_it(plain, {})[1], 8u);
  EXPECT_EQ(run_it(plain, {41})[0], 41u);
  EXPECT_EQ(run_it(plain, {41})[1], 8u);
  EXPECT_EQ(run_it(plain, {1, 2, 3})[1], 2u);
  if (features.subgroup_size.subgroupSizeControl) {
    const uint32_t size = features.subgroup_sizes.minSubgroupSize;
    EXPECT_EQ(run_it(one_function("specialized", 1, 0,
                                  [&](format::ExecutableT& e) { e.pipelines[0]->subgroup_size = size; }),
                     {})[2],
              size);
  }
  Executable loaded = executable(
      "vulkan-spirv-fb",
      one_function("specialized", 1, 0, [](format::ExecutableT& e) { e.pipelines[0]->subgroup_size = 3; }));
  const auto command = dispatch(loaded, 0, {range(out, 0, 12)});
  EXPECT_FAILS(INCOMPATIBLE, "3", try_finish(Recording().dispatch(command)));
}

TEST_F(ExecutableTest, MissingFeaturesAreNamed) {
  features().core.shaderFloat64 = VK_FALSE;  // as if the device lacked it
  Executable loaded = nullptr;
  EXPECT_FAILS(INCOMPATIBLE, "shaderFloat64",
               load("vulkan-spirv-fb", one_function("doubles", 1, 0), &loaded));
}

TEST_F(ExecutableTest, FewerConstantsAreZeroAndBindingsAreAligned) {
  Executable loaded = executable("vulkan-spirv-fb", one_function("iota", 1, 8));
  Memory out = allocate(std::vector<uint32_t>(64, 9));
  EXPECT_OK(run_kernel(loaded, 0, {range(out, 0, 16)}, {5}, 4));
  EXPECT_EQ(words(out, 4), (std::vector<uint32_t>{5, 5, 5, 5}));
  if (device_->features().limits.minStorageBufferOffsetAlignment > 4) {
    EXPECT_FAILS(INVALID_ARGUMENT, "'iota'", run_kernel(loaded, 0, {range(out, 4, 16)}, {5}, 4));
  }
}

// Compiling kernels on several threads gives the same result as on one.
TEST_F(ExecutableTest, CompilesOnSeveralThreads) {
  reopen({{"cache", ""}, {"compile_threads", "3"}});
  Executable loaded = device_code();
  ASSERT_EQ(table_.executable_function_count(loaded), 5u);
  Memory memory = allocate(std::vector<uint32_t>(4, 1));
  EXPECT_OK(run_kernel(loaded, 2, {range(memory, 0, 16)}, {}, 4));
  EXPECT_EQ(words(memory, 4), (std::vector<uint32_t>{2, 2, 2, 2}));
}

}  // namespace
}  // namespace halyard::vulkan_tests
