// Compresses piece by piece, because other connections wait for the thread.
#include "compression.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <string>
#include <vector>

#include "accept_encoding.h"
#include "compressor.h"

namespace halyard::tools::serve {

namespace asio = boost::asio;

namespace {

constexpr size_t kPiece = 256 << 10;  // bytes of the body that are compressed before other work may run

// The largest compressed size that is worth sending.
constexpr uint64_t worth_sending(uint64_t size) { return size - size / 10; }

// The compressed bytes, at most `room` of them.
class Packed {
 public:
  Packed(Coding coding, size_t room) : compressor_(coding), room_(room) { text_.reserve(room); }

  // False: the room is used up, or zlib has failed.
  bool add(std::span<const std::byte> piece, bool is_last) {
    if (!compressor_.is_open()) return false;
    for (bool has_ended = false; !piece.empty() || (is_last && !has_ended);) {
      const size_t before = text_.size();
      text_.resize(std::min(before + kStep, room_));
      std::span<char> free = std::span(text_).subspan(before);
      const size_t left = piece.size();
      has_ended = compressor_.step(piece, free, is_last);
      text_.resize(text_.size() - free.size());
      const bool has_advanced = has_ended || piece.size() < left || text_.size() > before;
      if (!has_advanced) return false;
    }
    return true;
  }
  size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }

 private:
  static constexpr size_t kStep = 64 << 10;

  Compressor compressor_;
  const size_t room_;
  std::string text_;
};

// The parts of a body, in pieces.
std::vector<std::span<const std::byte>> pieces_of(const Response& response) {
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(response.body))}, pieces;
  parts.insert(parts.end(), response.tail.begin(), response.tail.end());
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      pieces.push_back(part.first(std::min(part.size(), kPiece)));
      part = part.subspan(pieces.back().size());
    }
  }
  return pieces;
}

}  // namespace

Task<> compress(Response& response, Coding coding, Budget& budget) {
  const size_t size = response.content_length();
  if (coding == Coding::identity || size < kMinCompressed) co_return;
  Reservation reservation(budget);
  if (!reservation.add(worth_sending(size))) co_return;
  Packed packed(coding, worth_sending(size));
  const auto pieces = pieces_of(response);
  size_t taken = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) co_await asio::post(co_await asio::this_coro::executor, use_task);
    if (!packed.add(pieces[i], i + 1 == pieces.size())) co_return;
    taken += pieces[i].size();
    // Random bytes would otherwise be compressed for nothing until the room is used up.
    if (i == 0 && i + 1 < pieces.size() && packed.size() > worth_sending(taken)) co_return;
  }
  reservation.give_back(reservation.size() - packed.size());
  response.headers += fmt::format("Content-Encoding: {}\r\n", name_of(coding));
  response.body = packed.take();
  response.tail.clear();
  response.outputs.clear();
  response.results.clear();
  response.reservation = std::move(reservation);
}

}  // namespace halyard::tools::serve
