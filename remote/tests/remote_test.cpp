// Addresses, versions, and frames between two streams.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <thread>

#include "remote/address.h"
#include "remote/busy_polling.h"
#include "remote/digest.h"
#include "remote/message.h"
#include "remote/stream.h"
#include "tls_sides.h"

namespace halyard::remote {
namespace {

TEST(Address, HostsAndPorts) {
  const std::pair<const char*, const char*> good[] = {{"box", "box:9414"},
                                                      {"box:1", "box:1"},
                                                      {"10.0.0.1:65535", "10.0.0.1:65535"},
                                                      {"[::1]", "[::1]:9414"},
                                                      {"[fe80::1]:80", "[fe80::1]:80"}};
  for (const auto& [text, expected] : good) {
    const Result<HostPort> place = parse_host_port(text);
    ASSERT_TRUE(place) << text;
    EXPECT_EQ(place->text(), expected);
  }
  for (const char* const text :
       {"", ":80", "box:", "box:x", "box:-1", "box:65536", "box:1x", "[::1", "[::1]80"})
    EXPECT_FALSE(parse_host_port(text)) << text;
}

TEST(Address, ListeningAddresses) {
  EXPECT_EQ(parse_listen_address("tls://0.0.0.0:9414")->transport, Transport::tls);
  EXPECT_EQ(parse_listen_address("tcp://[::1]")->tcp.port, kDefaultPort);
  EXPECT_EQ(parse_listen_address("unix:///run/x.sock")->path, "/run/x.sock");
  for (const std::string& text :
       {std::string(), std::string("box:1"), std::string("http://box"), std::string("unix://"),
        std::string("tcp://"), "unix:///" + std::string(200, 'x')})
    EXPECT_FALSE(parse_listen_address(text)) << text;
}

TEST(Address, OnlyLoopbackIsLoopback) {
  for (const auto& [host, expected] :
       {std::pair{"127.0.0.1", true}, {"127.9.9.9", true}, {"0.0.0.0", false}}) {
    const Result<Descriptor> socket = listen_tcp({host, 0});
    ASSERT_TRUE(socket) << host;
    EXPECT_EQ(is_loopback(socket->get()), expected) << host;
    EXPECT_NE(port_of(socket->get()), 0);
  }
}

TEST(Version, TheHighestCommonOne) {
  EXPECT_EQ(*negotiate(1, 1), 1u);
  EXPECT_EQ(*negotiate(1, 1000), kNewestVersion);
  EXPECT_EQ(*negotiate(2, 3), kNewestVersion);
  for (const auto& [oldest, newest] : {std::pair{0u, 1u}, {kNewestVersion + 1, 9u}, {0u, 0u}, {3u, 1u}})
    EXPECT_FALSE(negotiate(oldest, newest));
}

TEST(Digest, OfKnownBytes) {
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Status, CodesOfOtherVersionsAreUnknown) {
  for (const auto& [code, expected] : {std::pair{14, HALYARD_UNAVAILABLE},
                                       {17, HALYARD_UNKNOWN},
                                       {-1, HALYARD_UNKNOWN},
                                       {4711, HALYARD_UNKNOWN}}) {
    Message message;
    const auto status = wire::CreateStatus(message.builder(), code, message.text("why"));
    const Bytes bytes = message.to_client(wire::CreateDone(message.builder(), 1, status));
    const wire::ToClient* const root = verified_to_client(bytes);
    ASSERT_TRUE(root);
    EXPECT_EQ(failure_of(root->body_as_Done()->status()).code, expected);
  }
}

TEST(Message, EveryBitFlippedIsRefusedOrRead) {
  Message message;
  const auto status = wire::CreateStatus(message.builder(), 3, message.text("a text"));
  const Bytes bytes = message.to_client(wire::CreateDone(message.builder(), 1, status));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<uint8_t> flipped(bytes.begin(), bytes.end());
    flipped[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    if (const wire::ToClient* const root = verified_to_client(flipped))
      if (const wire::Done* const done = root->body_as_Done()) (void)failure_of(done->status());
  }
  // The last bytes are padding.
  for (size_t size = 0; size + 8 < bytes.size(); ++size) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(verified_to_client(cut)) << size;
  }
}

struct TestTime {
  static inline std::chrono::microseconds time{1'000'000};
  static inline std::chrono::microseconds other_threads{0};  // that run when this one gives way
  static inline unsigned processor_count = 2;
  static std::chrono::microseconds now() { return time; }
  static void give_way() { time += other_threads; }
  static unsigned processors() { return processor_count; }
};

using std::chrono::microseconds;

// Bytes come after so long, to a thread that polls or sleeps. Returns how often it has looked; a look takes a
// microsecond.
int looks_in(BasicBusyPolling<TestTime>& polling, microseconds wait) {
  const microseconds end = TestTime::time + wait;
  int looks = 0;
  const bool has_come = polling.poll([&] { return ++looks, ++TestTime::time > end; });
  if (!has_come) TestTime::time = std::max(TestTime::time, end);
  polling.arrived();
  return looks;
}

TEST(BusyPolling, NeverWithoutABoundOrASecondProcessor) {
  BasicBusyPolling<TestTime> without(microseconds(0));
  TestTime::processor_count = 1;
  BasicBusyPolling<TestTime> alone(microseconds(50));
  TestTime::processor_count = 2;
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(looks_in(without, microseconds(0)) + looks_in(alone, microseconds(1)), 0);
}

TEST(BusyPolling, WhileBytesComeSoon) {
  BasicBusyPolling<TestTime> polling(microseconds(50));
  EXPECT_EQ(looks_in(polling, microseconds(5)), 0);  // nothing is known yet
  for (int i = 0; i < 10; ++i) EXPECT_EQ(looks_in(polling, microseconds(5)), 6);
  // Bytes come later than that: three polls in vain, of 50 us each.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(looks_in(polling, microseconds(200)), 50);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(looks_in(polling, microseconds(200)), 0);
  // One short wait begins it again, a little longer than the bound because the thread had to be woken.
  EXPECT_EQ(looks_in(polling, microseconds(76)), 0);
  EXPECT_EQ(looks_in(polling, microseconds(75)), 0);
  EXPECT_EQ(looks_in(polling, microseconds(5)), 6);
}

TEST(BusyPolling, EndsByItselfWhenNothingComes) {
  BasicBusyPolling<TestTime> polling(microseconds(50));
  for (int i = 0; i < 10; ++i) looks_in(polling, microseconds(5));
  int looks = 0;
  for (int i = 0; i < 20; ++i) {  // as when timers end the sleep
    EXPECT_FALSE(polling.poll([&] { return ++looks, ++TestTime::time, false; }));
    TestTime::time += std::chrono::milliseconds(100);
  }
  EXPECT_EQ(looks, 3 * 50);
}

TEST(BusyPolling, OtherThreadsEndIt) {
  BasicBusyPolling<TestTime> polling(microseconds(50));
  looks_in(polling, microseconds(5));
  TestTime::other_threads = microseconds(21);
  EXPECT_EQ(looks_in(polling, microseconds(40)), 1);
  TestTime::other_threads = microseconds(0);
  EXPECT_EQ(looks_in(polling, microseconds(5)), 0);
  TestTime::time += std::chrono::milliseconds(5);
  EXPECT_EQ(looks_in(polling, microseconds(5)), 6);
}

// Keeps what it has received.
struct Kept : Receiver {
  bool received(Frame& frame) override {
    const std::lock_guard lock(mutex);
    frames.emplace_back(std::string(frame.message().begin(), frame.message().end()),
                        std::vector<uint8_t>(frame.bytes().begin(), frame.bytes().end()));
    changed.notify_all();
    return !pauses || frames.size() % 3 != 0;  // every third frame asks for a pause
  }
  void received_some(bool) override {
    if (stream) stream->resume();
  }
  void lost(const Failure& why) override {
    const std::lock_guard lock(mutex);
    reason = why;
    changed.notify_all();
  }
  bool wait_for(auto condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(120), condition);
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<std::string, std::vector<uint8_t>>> frames;
  std::optional<Failure> reason;
  Stream* stream = nullptr;
  bool pauses = true;
};

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Stream, FramesOfEverySizeArriveInOrder) {
  for (const Stream::Full full : {Stream::Full::block, Stream::Full::queue}) {
    boost::asio::io_context io;
    const auto work = make_work_guard(io);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { io.run(); });
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    auto sender = std::make_shared<Stream>(io, Descriptor(ends[0]), nullptr, full, std::chrono::seconds(120));
    auto taker = std::make_shared<Stream>(io, Descriptor(ends[1]), nullptr, full, std::chrono::seconds(120));
    const auto kept = std::make_shared<Kept>(), other = std::make_shared<Kept>();
    kept->stream = taker.get();
    taker->start(kept);
    sender->start(other);
    const size_t sizes[] = {0, 1, 15, 16384, 16385, 65536, 100000, kMaxData};
    size_t count = 0;
    for (int round = 0; round < 5; ++round)
      for (const size_t size : sizes) {
        const std::vector<uint8_t> data(size, static_cast<uint8_t>(count));
        sender->send(bytes_of("message " + std::to_string(count)), data,
                     count % 2 ? Stream::Urgency::later : Stream::Urgency::now);
        ++count;
      }
    sender->flush();
    ASSERT_TRUE(kept->wait_for([&] { return kept->frames.size() == count; }));
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(kept->frames[i].first, "message " + std::to_string(i));
      EXPECT_EQ(kept->frames[i].second,
                std::vector<uint8_t>(sizes[i % std::size(sizes)], static_cast<uint8_t>(i)));
    }
    sender->end({HALYARD_CANCELLED, "the test ends"});
    EXPECT_TRUE(kept->wait_for([&] { return kept->reason.has_value(); }));
    EXPECT_TRUE(other->wait_for([&] { return other->reason.has_value(); }));
    EXPECT_EQ(other->reason->code, HALYARD_CANCELLED);
    EXPECT_EQ(kept->reason->code, HALYARD_UNAVAILABLE);
    io.stop();
    for (std::thread& thread : threads) thread.join();
  }
}

