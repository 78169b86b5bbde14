// Image: the machine code of a function, as the code generator produces it and the cache stores it. It runs
// at any address after the addresses of its symbols (symbols.h) are written at its fixups.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace halyard::jit {

// The 8 bytes at `offset` of the code get the address of the symbol plus the addend.
struct Fixup {
  uint32_t offset;
  uint32_t symbol;  // index into Image::symbols
  int64_t addend;
};

struct Image {
  uint32_t entry = 0;       // offset of the function in the code
  uint32_t entry_size = 0;  // size of the function in bytes
  std::vector<Fixup> fixups;
  std::vector<std::string> symbols;
  std::string code;

  // Serializes the image. Equal images have equal bytes.
  std::string to_bytes() const;
  // INVALID_ARGUMENT: not the bytes of an image, or an offset outside its code.
  static Result<Image> from_bytes(std::span<const char> bytes);
};

}  // namespace halyard::jit
