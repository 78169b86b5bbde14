// Bodies that zlib has compressed, in pieces of every size.
#include "decoder.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

namespace halyard::tools::serve {
namespace {

// In the format of gzip, of zlib, or raw.
std::string compressed(std::string_view text, int window) {
  z_stream state = {};
  EXPECT_EQ(::deflateInit2(&state, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  ::deflateEnd(&state);
  return out;
}
constexpr int kGzip = 15 + 16, kZlib = 15, kRaw = -15;

struct Decoded {
  std::string text;
  Decoder::State state;
};
Decoded decoded(Coding coding, std::string_view given, size_t in, size_t out) {
  Decoder decoder(coding);
  Decoded made{.text = "", .state = Decoder::State::more};
  for (size_t at = 0; at < given.size(); at += in) {
    std::span<const char> piece = std::span(given).subspan(at, std::min(in, given.size() - at));
    for (;;) {
      std::vector<char> room(out);
      std::span<char> rest(room);
      made.state = decoder.step(piece, rest);
      made.text.append(room.data(), room.size() - rest.size());
      if (made.state == Decoder::State::malformed) return made;
      if (piece.empty() && !rest.empty()) break;
    }
  }
  return made;
}

std::string sample() {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * i) + ",";
  return text;
}

TEST(Decoder, Names) {
  EXPECT_EQ(coding_named("gzip"), Coding::gzip);
  EXPECT_EQ(coding_named("X-GZip"), Coding::gzip);
  EXPECT_EQ(coding_named("Deflate"), Coding::deflate);
  EXPECT_EQ(coding_named("identity"), Coding::identity);
  for (const char* name : {"", "gz", "gzip ", "br", "deflated"}) EXPECT_FALSE(coding_named(name)) << name;
}

TEST(Decoder, PiecesOfEverySize) {
  const std::string text = sample();
  for (const size_t in : {1, 7, 100000})
    for (const size_t out : {1, 5, 100000}) {
      const Decoded gzip = decoded(Coding::gzip, compressed(text, kGzip), in, out);
      EXPECT_TRUE(gzip.text == text && gzip.state == Decoder::State::at_end) << in << " " << out;
      const Decoded zlib = decoded(Coding::deflate, compressed(text, kZlib), in, out);
      EXPECT_TRUE(zlib.text == text && zlib.state == Decoder::State::at_end) << in << " " << out;
    }
  const Decoded empty = decoded(Coding::gzip, compressed("", kGzip), 1, 1);
  EXPECT_TRUE(empty.text.empty() && empty.state == Decoder::State::at_end);
}

TEST(Decoder, SeveralMembersOfGzipAreOneText) {
  const Decoded both = decoded(Coding::gzip, compressed("one ", kGzip) + compressed("two", kGzip), 3, 2);
  EXPECT_EQ(both.text, "one two");
  EXPECT_EQ(both.state, Decoder::State::at_end);
  EXPECT_EQ(decoded(Coding::deflate, compressed("one", kZlib) + compressed("two", kZlib), 3, 2).state,
            Decoder::State::malformed);
}

TEST(Decoder, WhatIsNotWhatItsNameSays) {
  const std::string text = sample();
  const std::string gzip = compressed(text, kGzip);
  EXPECT_EQ(decoded(Coding::deflate, gzip, 100, 100).state, Decoder::State::malformed);
  EXPECT_EQ(decoded(Coding::gzip, compressed(text, kZlib), 100, 100).state, Decoder::State::malformed);
  EXPECT_EQ(decoded(Coding::deflate, compressed(text, kRaw), 100, 100).state, Decoder::State::malformed);
  EXPECT_EQ(decoded(Coding::gzip, "{\"inputs\":[]}", 100, 100).state, Decoder::State::malformed);
  EXPECT_EQ(decoded(Coding::gzip, gzip + "x", 100, 100).state,
            Decoder::State::more);  // a member that has begun
  EXPECT_EQ(decoded(Coding::gzip, gzip + "xxxxxxxxxxxx", 100, 100).state, Decoder::State::malformed);
  for (size_t size = 0; size + 1 < gzip.size(); size += 97)
    EXPECT_NE(decoded(Coding::gzip, gzip.substr(0, size), 100, 100).state, Decoder::State::at_end) << size;
  std::string damaged = gzip;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  EXPECT_EQ(decoded(Coding::gzip, damaged, 100, 100).state, Decoder::State::malformed);
}

}  // namespace
}  // namespace halyard::tools::serve
