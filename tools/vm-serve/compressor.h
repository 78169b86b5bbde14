// Compressed responses: encodes gzip and deflate piece by piece with zlib.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "decoder.h"

namespace halyard::tools::serve {

// Encodes one body, quickly rather than small (zlib's level 1). Uses about 270 KiB of memory.
class Compressor {
 public:
  // `coding` must not be Coding::identity. Without memory is_open() is false.
  explicit Compressor(Coding coding);
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor();

  bool is_open() const;
  // Encodes from `given` to `room` until one of them is used up; both are advanced. With `is_last`, `given`
  // is the end of the body. True: all of the encoded body has been written.
  bool step(std::span<const std::byte>& given, std::span<char>& room, bool is_last);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace halyard::tools::serve
