// Compressed bodies: gzip and deflate, decoded in pieces by zlib.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace halyard::tools::serve {

enum class Coding { identity, gzip, deflate };

// The coding with this name in Content-Encoding, in upper or lower case; "x-gzip" is gzip. Nothing: this
// server does not have it.
std::optional<Coding> coding_named(std::string_view name);

// Decodes one body: gzip (RFC 1952, of one member or several) or deflate (RFC 1950: in the format of zlib).
// It has some 40 KiB of its own.
class Decoder {
 public:
  // Not for Coding::identity. No memory: the first step is malformed.
  explicit Decoder(Coding coding);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder();

  enum class State { more, at_end, malformed };
  // Decodes from `given` to `room` until one of them is used up, and leaves in both what is left. at_end:
  // what was given may end here.
  State step(std::span<const char>& given, std::span<char>& room);
  // Whether the body may end here.
  bool is_complete() const { return is_at_end_; }

 private:
  struct Stream;
  const Coding coding_;
  std::unique_ptr<Stream> stream_;
  bool is_at_end_ = false;
};

}  // namespace halyard::tools::serve
