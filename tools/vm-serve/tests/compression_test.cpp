// Bodies of responses, compressed in pieces: what comes out is what was there, and what is not worth it
// stays.
#include "compression.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <random>
#include <string>

namespace halyard::tools::serve {
namespace {

std::string unpacked(const std::string& packed, size_t size) {
  std::string text(size + 1, 'x');
  z_stream stream = {};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 32), Z_OK);  // gzip or zlib
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  return text;
}

std::string noise(size_t size) {
  std::mt19937 random(1);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}
std::string repeated(size_t size) {
  std::string text;
  while (text.size() < size) text += "0.25, 0.5, ";
  text.resize(size);
  return text;
}

class Compression : public testing::Test {
 protected:
  void run(Response& response, Coding coding, uint64_t limit = uint64_t{1} << 30) {
    Budget budget(limit, used_);
    boost::asio::io_context context(1);
    boost::asio::co_spawn(SocketExecutor(context.get_executor()), compress(response, coding, budget),
                          boost::asio::detached);
    context.run();
    response.reservation = Reservation(budget);
    EXPECT_EQ(used_, 0) << "everything is given back";
  }
  std::atomic<int64_t> used_ = 0;
};

TEST_F(Compression, BodiesOfOneAndOfSeveralPieces) {
  for (const Coding coding : {Coding::gzip, Coding::deflate}) {
    for (const size_t size :
         {kMinCompressed, size_t{256} << 10, (size_t{256} << 10) + 1, size_t{1'000'000}}) {
      Response response;
      response.body = repeated(size);
      const std::string before = response.body;
      run(response, coding);
      EXPECT_LT(response.body.size(), size - size / 10);
      EXPECT_EQ(unpacked(response.body, size), before) << size;
      EXPECT_EQ(response.headers,
                coding == Coding::gzip ? "Content-Encoding: gzip\r\n" : "Content-Encoding: deflate\r\n");
    }
  }
}

TEST_F(Compression, TensorsBehindTheBodyBelongToIt) {
  const std::string first = repeated(300'000), second = repeated(7);
  Response response;
  response.body = repeated(100);
  response.tail = {std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
  const std::string all = response.body + first + second;
  run(response, Coding::gzip);
  EXPECT_TRUE(response.tail.empty());
  EXPECT_EQ(unpacked(response.body, all.size()), all);
}

TEST_F(Compression, WhatIsNotWorthItStays) {
  const auto stays = [&](std::string body, Coding coding, uint64_t limit = uint64_t{1} << 30) {
    Response response;
    response.body = body;
    run(response, coding, limit);
    return response.body == body && response.headers.empty();
  };
  EXPECT_TRUE(stays(repeated(10'000), Coding::identity));
  EXPECT_TRUE(stays(repeated(kMinCompressed - 1), Coding::gzip));
  EXPECT_TRUE(stays("", Coding::gzip));
  EXPECT_TRUE(stays(noise(10'000), Coding::gzip));
  EXPECT_TRUE(stays(noise(1'000'000), Coding::gzip));
  EXPECT_TRUE(stays(repeated(10'000), Coding::gzip, 8'000)) << "no memory for both forms";
  EXPECT_FALSE(stays(repeated(10'000), Coding::gzip, 9'000));
  // A first piece that does not become smaller ends it, a later one does not.
  EXPECT_TRUE(stays(noise(256 << 10) + repeated(1'000'000), Coding::gzip));
  EXPECT_FALSE(stays(repeated(1'000'000) + noise(256 << 10), Coding::gzip));
}

}  // namespace
}  // namespace halyard::tools::serve