// Two connected streams, and a thread for both.
struct Pair {
  explicit Pair(Stream::Full full) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    sender = std::make_shared<Stream>(io, Descriptor(ends[0]), nullptr, full, std::chrono::seconds(120));
    taker = std::make_shared<Stream>(io, Descriptor(ends[1]), nullptr, Stream::Full::block,
                                     std::chrono::seconds(120));
    kept->pauses = false;
    sender->start(std::make_shared<Kept>());
  }
  ~Pair() {
    io.stop();
    if (thread.joinable()) thread.join();
  }
  void run() {
    thread = std::thread([this] { io.run(); });
  }
  boost::asio::io_context io;
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work = make_work_guard(io);
  std::shared_ptr<Stream> sender, taker;
  const std::shared_ptr<Kept> kept = std::make_shared<Kept>();
  std::thread thread;
};

TEST(Stream, AThreadThatWaitsReceives) {
  Pair pair(Stream::Full::block);
  pair.taker->start(pair.kept);
  pair.run();
  const auto deadline = [] { return std::chrono::steady_clock::now() + std::chrono::seconds(120); };
  const auto count = [&] {
    const std::lock_guard lock(pair.kept->mutex);
    return pair.kept->frames.size();
  };
  for (size_t i = 0; i < 200; ++i) {
    pair.sender->send(bytes_of("message"), std::vector<uint8_t>(i * 997));
    // Either this thread receives, or the other one does already.
    while (count() <= i) pair.taker->receive_until([&] { return count() > i; }, deadline());
  }
  // While a thread waits, no second one receives, and the time of the first one ends.
  const auto begin = std::chrono::steady_clock::now();
  while (!pair.taker->receive_until(
      [&] {
        EXPECT_FALSE(pair.taker->receive_until([] { return false; }, deadline()));
        return false;
      },
      begin + std::chrono::milliseconds(30))) {
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(29));
  // Afterwards the loop receives again, and is told of the end.
  pair.sender->send(bytes_of("last"));
  EXPECT_TRUE(pair.kept->wait_for([&] { return pair.kept->frames.size() == 201; }));
  pair.sender->end({HALYARD_CANCELLED, "the test ends"});
  EXPECT_TRUE(pair.kept->wait_for([&] { return pair.kept->reason.has_value(); }));
  EXPECT_FALSE(pair.taker->receive_until([] { return false; }, deadline()));
}

