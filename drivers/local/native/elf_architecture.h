// The architecture-dependent parts of an ELF file: machine number and relocations.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace halyard::local {

// The value that a relocation writes. The addend is that of the relocation (RELA).
enum class RelocationValue : uint8_t {
  none,
  symbol,                       // the symbol's address
  symbol_and_addend,            // address + addend
  symbol_and_addend_from_here,  // address + addend - address of the relocated bytes
  base_and_addend,              // load bias + addend
};

// How the value must fit in the relocated bytes.
enum class RelocationFit : uint8_t { always, as_unsigned, as_signed };

struct RelocationRule {
  uint32_t type;
  RelocationValue value;
  uint8_t width;  // bytes
  RelocationFit fit = RelocationFit::always;
};

struct ElfArchitecture {
  std::string_view name;  // as in format names: "x86_64"
  uint16_t machine;       // EM_*
  std::span<const RelocationRule> relocations;

  const RelocationRule* find(uint32_t type) const;
};

extern const ElfArchitecture kElfArchitectures[3];

// The name of a machine from the table above, or "another processor".
std::string_view architecture_name(uint16_t machine);

// The architecture of this program; null: native executables are not supported.
const ElfArchitecture* host_architecture();

}  // namespace halyard::local
