// Pages of mapped parameters are pre-faulted: all that are in the page cache, and no others.
#include "modules/parameter_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace halyard::modules {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

// A mapped file; from `written` on it is a hole, which is not in the page cache.
class ParameterPagesTest : public testing::Test {
 public:
  void make_file(size_t size, size_t written) {
    std::string name = (std::filesystem::temp_directory_path() / "halyard-pages-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    ASSERT_GE(file, 0);
    ::unlink(name.c_str());
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(size)), 0);
    const std::vector<uint8_t> piece(kMegabyte, 7);
    for (size_t at = 0; at < written; at += piece.size())
      ASSERT_EQ(::pwrite(file, piece.data(), piece.size(), static_cast<off_t>(at)),
                static_cast<ssize_t>(piece.size()));
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    ::close(file);
    ASSERT_NE(address, MAP_FAILED);
    bytes_ =
        Bytes::borrow({static_cast<const uint8_t*>(address), size}, [address, size, unmapped = unmapped_] {
          ::munmap(address, size);
          *unmapped = true;
        });
  }

  ParameterPages::Range range(size_t offset, size_t size) const {
    return {bytes_->span().subspan(offset, size), bytes_};
  }

  // The number of mapped pages in the range, by bit 63 of their pagemap entries.
  size_t mapped(size_t offset, size_t size) const {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<uint64_t> entries(size / page);
    const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const auto first = (reinterpret_cast<uintptr_t>(bytes_->data()) + offset) / page;
    const ssize_t count = ::pread(file, entries.data(), entries.size() * sizeof(uint64_t),
                                  static_cast<off_t>(first * sizeof(uint64_t)));
    ::close(file);
    EXPECT_EQ(count, static_cast<ssize_t>(entries.size() * sizeof(uint64_t)));
    size_t present = 0;
    for (const uint64_t entry : entries) present += entry >> 63;
    return present;
  }
  size_t pages(size_t size) const { return size / static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

  static bool comes_true(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  static bool has_processors() { return std::thread::hardware_concurrency() >= 2; }

  Ref<Bytes> bytes_;
  std::shared_ptr<std::atomic<bool>> unmapped_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(ParameterPagesTest, WhatIsInMemoryIsThereWithoutBeingTouched) {
  if (!has_processors()) GTEST_SKIP() << "one processor: nobody could work beside the program";
  const size_t written = ParameterPages::kWorthIt + 4 * kMegabyte;
  const size_t size = written + 16 * kMegabyte;
  make_file(size, written);
  ASSERT_EQ(mapped(0, size), 0u);
  ParameterPages first(Loop::create());
  // In unaligned pieces, the last one first.
  first.prepare({range(8 * kMegabyte + 100, size - 8 * kMegabyte - 200), range(1, 8 * kMegabyte + 1)});
  EXPECT_TRUE(comes_true([&] { return mapped(0, written) == pages(written); }));
  {
    const Ref<Loop> loop = Loop::create();
    ParameterPages second(loop);
    second.prepare({range(0, size)});
    loop->drain();
  }
  // The kernel maps up to 64 KiB around a touched page.
  EXPECT_LE(mapped(written, size - written), 16u) << "a hole: it would have to be read first";
}

TEST_F(ParameterPagesTest, AFewAreLeftToTheProgram) {
  make_file(8 * kMegabyte, 8 * kMegabyte);
  ParameterPages some(Loop::create());
  some.prepare({range(0, 8 * kMegabyte)});
  some.prepare({});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(mapped(0, 8 * kMegabyte), 0u);
}

TEST_F(ParameterPagesTest, SeveralCallsCountTogether) {
  if (!has_processors()) GTEST_SKIP() << "one processor: nobody could work beside the program";
  make_file(ParameterPages::kWorthIt, ParameterPages::kWorthIt);
  ParameterPages all(Loop::create());
  const size_t half = ParameterPages::kWorthIt / 2;
  all.prepare({range(0, half)});
  EXPECT_EQ(mapped(0, half), 0u);
  all.prepare({range(half, half)});
  EXPECT_TRUE(comes_true([&] { return mapped(0, 2 * half) == pages(2 * half); }));
  all.prepare({range(0, half)});  // once more, after completion
}

TEST_F(ParameterPagesTest, RangesSideBySideAreOne) {
  make_file(2 * kMegabyte, 0);
  std::vector<ParameterPages::Range> ranges;
  ParameterPages::add(ranges, range(100, 50));
  ParameterPages::add(ranges, range(192, 8));  // behind a gap, as alignment leaves it
  ParameterPages::add(ranges, range(120, 10));
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].bytes.data(), bytes_->data() + 100);
  EXPECT_EQ(ranges[0].bytes.size(), 100u);
  ParameterPages::add(ranges, range(kMegabyte, 10));
  ParameterPages::add(ranges, range(0, 10));
  ParameterPages::add(ranges, range(20, 0));
  EXPECT_EQ(ranges.size(), 3u);
  ParameterPages::add(ranges, {bytes_->span().first(5), Bytes::borrow(bytes_->span(), {})});
  EXPECT_EQ(ranges.size(), 4u) << "another owner";
}

TEST_F(ParameterPagesTest, AListOfRangesIsBounded) {
  make_file(kMegabyte, 0);
  std::vector<ParameterPages::Range> ranges;
  for (size_t i = 0; i < 2 * ParameterPages::kMaxRanges; ++i)
    ParameterPages::add(ranges, range(i % 2 == 0 ? 0 : kMegabyte / 2, 1));
  EXPECT_EQ(ranges.size(), ParameterPages::kMaxRanges);
  EXPECT_LE(ranges.capacity(), 2 * ParameterPages::kMaxRanges);
}

// The mapping and its owner are released while the loop works: a loop that went on would read unmapped memory
// and end the process.
TEST_F(ParameterPagesTest, EndsAtAnyTime) {
  make_file(ParameterPages::kWorthIt, ParameterPages::kWorthIt);
  const Ref<Loop> loop = Loop::create();
  for (int round = 0; round < 20; ++round) {
    ParameterPages ended(loop);
    ended.prepare({range(0, ParameterPages::kWorthIt)});
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
  }
  {
    ParameterPages last(loop);
    last.prepare({range(0, ParameterPages::kWorthIt)});
    bytes_ = nullptr;
  }
  loop->drain();
  EXPECT_TRUE(*unmapped_);
}

// Anonymous memory: no page exists before it is touched, so there is no effect.
TEST_F(ParameterPagesTest, MemoryOfAnotherKind) {
  const size_t size = ParameterPages::kWorthIt;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  bytes_ = Bytes::borrow({static_cast<const uint8_t*>(address), size}, {});
  {
    const Ref<Loop> loop = Loop::create();
    ParameterPages pages(loop);
    pages.prepare({range(0, size)});
    loop->drain();
  }
  EXPECT_EQ(mapped(0, size), 0u);
  ParameterPages gone(Loop::create());
  ::munmap(address, size);
  gone.prepare({range(0, size)});
}

}  // namespace
}  // namespace halyard::modules