TEST(Stream, AThreadThatWaitsSeesTheEnd) {
  Pair pair(Stream::Full::block);
  pair.taker->start(pair.kept);
  pair.run();
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pair.sender->end({HALYARD_CANCELLED, "the test ends"});
  });
  const auto is_lost = [&] {
    const std::lock_guard lock(pair.kept->mutex);
    return pair.kept->reason.has_value();
  };
  while (!is_lost())
    pair.taker->receive_until(is_lost, std::chrono::steady_clock::now() + std::chrono::seconds(120));
  ends.join();
}

// Threads try to wait while another thread, which has found the end of the connection, tells the receiver.
TEST(Stream, TheEndIsToldAmongThreadsThatTryToWait) {
  for (int round = 0; round < 200; ++round) {
    Pair pair(Stream::Full::block);
    pair.taker->start(pair.kept);
    pair.run();
    const auto is_lost = [&] {
      const std::lock_guard lock(pair.kept->mutex);
      return pair.kept->reason.has_value();
    };
    const auto hang = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        while (!is_lost() && std::chrono::steady_clock::now() < hang)
          for (int turn = 0; turn < 100; ++turn) pair.taker->receive_until(is_lost, hang);
      });
    pair.sender->end({HALYARD_CANCELLED, "the test ends"});
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(is_lost()) << "round " << round;
  }
}

