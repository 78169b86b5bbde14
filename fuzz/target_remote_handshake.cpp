// The TLS handshake of remote devices. The input either is what one side receives, or damages a handshake of
// two right sides: which flight, where, and how. A side that has ended its handshake knows the other side's
// certificate, and opens nothing but what that side has sealed.
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzzing.h"
#include "remote/tls.h"
#include "tls_sides.h"

namespace {

using namespace halyard;
using remote::Tls;
using remote::TlsContext;

// The certificates of both sides, made when the target starts.
struct Sides {
  std::shared_ptr<TlsContext> server, client;
  std::string server_digest, client_digest;
  Sides() {
    const remote::TlsSides made =
        remote::make_tls_sides("/tmp/halyard-fuzz-handshake-" + std::to_string(::getpid()));
    server = made.server;
    client = made.client;
    const auto [whole_server, whole_client] = shake({});
    server_digest = whole_client;
    client_digest = whole_server;
    if (server_digest.empty() || client_digest.empty()) fuzz::finding("two right sides do not shake hands");
  }

  struct Damage {
    size_t flight = SIZE_MAX;
    size_t offset = 0;
    uint8_t flip = 0;
    uint8_t keep = 255;  // of 255 parts of the flight
    uint8_t extra = 0;   // bytes after it
  };

  // The digests that the server and the client have of each other; "" if its handshake has not ended.
  std::pair<std::string, std::string> shake(const Damage& damage) const {
    Tls sides[2] = {Tls(client, "build-box"), Tls(server, "")};
    bool is_done[2] = {}, has_failed[2] = {};
    size_t flight = 0;
    for (int turn = 0, idle = 0; idle < 4; ++turn) {
      const int side = turn % 2;
      std::vector<uint8_t> wire;
      ++idle;
      if (!has_failed[side] && !is_done[side]) {
        const remote::Result<bool> done = sides[side].shake_hands(wire);
        has_failed[side] = !done;
        is_done[side] = done && *done;
      } else if (is_done[side] && !has_failed[side]) {
        uint8_t plain[64];
        const remote::Result<size_t> opened = sides[side].open(plain, wire);
        if (opened && *opened > 0) fuzz::finding("bytes were opened that nobody has sealed");
        has_failed[side] = !opened;
      }
      if (wire.empty()) continue;
      idle = 0;
      if (flight++ == damage.flight) {
        wire[damage.offset % wire.size()] ^= damage.flip;
        wire.resize(wire.size() * damage.keep / 255);
        wire.insert(wire.end(), damage.extra, damage.flip);
      }
      sides[1 - side].feed(wire);
    }
    return {is_done[1] ? sides[1].peer_digest() : "", is_done[0] ? sides[0].peer_digest() : ""};
  }
};

// What one side receives, in pieces.
void receive(Tls side, std::span<const uint8_t> bytes, size_t piece) {
  std::vector<uint8_t> wire;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    side.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    const remote::Result<bool> done = side.shake_hands(wire);
    if (!done) return;
    if (*done) fuzz::finding("a side without a certificate has shaken hands");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Sides& sides = *new Sides;
  if (size < 2) return 0;
  if (data[0] & 1) {
    const bool is_server = data[0] & 2;
    receive(is_server ? Tls(sides.server, "") : Tls(sides.client, "build-box"), {data + 2, size - 2},
            data[1] ? data[1] : size);
    return 0;
  }
  Sides::Damage damage;
  damage.flight = (data[0] >> 1) % 8;
  if (size >= 3) damage.offset = data[1] | size_t{data[2]} << 8;
  if (size >= 4) damage.flip = data[3];
  if (size >= 5) damage.keep = data[4];
  if (size >= 6) damage.extra = data[5];
  const auto [of_client, of_server] = sides.shake(damage);
  if (!of_client.empty() && of_client != sides.client_digest)
    fuzz::finding("the server takes another certificate");
  if (!of_server.empty() && of_server != sides.server_digest)
    fuzz::finding("the client takes another certificate");
  return 0;
}
