// zlib's deflate.
#include "compressor.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace halyard::tools::serve {

struct Compressor::Stream {
  z_stream state = {};
  bool is_open = false;
};

Compressor::Compressor(Coding coding) : stream_(std::make_unique<Stream>()) {
  constexpr int kGzip = 16;  // added to the window size: the gzip format
  constexpr int kMemoryLevel = 8;
  stream_->is_open = ::deflateInit2(&stream_->state, Z_BEST_SPEED, Z_DEFLATED,
                                    MAX_WBITS + (coding == Coding::gzip ? kGzip : 0), kMemoryLevel,
                                    Z_DEFAULT_STRATEGY) == Z_OK;
}

Compressor::~Compressor() {
  if (stream_->is_open) ::deflateEnd(&stream_->state);
}

bool Compressor::is_open() const { return stream_->is_open; }

bool Compressor::step(std::span<const std::byte>& given, std::span<char>& room, bool is_last) {
  z_stream& state = stream_->state;
  constexpr size_t kMaxPiece = std::numeric_limits<uInt>::max();
  while (!room.empty() && (is_last || !given.empty())) {
    state.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(given.data()));
    state.avail_in = static_cast<uInt>(std::min(given.size(), kMaxPiece));
    state.next_out = reinterpret_cast<Bytef*>(room.data());
    state.avail_out = static_cast<uInt>(std::min(room.size(), kMaxPiece));
    const uInt in = state.avail_in, out = state.avail_out;
    const bool ends = is_last && in == given.size();
    const int result = ::deflate(&state, ends ? Z_FINISH : Z_NO_FLUSH);
    given = given.subspan(in - state.avail_in);
    room = room.subspan(out - state.avail_out);
    if (result == Z_STREAM_END) return true;
    if (result != Z_OK) return false;  // Z_BUF_ERROR: needs more input or room
  }
  return false;
}

}  // namespace halyard::tools::serve
