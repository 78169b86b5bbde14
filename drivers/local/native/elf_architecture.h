// What differs between architectures in an ELF file: the machine's number and the relocations.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace halyard::local {

// What a relocation writes. Addend: of the relocation itself (RELA).
enum class RelocationValue : uint8_t {
  none,
  symbol,                       // the symbol's address
  symbol_and_addend,            // address + addend
  symbol_and_addend_from_here,  // address + addend - address of the place
  base_and_addend,              // distance that the image was moved + addend
};

// Whether the value keeps its meaning in the bytes that there are for it.
enum class RelocationFit : uint8_t { always, as_unsigned, as_signed };

struct RelocationRule {
  uint32_t type;
  RelocationValue value;
  uint8_t width;  // bytes
  RelocationFit fit = RelocationFit::always;
};

struct ElfArchitecture {
  std::string_view name;  // as formats say it: "x86_64"
  uint16_t machine;       // EM_*
  std::span<const RelocationRule> relocations;

  const RelocationRule* find(uint32_t type) const;
};

extern const ElfArchitecture kElfArchitectures[3];

// What this program was compiled for; null: an architecture without native executables.
const ElfArchitecture* host_architecture();

}  // namespace halyard::local
