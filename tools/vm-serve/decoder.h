// Compressed bodies: decodes gzip and deflate piece by piece with zlib.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace halyard::tools::serve {

enum class Coding { identity, gzip, deflate };

// The coding with this name in Content-Encoding, in any case; "x-gzip" is gzip. Nothing: unsupported.
std::optional<Coding> coding_named(std::string_view name);

// Decodes one body: gzip (RFC 1952, with one or several members) or deflate (RFC 1950: the zlib format). Uses
// about 40 KiB of memory.
class Decoder {
 public:
  // `coding` must not be Coding::identity. Without memory the first step returns malformed.
  explicit Decoder(Coding coding);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder();

  enum class State { more, at_end, malformed };
  // Decodes from `given` to `room` until one of them is used up; both are advanced. at_end: the body may end
  // after `given`.
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
