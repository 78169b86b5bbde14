// The table of `hal` functions: every signature of every version can be bound, and nothing else.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "modules/hal_functions.h"
#include "testing.h"

namespace halyard::modules {
namespace {

TEST(HalTable, HasTheFunctionsOfEachVersion) {
  std::map<uint32_t, std::set<std::string_view>> names;
  for (const HalSignature& signature : hal_signatures()) {
    EXPECT_LE(signature.since, signature.until) << signature.name;
    for (uint32_t version = signature.since; version <= signature.until; ++version) {
      EXPECT_TRUE(names[version].insert(signature.name).second)
          << signature.name << " has two signatures in hal 0." << version;
    }
  }
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(names[5].size(), 51u);
  EXPECT_EQ(names[6].size(), 57u);
  EXPECT_EQ(names[7].size(), 58u);
  EXPECT_EQ(hal_signatures().size(), 76u);
}

TEST(HalTable, FunctionsStayUntilTheLastVersion) {
  std::map<std::string_view, uint32_t> last;
  for (const HalSignature& signature : hal_signatures())
    last[signature.name] = std::max(last[signature.name], signature.until);
  for (const auto& [name, until] : last) EXPECT_EQ(until, kHalVersion) << name;
}

TEST(HalTable, SignaturesOfANameStandTogetherOldestFirstAndDiffer) {
  std::set<std::string_view> finished;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  const HalSignature* before = nullptr;
  for (const HalSignature& signature : hal_signatures()) {
    if (before && before->name == signature.name) {
      EXPECT_EQ(signature.since, before->until + 1) << signature.name;
    } else if (before) {
      finished.insert(before->name);
    }
    EXPECT_FALSE(finished.contains(signature.name)) << signature.name;
    EXPECT_TRUE(seen.emplace(signature.name, signature.convention).second) << signature.name;
    before = &signature;
  }
}

TEST(HalTable, EverySignatureLinksByNameAndString) {
  const Ref<vm::NativeModule> module = create_hal_module({});
  EXPECT_EQ(module->name(), "hal");
  EXPECT_EQ(module->version(), 7u);
  ASSERT_EQ(module->exports().size(), hal_signatures().size());
  for (const HalSignature& signature : hal_signatures()) {
    auto found = module->resolve(signature.name, signature.convention);
    ASSERT_TRUE(found) << signature.name << " " << found.error().text();
    EXPECT_EQ((*found)->name, signature.name);
    EXPECT_EQ((*found)->convention, signature.convention);
    EXPECT_NE(module->native_export((*found)->function).function, nullptr);
    EXPECT_EQ(module->native_export((*found)->function).convention, signature.convention);
  }
}

TEST(HalTable, AnotherStringIsRefusedWithTheStringsThereAre) {
  const Ref<vm::NativeModule> module = create_hal_module({});
  for (const HalSignature& signature : hal_signatures()) {
    auto found = module->resolve(signature.name, "0iiiiiiii_I");
    for (const std::string_view part :
         {std::string_view("0iiiiiiii_I"), std::string_view(signature.convention),
          std::string_view(signature.name)})
      EXPECT_FAILS(INCOMPATIBLE, part, found) << signature.name;
  }
}

TEST(HalTable, EquivalentStringsAreNotEqualStrings) {
  const Ref<vm::NativeModule> module = create_hal_module({});
  EXPECT_TRUE(module->resolve("devices.count", "0v_i"));
  EXPECT_FALSE(module->resolve("devices.count", "0_i"));
  EXPECT_TRUE(module->resolve("fence.signal", "0r_v"));
  EXPECT_FALSE(module->resolve("fence.signal", "0r_"));
}

TEST(HalTable, WithoutAStringTheNewestSignatureIsMeant) {
  const Ref<vm::NativeModule> module = create_hal_module({});
  std::map<std::string_view, std::string_view> newest;
  for (const HalSignature& signature : hal_signatures()) newest[signature.name] = signature.convention;
  for (const auto& [name, convention] : newest) {
    auto found = module->resolve(name, "");
    ASSERT_TRUE(found) << name;
    EXPECT_EQ((*found)->convention, convention) << name;
  }
}

TEST(HalTable, AMissingFunctionIsNamed) {
  EXPECT_FAILS(NOT_FOUND, "fence.create", create_hal_module({})->resolve("fence.creat", "0rI_r"));
}

TEST(HalTypes, ElevenNames) {
  vm::TypeRegistry types;
  EXPECT_EQ(types.find("hal.buffer"), nullptr);
  add_hal_types(types);
  for (const char* name :
       {"hal.allocator", "hal.buffer", "hal.buffer_view", "hal.channel", "hal.command_buffer", "hal.device",
        "hal.event", "hal.executable", "hal.fence", "hal.file", "hal.semaphore"}) {
    ASSERT_NE(types.find(name), nullptr) << name;
    EXPECT_STREQ(types.find(name)->name, name);
  }
  EXPECT_EQ(types.find("hal.buffer"), &hal::Buffer::kType);
  EXPECT_EQ(types.find("hal.fence"), &hal::Fence::kType);
}

}  // namespace
}  // namespace halyard::modules
