// A send and a receive, each of one or two messages.
#include "direct.h"

#include <cstring>

#include "halyard/channel.hpp"
#include "requests.h"

namespace halyard::mpi {

namespace {

class Direct final : public Operation {
 public:
  Direct(Channel& channel, const halyard_collective_t& given)
      : channel_(channel),
        given_(given),
        size_(given.element_count * channel::element_size(given.element)),
        requests_(channel) {
    collective_ = &given_;
  }

  void start() override {
    is_started_ = true;
    if (channel_.count() == 1) return;  // advance() copies
    if (given_.source != HALYARD_NO_RANK) {
      incoming_ = std::make_unique<Message>();
      is_awaiting_ = true;
      turn_ = channel_.draw_turn(given_.source);
      requests_.receive(incoming_.get(), kMessage, given_.source, Tag::direct_header, What::header);
    }
    if (given_.target != HALYARD_NO_RANK) {
      outgoing_ = std::make_unique<Message>();
      Header& header = outgoing_->header;
      header = {};
      header.version = kVersion;
      header.kind = given_.kind;
      header.element = given_.element;
      header.element_count = given_.element_count;
      if (size_ <= kInline) {
        header.size = static_cast<uint32_t>(size_);
        if (size_ != 0) std::memcpy(outgoing_->bytes, given_.send, size_);
      }
      is_sending_ = true;
      requests_.send_synchronously(outgoing_.get(), sizeof(Header) + header.size, given_.target,
                                   Tag::direct_header, What::sent_header);
      if (size_ > kInline)
        requests_.send(given_.send, size_, given_.target, Tag::direct_bytes, What::sent_bytes);
    }
    if (given_.source == HALYARD_NO_RANK && given_.receive && size_ != 0)
      std::memset(given_.receive, 0, size_);
  }

  bool advance() override {
    if (!is_started_) start();
    if (channel_.count() == 1) return advance_alone();
    const int ended = requests_.test([&](What what) {
      if (what == What::header) has_header_ = true;
      if (what == What::sent_header) is_sending_ = false;
    });
    const bool takes = is_awaiting_ && has_header_ && channel_.is_turn(given_.source, turn_);
    if (takes) take_header();
    if (requests_.failure()) {
      fail(requests_.failure());
    } else if (!failure() && !is_awaiting_ && requests_.empty()) {
      done();
    }
    return takes || ended > 0;
  }

  void cancel() override { requests_.cancel(); }
  Left left() override { return requests_.left(); }
  bool moves_bytes() const override {
    return is_started_ && size_ > kInline && !is_sending_ && !is_awaiting_;
  }
  bool awaits(uint32_t rank) const override { return requests_.awaits(rank); }
  bool receives_from(uint32_t rank) const override { return requests_.receives_from(rank); }
  std::string awaited() const override {
    if (is_sending_) return "rank " + std::to_string(given_.target) + " to receive";
    return given_.source == HALYARD_NO_RANK ? "" : "rank " + std::to_string(given_.source) + " to send";
  }
  std::string text() const override {
    return channel::text_of(given_) + ", number " + std::to_string(given_.number) + ",";
  }
  void broken(const Failure&) override {}

 private:
  enum class What : uint8_t { header, bytes, sent_header, sent_bytes };

  // First messages are taken in the order of the receives. Otherwise a receive could get the bytes that
  // belong to the first message of an earlier one.
  void take_header() {
    const Header& header = incoming_->header;
    is_awaiting_ = false;
    channel_.end_turn(given_.source);
    if (header.version != kVersion || header.element != given_.element ||
        header.element_count != given_.element_count) {
      halyard_collective_t sent = given_;
      sent.kind = HALYARD_COLLECTIVE_SEND;
      sent.target = channel_.rank();
      sent.source = HALYARD_NO_RANK;
      sent.element = header.element < channel::kElementTypes.size() ? header.element : 0;
      sent.element_count = header.element_count;
      return fail({HALYARD_INVALID_ARGUMENT, "expected ranks " + std::to_string(given_.source) + " and " +
                                                 std::to_string(channel_.rank()) + " of " + channel_.name() +
                                                 " to agree, found " + channel::text_of(sent) +
                                                 " of the one and " + channel::text_of(given_) +
                                                 " of the other; compile all ranks from one program"});
    }
    if (size_ > kInline) {
      requests_.receive(given_.receive, size_, given_.source, Tag::direct_bytes, What::bytes);
    } else if (size_ != 0) {
      std::memcpy(given_.receive, incoming_->bytes, size_);
    }
  }

  // In a channel of one rank, a send is matched with a receive of the same rank.
  bool advance_alone() {
    if (given_.kind != HALYARD_COLLECTIVE_SEND_RECV) {
      fail({HALYARD_UNIMPLEMENTED,
            channel::text_of(given_) + " of a rank to itself in " + channel_.name() + "; use send_recv"});
      return true;
    }
    const bool receives = given_.source != HALYARD_NO_RANK && given_.target != HALYARD_NO_RANK;
    if (receives && size_ != 0) std::memcpy(given_.receive, given_.send, size_);
    if (!receives && given_.receive && size_ != 0) std::memset(given_.receive, 0, size_);
    done();
    return true;
  }

  Channel& channel_;
  const halyard_collective_t given_;
  const uint64_t size_;
  bool is_started_ = false;
  bool is_sending_ = false;   // the target has not received the first message
  bool is_awaiting_ = false;  // the first message of the source has not been taken
  bool has_header_ = false;   // the first message of the source has arrived
  uint64_t turn_ = 0;         // of this receive, among those from the source
  std::unique_ptr<Message> incoming_;
  std::unique_ptr<Message> outgoing_;
  Requests<What> requests_;
};

}  // namespace

std::unique_ptr<Operation> make_direct(Channel& channel, const halyard_collective_t& collective) {
  return std::make_unique<Direct>(channel, collective);
}

}  // namespace halyard::mpi
