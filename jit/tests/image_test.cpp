// Images: what is no image is refused, whole ones come back as they were, and code finds its symbols.
#include "shared/image.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include "front/placed_code.h"
#include "halyard/abi.h"
#include "shared/symbols.h"
#include "status_testing.h"

namespace halyard::jit {
namespace {

bool operator==(const Fixup& a, const Fixup& b) {
  return a.offset == b.offset && a.symbol == b.symbol && a.addend == b.addend;
}

// A table of addresses alone: it is looked at, not run.
Image example() {
  return {.entry = 8,
          .entry_size = 16,
          .fixups = {{0, 0, 0}, {8, 1, 5}, {16, 2, -1}, {24, 3, 0}},
          .symbols = {kPutRef, kImage, helper_name(3), "memcpy"},
          .code = std::string(32, 'x')};
}

void put_ref(void**, void*) {}
int helper = 0;
halyard_jit_host_t host_with(std::span<const void* const> helpers) {
  return {.struct_size = sizeof(halyard_jit_host_t),
          .put_ref = put_ref,
          .buffer_type = nullptr,
          .list_type = nullptr,
          .helpers = helpers.data(),
          .helper_count = helpers.size()};
}

TEST(Image, ComesBackAsItWas) {
  const std::string bytes = example().to_bytes();
  const auto image = ASSERT_VALUE(Image::from_bytes(bytes));
  EXPECT_EQ(image.entry, 8u);
  EXPECT_EQ(image.entry_size, 16u);
  EXPECT_TRUE(std::ranges::equal(image.fixups, example().fixups,
                                 [](const Fixup& a, const Fixup& b) { return a == b; }));
  EXPECT_EQ(image.symbols, example().symbols);
  EXPECT_EQ(image.code, example().code);
}

TEST(Image, OfAnyOtherLengthIsRefused) {
  const std::string bytes = example().to_bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FAILS(INVALID_ARGUMENT, "", Image::from_bytes(std::span(bytes).first(size)));
  }
  EXPECT_FALSE(Image::from_bytes(bytes + 'x'));
}

// Numbers that lie: none is believed beyond the code and the names that are there.
TEST(Image, WithAnyByteChangedStaysWithinItself) {
  const std::string good = example().to_bytes();
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\0', '\1', '\x7F', '\xFF'}) {
      std::string bytes = good;
      bytes[at] = byte;
      const Result<Image> image = Image::from_bytes(bytes);
      if (!image) continue;
      EXPECT_LT(image->entry, image->code.size());
      EXPECT_LE(uint64_t{image->entry} + image->entry_size, image->code.size());
      for (const Fixup& fixup : image->fixups) {
        EXPECT_LE(uint64_t{fixup.offset} + 8, image->code.size());
        EXPECT_LT(fixup.symbol, image->symbols.size());
      }
    }
  }
}

TEST(Image, WithoutCodeIsRefused) {
  EXPECT_FALSE(Image::from_bytes(Image().to_bytes()));
  Image image = example();
  image.entry_size = 25;
  EXPECT_FALSE(Image::from_bytes(image.to_bytes()));
  image = example();
  image.fixups[1].offset = 25;
  EXPECT_FALSE(Image::from_bytes(image.to_bytes()));
  image = example();
  image.fixups[1].symbol = 4;
  EXPECT_FALSE(Image::from_bytes(image.to_bytes()));
}

TEST(PlacedCode, HasTheAddressesOfItsSymbols) {
  const void* const helpers[] = {nullptr, nullptr, nullptr, &helper};
  const auto placed = ASSERT_VALUE(PlacedCode::place(example(), host_with(helpers)));
  const char* const code = static_cast<const char*>(placed->entry()) - 8;
  uint64_t words[4];
  std::memcpy(words, code, sizeof words);
  EXPECT_EQ(words[0], reinterpret_cast<uintptr_t>(&put_ref));
  EXPECT_EQ(words[1], reinterpret_cast<uintptr_t>(code) + 5);
  EXPECT_EQ(words[2], reinterpret_cast<uintptr_t>(&helper) - 1);
  EXPECT_NE(words[3], 0u);
}

TEST(PlacedCode, HasTheTypesOfTheHost) {
  const void* const helpers[] = {&helper};
  int buffers = 0, lists = 0;
  halyard_jit_host_t host = host_with(helpers);
  host.buffer_type = &buffers;
  host.list_type = &lists;
  Image image = example();
  image.symbols = {kBufferType, kImage, kListType, helper_name(0)};
  const auto placed = ASSERT_VALUE(PlacedCode::place(image, host));
  uint64_t words[4];
  std::memcpy(words, static_cast<const char*>(placed->entry()) - 8, sizeof words);
  EXPECT_EQ(words[0], reinterpret_cast<uintptr_t>(&buffers));
  EXPECT_EQ(words[2], reinterpret_cast<uintptr_t>(&lists) - 1);
  EXPECT_EQ(words[3], reinterpret_cast<uintptr_t>(&helper));
}

TEST(PlacedCode, WithoutASymbolIsRefused) {
  const void* const helpers[] = {&helper, nullptr};
  for (const std::string& name :
       {helper_name(1), helper_name(2), std::string("halyard_op_"), std::string("halyard_op_0x"),
        std::string("halyard_other"), std::string("halyard_or_0"), std::string(kListType),
        std::string("no_such_function_anywhere"), std::string("_ZGVeN16v_nothing")}) {
    Image image = example();
    image.symbols[2] = name;
    EXPECT_FAILS(NOT_FOUND, "'" + name + "'", PlacedCode::place(image, host_with(helpers)));
  }
}

TEST(PlacedCode, WithoutMemoryIsAnErrorThatSaysSo) {
  if (HALYARD_SANITIZER_KIND != 0) GTEST_SKIP() << "sanitizers need the memory";
  if (std::getenv("HALYARD_EMULATED")) GTEST_SKIP() << "qemu does not obey setrlimit";
  const auto place = [] {
    Image image = example();
    image.code.resize(size_t{64} << 20);
    const rlimit limit = {4096, RLIM_INFINITY};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) std::exit(2);
    const auto placed = PlacedCode::place(image, host_with({}));
    const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_DATA, &none);
    std::exit(fails_with(placed, Code::RESOURCE_EXHAUSTED, "67108864 bytes of compiled code") ? 0 : 3);
  };
  EXPECT_EXIT(place(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace halyard::jit
