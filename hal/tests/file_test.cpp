// Files over host memory.
#include "hal/queue/file.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/bytes.h"

namespace halyard::hal {
namespace {

TEST(FileTest, SeesItsBytes) {
  std::vector<uint8_t> bytes = {1, 2, 3};
  const Ref<File> file = File::from_memory(bytes, kRead | kWrite, nullptr);
  EXPECT_EQ(file->length(), 3u);
  EXPECT_EQ(file->access(), static_cast<uint32_t>(kRead | kWrite));
  EXPECT_EQ(file->bytes().data(), bytes.data());
  EXPECT_STREQ(file->type()->name, "hal.file");
}

TEST(FileTest, KeepsTheOwnerOfItsBytes) {
  bool released = false;
  std::vector<uint8_t> bytes(4);
  Ref<Bytes> owner = Bytes::borrow(bytes, [&] { released = true; });
  Ref<File> file = File::from_memory(bytes, kRead, std::move(owner));
  EXPECT_FALSE(released);
  file = nullptr;
  EXPECT_TRUE(released);
}

}  // namespace
}  // namespace halyard::hal