// A receiver that ends its stream when the other side tells a reason.
struct Told : Kept {
  bool received(Frame& frame) override {
    stream->end({HALYARD_ABORTED, std::string(frame.message().begin(), frame.message().end())});
    return true;
  }
};

// The socket of the other side has told its reason and is closed before this side writes.
TEST(Stream, AReasonThatHasComeIsGivenAfterAFailedWrite) {
  for (const Stream::Full full : {Stream::Full::block, Stream::Full::queue})
    for (const bool tells : {true, false}) {
      boost::asio::io_context io;
      int ends[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      auto stream =
          std::make_shared<Stream>(io, Descriptor(ends[0]), nullptr, full, std::chrono::seconds(120));
      {
        const Descriptor other(ends[1]);
        const std::string frame = std::string("\3\0\0\0\0\0\0\0why", 11);
        if (tells) {
          ASSERT_EQ(::send(other.get(), frame.data(), frame.size(), 0), 11);
        }
      }
      stream->send(bytes_of("message"));
      EXPECT_TRUE(stream->is_ended());
      const auto told = std::make_shared<Told>();
      told->stream = stream.get();
      stream->start(told);
      io.run();
      ASSERT_TRUE(told->reason);
      EXPECT_EQ(told->reason->code, tells ? HALYARD_ABORTED : HALYARD_UNAVAILABLE);
      EXPECT_EQ(told->reason->message.substr(0, 38),
                tells ? "why" : "the other side has ended the connectio");
    }
}

// The process that listens trusts this when it tells a client why its process has ended.
TEST(Stream, SmallFramesOfUnixSocketsAreNeverCut) {
  boost::asio::io_context io;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor other(ends[1]);
  const std::string small(2000, 's');
  // The system writes all or nothing, also when the socket is nearly full.
  while (const ssize_t written = ::send(ends[0], small.data(), small.size(), MSG_DONTWAIT)) {
    if (written < 0) break;
    ASSERT_EQ(written, 2000);
  }
  std::atomic<uint32_t> is_within_frame = 0;
  const auto stream = std::make_shared<Stream>(io, Descriptor(ends[0]), nullptr, Stream::Full::queue,
                                               std::chrono::seconds(120));
  stream->mark_frames(&is_within_frame);
  stream->send(bytes_of("message"));
  EXPECT_EQ(is_within_frame, 0u);
  stream->send(bytes_of("message"), std::vector<uint8_t>(4096));
  stream->flush();
  io.poll();
  EXPECT_EQ(is_within_frame, 0u);  // nothing was written yet
  std::vector<char> taken(1 << 20);
  ASSERT_GT(::recv(other.get(), taken.data(), taken.size(), 0), 0);
  stream->flush();
  io.poll();
  EXPECT_EQ(is_within_frame, 0u);
  EXPECT_FALSE(stream->has_unsent());
  // A large frame that does not fit is cut.
  const std::vector<uint8_t> large(kMaxData);
  stream->send(bytes_of("message"), large);
  EXPECT_EQ(is_within_frame, 1u);
}

TEST(Stream, BytesOfAnOwnerAreNotCopied) {
  Pair pair(Stream::Full::queue);
  constexpr size_t kCount = 40;
  std::vector<std::weak_ptr<void>> owners;
  std::vector<std::string> texts;
  for (size_t i = 0; i < kCount; ++i) {
    auto owned = std::make_shared<std::vector<uint8_t>>(kPiece, static_cast<uint8_t>(i));
    texts.push_back("piece " + std::to_string(i));
    pair.sender->send(bytes_of(texts.back()), *owned, Stream::Urgency::now, owned);
    owners.emplace_back(owned);
    texts.push_back("small " + std::to_string(i));
    pair.sender->send(bytes_of(texts.back()), bytes_of(texts.back()));
  }
  // Most are still to be sent, by reference.
  EXPECT_GT(pair.sender->queued(), kCount / 2 * kPiece);
  EXPECT_FALSE(owners.back().expired());
  pair.taker->start(pair.kept);
  pair.run();
  ASSERT_TRUE(pair.kept->wait_for([&] { return pair.kept->frames.size() == texts.size(); }));
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(pair.kept->frames[i].first, texts[i]);
    const std::vector<uint8_t> expected = i % 2 ? std::vector<uint8_t>(texts[i].begin(), texts[i].end())
                                                : std::vector<uint8_t>(kPiece, static_cast<uint8_t>(i / 2));
    EXPECT_EQ(pair.kept->frames[i].second, expected) << i;
  }
  EXPECT_EQ(pair.sender->queued(), 0u);
  EXPECT_TRUE(owners.back().expired());
}

