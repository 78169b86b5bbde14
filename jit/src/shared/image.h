// Image: the machine code of a function as the code generator gives it and the cache keeps it. It runs at any
// address, once the addresses of the symbols that it uses (symbols.h) stand where its fixups say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace halyard::jit {

// The 8 bytes at `offset` of the code: the address of the symbol, and the addend.
struct Fixup {
  uint32_t offset;
  uint32_t symbol;  // index into Image::symbols
  int64_t addend;
};

struct Image {
  uint32_t entry = 0;       // offset of the function
  uint32_t entry_size = 0;  // its bytes
  std::vector<Fixup> fixups;
  std::vector<std::string> symbols;
  std::string code;

  // As bytes, the same for the same image.
  std::string to_bytes() const;
  // INVALID_ARGUMENT: these are not the bytes of an image, or something in them lies outside of its code.
  static Result<Image> from_bytes(std::span<const char> bytes);
};

}  // namespace halyard::jit
