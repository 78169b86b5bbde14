// The time limit of a response whose client receives it slowly, or not at all.
#include "sending.h"

#include "body.h"
#include "conversation.h"

namespace halyard::tools::serve {
namespace {

using testing_support::becomes;
using testing_support::Client;
using testing_support::connected;

// A response that the system has accepted in part, for a client that has received nothing yet.
class SendingTest : public testing::TestWithParam<bool> {
 protected:
  SendingTest() {
    const auto [client, server] = connected(GetParam());
    client_.emplace(client);
    socket_.assign(boost::asio::generic::stream_protocol(GetParam() ? AF_UNIX : AF_INET, 0), server);
    sending_.emplace(socket_, uint64_t{1} << 40,
                     [this](Clock::time_point deadline) { deadlines_.push_back(deadline); });
    const std::string piece(1000, 'x');
    for (ssize_t size = 0;
         (size = ::send(server, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;)
      accepted_ += static_cast<uint64_t>(size);
    sending_->count(accepted_);
  }
  void receive(size_t least) {
    const size_t before = client_->heard().size();
    while (client_->heard().size() < before + least) ASSERT_TRUE(client_->hears(testing_support::kPatience));
  }

  boost::asio::io_context context_{1};
  ClientSocket socket_{SocketExecutor(context_.get_executor())};
  std::optional<Client> client_;
  std::optional<Sending> sending_;
  std::vector<Clock::time_point> deadlines_;
  uint64_t accepted_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Sockets, SendingTest, testing::Bool(),
                         [](const auto& is_unix) { return is_unix.param ? "Unix" : "Tcp"; });

TEST_P(SendingTest, BytesThatTheClientReceivesPutTheDeadlineOff) {
  const auto end = Clock::now() + testing_support::kPatience;
  while (sending_->puts_off() && Clock::now() < end) continue;  // TCP acknowledges later
  const size_t before = deadlines_.size();
  EXPECT_FALSE(sending_->puts_off()) << "the client receives nothing";
  EXPECT_EQ(deadlines_.size(), before);
  while (client_->heard().size() < accepted_ / 2) receive(1);
  EXPECT_TRUE(becomes([&] { return sending_->puts_off(); }));
  EXPECT_GT(deadlines_.size(), before);
  EXPECT_LE(deadlines_.back(), Clock::now() + kGrace);
}

TEST_P(SendingTest, ManyBytesGrantNoLongerSilenceThanFew) {
  ASSERT_EQ(deadlines_.size(), 2u);
  EXPECT_GE(deadlines_.back(), deadlines_.front());
  EXPECT_LE(deadlines_.back(), Clock::now() + kGrace);
  sending_->count(accepted_);
  EXPECT_EQ(deadlines_.size(), 2u) << "the system has accepted nothing more";
}

}  // namespace
}  // namespace halyard::tools::serve
