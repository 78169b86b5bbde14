// zlib's inflate.
#include "decoder.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <limits>

namespace halyard::tools::serve {

std::optional<Coding> coding_named(std::string_view name) {
  const auto is = [&](std::string_view other) {
    return std::ranges::equal(
        name, other, [](char one, char two) { return std::tolower(static_cast<unsigned char>(one)) == two; });
  };
  if (is("gzip") || is("x-gzip")) return Coding::gzip;
  if (is("deflate")) return Coding::deflate;
  if (is("identity")) return Coding::identity;
  return std::nullopt;
}

struct Decoder::Stream {
  z_stream state = {};
  bool is_open = false;
};

Decoder::Decoder(Coding coding) : coding_(coding), stream_(std::make_unique<Stream>()) {
  constexpr int kGzip = 16;  // added to the window size: only the gzip format
  stream_->is_open =
      ::inflateInit2(&stream_->state, MAX_WBITS + (coding == Coding::gzip ? kGzip : 0)) == Z_OK;
}

Decoder::~Decoder() {
  if (stream_->is_open) ::inflateEnd(&stream_->state);
}

Decoder::State Decoder::step(std::span<const char>& given, std::span<char>& room) {
  z_stream& state = stream_->state;
  if (!stream_->is_open) return State::malformed;
  constexpr size_t kMaxPiece = std::numeric_limits<uInt>::max();
  while (!room.empty()) {
    if (is_at_end_) {
      if (given.empty()) return State::at_end;
      // Only gzip may have further members.
      if (coding_ != Coding::gzip || ::inflateReset(&state) != Z_OK) return State::malformed;
      is_at_end_ = false;
    }
    state.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(given.data()));
    state.avail_in = static_cast<uInt>(std::min(given.size(), kMaxPiece));
    state.next_out = reinterpret_cast<Bytef*>(room.data());
    state.avail_out = static_cast<uInt>(std::min(room.size(), kMaxPiece));
    const uInt in = state.avail_in, out = state.avail_out;
    // Called even without input, because earlier input may have left output that did not fit.
    const int result = ::inflate(&state, Z_NO_FLUSH);
    given = given.subspan(in - state.avail_in);
    room = room.subspan(out - state.avail_out);
    if (result == Z_BUF_ERROR) break;  // needs more input
    if (result != Z_OK && result != Z_STREAM_END) return State::malformed;
    is_at_end_ = result == Z_STREAM_END;
  }
  return is_at_end_ ? State::at_end : State::more;
}

}  // namespace halyard::tools::serve
