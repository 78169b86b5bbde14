// What each side gets of bytes that host and work write to at the same time.
#include "mapped_bytes.h"

#include <gtest/gtest.h>

#include <numeric>

namespace halyard::remote {
namespace {

// The host's bytes, and those of a server that takes what is sent.
struct Sides {
  explicit Sides(size_t size = 10000)
      : host(size), server(size), mapped(host.data(), size, [this](uint64_t offset, Bytes bytes) {
          ++pieces;
          sent += bytes.size();
          std::ranges::copy(bytes, server.begin() + static_cast<ptrdiff_t>(offset));
        }) {
    std::iota(host.begin(), host.end(), uint8_t{1});
    server = host;
  }
  // The server's bytes arrive.
  void push() { mapped.merge(0, server); }
  std::vector<uint8_t> host, server;
  size_t pieces = 0, sent = 0;
  MappedBytes mapped;
};

TEST(MappedBytes, NothingIsSentThatWasNotWritten) {
  Sides sides;
  sides.mapped.open(0, 10000, false);
  sides.mapped.send_changes();
  sides.mapped.close_all();
  EXPECT_EQ(sides.pieces, 0u);
}

TEST(MappedBytes, OnlyWrittenBytesAreSent) {
  Sides sides;
  sides.mapped.open(0, 10000, false);
  for (const size_t at : {0, 1, 2, 4095, 4096, 9999}) sides.host[at] ^= 0xFF;
  sides.mapped.send_changes();
  EXPECT_EQ(sides.host, sides.server);
  EXPECT_EQ(sides.sent, 6u);
  sides.mapped.send_changes();
  EXPECT_EQ(sides.sent, 6u);
}

TEST(MappedBytes, AFreshRangeIsSentWhole) {
  Sides sides;
  std::ranges::fill(sides.server, uint8_t{0});
  sides.mapped.open(100, 50, true);
  sides.mapped.close_all();
  EXPECT_EQ(sides.sent, 50u);
  EXPECT_TRUE(std::equal(sides.host.begin() + 100, sides.host.begin() + 150, sides.server.begin() + 100));
  EXPECT_EQ(sides.server[99], 0);
  EXPECT_EQ(sides.server[150], 0);
}

TEST(MappedBytes, BothSidesWriteToDifferentBytes) {
  Sides sides;
  sides.mapped.open(0, 10000, false);
  sides.host[10] = 77;
  sides.server[20] = 88;
  sides.push();
  EXPECT_EQ(sides.host[10], 77);  // what the host has written is kept
  EXPECT_EQ(sides.host[20], 88);
  sides.mapped.send_changes();
  EXPECT_EQ(sides.sent, 1u);  // not what has come from the server
  EXPECT_EQ(sides.host, sides.server);
}

TEST(MappedBytes, ASecondMappingKeepsWhatWasWrittenThroughTheFirst) {
  Sides sides;
  sides.mapped.open(0, 100, false);
  sides.host[5] = 99;
  sides.mapped.open(0, 200, false);
  sides.host[150] = 98;
  sides.mapped.close_all();
  EXPECT_EQ(sides.host, sides.server);
  EXPECT_EQ(sides.sent, 2u);
}

TEST(MappedBytes, BytesOutsideOfRangesAreTaken) {
  Sides sides;
  sides.mapped.open(100, 10, true);
  std::ranges::fill(sides.server, uint8_t{7});
  sides.push();
  EXPECT_EQ(sides.host[99], 7);
  EXPECT_EQ(sides.host[110], 7);
  EXPECT_EQ(sides.host[105], uint8_t(106));  // the host writes these
}

TEST(MappedBytes, BytesThatDoNotFitAreIgnored) {
  Sides sides(16);
  const std::vector<uint8_t> before = sides.host, bytes(16, 1);
  sides.mapped.merge(1, bytes);
  sides.mapped.merge(UINT64_MAX, bytes);
  sides.mapped.merge(17, {bytes.data(), 0});
  EXPECT_EQ(sides.host, before);
  sides.mapped.merge(0, bytes);
  EXPECT_EQ(sides.host, bytes);
}

}  // namespace
}  // namespace halyard::remote