TEST(Stream, ASenderDoesNotWaitForEver) {
  boost::asio::io_context io;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor other(ends[1]);  // receives nothing
  Stream sender(io, Descriptor(ends[0]), nullptr, Stream::Full::block, std::chrono::milliseconds(100));
  const std::vector<uint8_t> data(kMaxData);
  for (int i = 0; i < 20; ++i) sender.send(bytes_of("message"), data);
}

class Waiting : public testing::TestWithParam<bool> {};

// A thread that receives is never held up by one that waits for the other side to receive.
TEST_P(Waiting, ReceivingAndSmallFramesGoPastASender) {
  boost::asio::io_context io;
  const auto work = make_work_guard(io);
  std::thread thread([&] { io.run(); });
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::unique_ptr<Tls> tls, other_tls;
  if (GetParam()) {
    const TlsSides sides = make_tls_sides(testing::TempDir() + "/waiting-" + std::to_string(::getpid()));
    tls = std::make_unique<Tls>(sides.client, "build-box");
    other_tls = std::make_unique<Tls>(sides.server, "");
  }
  const auto make = [&](int end, std::unique_ptr<Tls> layer, Stream::Full full) {
    ::fcntl(end, F_SETFL, O_NONBLOCK);
    return std::make_shared<Stream>(io, Descriptor(end), std::move(layer), full, std::chrono::seconds(120));
  };
  const auto stream = make(ends[0], std::move(tls), Stream::Full::block);
  const auto other = make(ends[1], std::move(other_tls), Stream::Full::queue);
  const auto kept = std::make_shared<Kept>(), other_kept = std::make_shared<Kept>();
  kept->pauses = false;
  other_kept->pauses = true;  // after the third frame
  other->start(other_kept);
  ASSERT_TRUE(stream->shake_hands(std::chrono::steady_clock::now() + std::chrono::seconds(120)));
  stream->start(kept);
  std::atomic<bool> has_sent = false;
  std::thread sender([&] {
    const std::vector<uint8_t> data(kMaxData, 7);
    for (int i = 0; i < 20; ++i) stream->send(bytes_of("large"), data);
    has_sent = true;
  });
  while (!other->is_paused() || !stream->has_unsent()) std::this_thread::yield();
  std::thread second([&] { stream->send(bytes_of("second"), std::vector<uint8_t>(kMaxData, 8)); });
  for (int i = 0; i < 100; ++i) {
    other->send(bytes_of("answer"));
    stream->send(bytes_of("small"), {}, Stream::Urgency::soon);
    EXPECT_FALSE(stream->flush_some());
  }
  EXPECT_TRUE(kept->wait_for([&] { return kept->frames.size() == 100; }));
  EXPECT_FALSE(has_sent);
  // All frames arrive whole.
  other_kept->pauses = false;
  other->resume();
  sender.join();
  second.join();
  stream->flush();
  ASSERT_TRUE(other_kept->wait_for([&] { return other_kept->frames.size() == 121; }));
  size_t counts[3] = {};
  for (const auto& [text, data] : other_kept->frames) {
    const size_t kind = text == "large" ? 0 : text == "second" ? 1 : 2;
    ++counts[kind];
    EXPECT_EQ(data, std::vector<uint8_t>(kind == 2 ? 0 : size_t{kMaxData}, static_cast<uint8_t>(7 + kind)));
  }
  EXPECT_EQ(counts[0], 20u);
  EXPECT_EQ(counts[1], 1u);
  EXPECT_EQ(counts[2], 100u);
  stream->end({HALYARD_CANCELLED, "the test ends"});
  EXPECT_TRUE(kept->wait_for([&] { return kept->reason.has_value(); }));
  EXPECT_TRUE(other_kept->wait_for([&] { return other_kept->reason.has_value(); }));
  io.stop();
  thread.join();
}

