// How a body is read from its socket: in few turns if it is large, never waiting for more than what is
// missing, and with a time limit that grows with what has arrived.
#include "body.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "conversation.h"

namespace halyard::tools::serve {
namespace {

using testing_support::connected;

constexpr size_t kReady = 256 << 10;  // bytes of a large body for which the socket wakes its reader

class BodyTest : public testing::Test {
 protected:
  BodyTest() {
    const auto [client, server] = connected();
    client_.emplace(client);
    socket_.assign(boost::asio::generic::stream_protocol(AF_INET, IPPROTO_TCP), server);
    const int size = 4 << 20;  // for bodies that are sent before they are read
    ::setsockopt(client, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    ::setsockopt(server, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }

  void start(uint64_t length) {
    body_.emplace(socket_, buffer_, parser_, false, length,
                  [this](Clock::time_point deadline) { deadlines_.push_back(deadline); });
    body_->begin();
  }
  // Bytes that were read with the header.
  void hand_over(std::string_view bytes) {
    const auto room = buffer_.prepare(bytes.size());
    std::memcpy(room.data(), bytes.data(), bytes.size());
    buffer_.commit(bytes.size());
  }
  // Reads until nothing more comes, or `most` bytes are there. The socket need not be ready.
  std::string read(size_t most, size_t piece) {
    std::string text;
    boost::asio::co_spawn(
        strand_,
        [&]() -> Task<> {
          while (text.size() < most) {
            std::string part(std::min(piece, most - text.size()), '\0');
            const size_t size = co_await body_->read_some(part.data(), part.size());
            if (size == 0) break;
            text.append(part, 0, size);
          }
          is_done_ = true;
        },
        boost::asio::detached);
    poll();
    return text;
  }
  // Reads the rest of a body, as sent.
  void skip_rest() {
    is_done_ = false;
    boost::asio::co_spawn(
        strand_,
        [&]() -> Task<> {
          char bytes[64];
          while (!body_->is_at_end() && co_await body_->read_sent(bytes, sizeof bytes) > 0) continue;
          is_done_ = true;
        },
        boost::asio::detached);
    poll();
  }
  void poll() {
    context_.restart();
    for (int i = 0; i < 50 && !is_done_; ++i) context_.run_one_for(std::chrono::milliseconds(20));
  }
  int watermark() {
    boost::asio::socket_base::receive_low_watermark option;
    (void)socket_.get_option(option);
    return option.value();
  }

  boost::asio::io_context context_{1};
  SocketExecutor strand_{context_.get_executor()};
  ClientSocket socket_{strand_};
  boost::beast::flat_buffer buffer_;
  RequestParser parser_;
  std::optional<Body> body_;
  std::optional<testing_support::Client> client_;
  std::vector<Clock::time_point> deadlines_;
  bool is_done_ = false;
};

TEST_F(BodyTest, ReadsWhatTheHeaderHasBroughtFirst) {
  const std::string text = "abcdefgh";
  start(text.size());
  hand_over(text.substr(0, 3));
  client_->send(text.substr(3) + "next");
  EXPECT_EQ(read(100, 2), text);
  EXPECT_TRUE(is_done_);
  EXPECT_TRUE(body_->is_at_end());
  EXPECT_EQ(body_->remaining(), 0u);
}

TEST_F(BodyTest, AnEmptyBodyIsReadWithoutTheSocket) {
  start(0);
  EXPECT_EQ(read(10, 10), "");
  EXPECT_TRUE(is_done_);
  EXPECT_FALSE(body_->error());
}

// A large body wakes its reader seldom; what is left at the end, and what follows, is read as soon as it is
// there.
TEST_F(BodyTest, ALargeBodyWakesTheReaderSeldom) {
  const std::string text(2 * kReady + 100, 'x');
  start(text.size());
  std::string got;
  {
    bool has_read = false;
    std::vector<char> part(kReady);
    boost::asio::co_spawn(
        strand_,
        [&]() -> Task<> {
          got.append(part.data(), co_await body_->read_some(part.data(), part.size()));
          has_read = true;
        },
        boost::asio::detached);
    context_.run_for(std::chrono::milliseconds(20));  // reads what is there, which is nothing, and waits
    client_->send(std::string_view(text).substr(0, 10));
    context_.restart();
    context_.run_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(has_read) << "10 bytes are not worth it";
    EXPECT_EQ(watermark(), static_cast<int>(kReady));
    client_->send(std::string_view(text).substr(10, kReady - 10));
    context_.restart();
    const auto end = Clock::now() + testing_support::kPatience;
    while (!has_read && Clock::now() < end) {
      context_.run_one_for(std::chrono::milliseconds(20));
      context_.restart();
    }
    EXPECT_TRUE(has_read);
    EXPECT_EQ(got.size(), kReady);
    EXPECT_EQ(watermark(), static_cast<int>(kReady)) << "as much again is left";
  }
  client_->send(std::string_view(text).substr(kReady));
  got += read(text.size(), kReady);
  EXPECT_TRUE(is_done_);
  EXPECT_EQ(got, text);
  EXPECT_EQ(watermark(), 1) << "the next request is small";
}

// The last bytes of a body may be fewer than what wakes the reader of a large one.
TEST_F(BodyTest, NeverWaitsForMoreThanIsMissing) {
  for (const size_t size : {kReady - 1, kReady, kReady + 1}) {
    is_done_ = false;
    start(size);
    const std::string text(size, 'y');
    client_->send(text);
    EXPECT_EQ(read(size, kReady), text) << size;
    EXPECT_TRUE(is_done_) << size;
    EXPECT_EQ(watermark(), 1) << size;
  }
}

// As much as wakes the reader of a large body is large: at the beginning, and when as much is left.
TEST_F(BodyTest, AsMuchAsWakesTheReaderIsLarge) {
  start(2 * kReady);
  client_->send(std::string(kReady, 'x'));
  EXPECT_EQ(read(kReady, kReady).size(), kReady);
  EXPECT_EQ(watermark(), static_cast<int>(kReady));
  std::vector<char> part(kReady);
  boost::asio::co_spawn(
      strand_, [&]() -> Task<> { (void)co_await body_->read_some(part.data(), part.size()); },
      boost::asio::detached);
  context_.restart();
  context_.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(watermark(), static_cast<int>(kReady)) << "the last part wakes it at its end";
  client_->close();
  context_.restart();
  context_.run_for(std::chrono::milliseconds(200));
}

// Of a body that is too large, or cannot be decoded, the bytes before the error are handed out, however it
// arrives.
TEST_F(BodyTest, DecodedBytesBehindAnErrorAreNotHandedOut) {
  // A stored block of deflate: "abcdef", and its checksum.
  const std::string whole(
      "\x78\x01\x01\x06\x00\xf9\xff"
      "abcdef"
      "\x08\x1e\x02\x56",
      17);
  std::string damaged = whole;
  damaged.back() = 'x';
  const struct {
    std::string sent;
    uint64_t most;
    std::string read;
    bool is_too_large, is_malformed;
  } cases[] = {{whole, 6, "abcdef", false, false},
               {whole, 5, "abcde", true, false},
               {whole, 0, "", true, false},
               {damaged, 6, "abcdef", false, true},
               // The JSON text "{}", and a block of a type that deflate does not have.
               {std::string("\x78\x9c\xab\xae\x05\x00\x01Tr", 9), 6, "{}", false, true}};
  for (const auto& [sent, most, expected, is_too_large, is_malformed] : cases) {
    // The first bytes come with the header.
    for (size_t first = 0; first < sent.size(); ++first) {
      is_done_ = false;
      start(sent.size());
      body_->decode(Coding::deflate, most);
      hand_over(sent.substr(0, first));
      client_->send(sent.substr(first));
      EXPECT_EQ(read(100, 100), expected) << most << " " << first;
      EXPECT_TRUE(is_done_);
      EXPECT_EQ(body_->is_too_large(), is_too_large);
      EXPECT_EQ(body_->is_malformed(), is_malformed);
      EXPECT_EQ(body_->most_decoded(), most);
      skip_rest();
    }
  }
}

TEST_F(BodyTest, SmallPiecesAreReadAsTheyCome) {
  start(4 * kReady);
  client_->send("abc");
  EXPECT_EQ(read(3, kReady - 1), "abc");
  EXPECT_EQ(watermark(), 1);
}

TEST_F(BodyTest, TheEndOfTheConnectionIsAnErrorWithAnOrdinarySocket) {
  start(4 * kReady);
  client_->send("abc");
  client_->end();
  EXPECT_EQ(read(4 * kReady, kReady), "abc");
  EXPECT_TRUE(is_done_);
  EXPECT_TRUE(body_->error());
  EXPECT_EQ(watermark(), 1);
  body_->forget_error();
  EXPECT_FALSE(body_->error());
}

TEST_F(BodyTest, TheTimeLimitGrowsWithTheBytesThatArrive) {
  start(1000000);
  ASSERT_EQ(deadlines_.size(), 1u);
  const auto first = deadlines_[0];
  EXPECT_GE(first, Clock::now() + kGrace - std::chrono::seconds(5));
  // Less than the least rate: the bytes have as long as they take at that rate.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  client_->send(std::string(kMinRate / 10, 'x'));
  EXPECT_EQ(read(kMinRate / 10, 16 << 10).size(), kMinRate / 10);
  EXPECT_NEAR(std::chrono::duration<double>(deadlines_.back() - first).count(), 0.1, 0.01);
  // Nothing that arrives grants nothing.
  const size_t before = deadlines_.size();
  client_->end();
  is_done_ = false;
  EXPECT_EQ(read(10, 10), "");
  EXPECT_EQ(deadlines_.size(), before);
}

// More than the least rate: the client must send something in every kGrace.
TEST_F(BodyTest, ManyBytesGrantNoLongerSilenceThanFew) {
  start(1000000);
  client_->send(std::string(10 * kMinRate, 'x'));
  const auto begin = Clock::now();
  EXPECT_EQ(read(10 * kMinRate, 16 << 10).size(), 10 * kMinRate);
  EXPECT_GE(deadlines_.back(), begin + kGrace);
  EXPECT_LE(deadlines_.back(), Clock::now() + kGrace);
}

// Bytes that wait in the socket until there are many count before the reader wakes.
TEST_F(BodyTest, BytesInTheSocketPutTheDeadlineOff) {
  start(4 * kReady);
  EXPECT_FALSE(body_->puts_off()) << "nobody reads";
  std::vector<char> part(kReady);
  bool has_read = false;
  boost::asio::co_spawn(
      strand_,
      [&]() -> Task<> {
        (void)co_await body_->read_some(part.data(), part.size());
        has_read = true;
      },
      boost::asio::detached);
  context_.run_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(body_->puts_off()) << "nothing has come";
  EXPECT_EQ(deadlines_.size(), 1u);
  client_->send(std::string(kMinRate, 'x'));
  const auto end = Clock::now() + testing_support::kPatience;
  while (!body_->puts_off() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_GE(deadlines_.size(), 2u);
  EXPECT_FALSE(has_read);
  EXPECT_GT(deadlines_.back(), deadlines_.front());
  EXPECT_LE(deadlines_.back(), deadlines_.front() + std::chrono::seconds(1));
  EXPECT_FALSE(body_->puts_off()) << "nothing more has come";
  client_->send("more");
  EXPECT_TRUE(testing_support::becomes([&] { return body_->puts_off(); }));
  client_->close();
  context_.restart();
  context_.run_for(std::chrono::milliseconds(200));
}

}  // namespace
}  // namespace halyard::tools::serve