INSTANTIATE_TEST_SUITE_P(Tls, Waiting, testing::Bool());

// A sender waits beyond its patience only if it has a reason, and the other side lives.
TEST(Stream, APatientSenderWaitsWhileTheOtherSideSpeaks) {
  constexpr std::chrono::milliseconds kPatience{500};
  const auto survives = [&](bool is_patient, bool speaks) {
    boost::asio::io_context io;
    const auto work = make_work_guard(io);
    std::thread thread([&] { io.run(); });
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const Descriptor other(ends[1]);
    const auto stream =
        std::make_shared<Stream>(io, Descriptor(ends[0]), nullptr, Stream::Full::block, kPatience);
    const auto kept = std::make_shared<Kept>();
    kept->pauses = false;
    stream->start(kept);
    stream->set_patient(is_patient);
    std::atomic<bool> is_over = false;
    std::thread speaker([&] {
      const auto begin = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - begin < 3 * kPatience) {
        if (speaks) ::send(other.get(), "\1\0\0\0\0\0\0\0p", 9, MSG_NOSIGNAL);
        std::this_thread::sleep_for(kPatience / 20);
      }
      std::vector<char> taken(1 << 20);
      while (!is_over) ::recv(other.get(), taken.data(), taken.size(), MSG_DONTWAIT);
    });
    stream->send(bytes_of("message"), std::vector<uint8_t>(kMaxData));
    is_over = true;
    speaker.join();
    const bool has_ended = stream->is_ended();
    stream->end({HALYARD_CANCELLED, "the test ends"});
    EXPECT_TRUE(kept->wait_for([&] { return kept->reason.has_value(); }));
    io.stop();
    thread.join();
    return !has_ended;
  };
  EXPECT_FALSE(survives(false, true));
  EXPECT_FALSE(survives(true, false));
  bool has_survived = false;
  for (int i = 0; i < 5 && !has_survived; ++i)
    has_survived = survives(true, true);  // not on a paused machine
  EXPECT_TRUE(has_survived);
}

}  // namespace
}  // namespace halyard::remote
