// The tables of architectures. Specified by exec-cpu-library.md, section 9.
#include "elf_architecture.h"

#include <elf.h>

#include <algorithm>
#include <bit>

namespace halyard::local {

namespace {

using enum RelocationValue;

constexpr RelocationRule kX86_64[] = {
    {R_X86_64_NONE, none, 0},
    {R_X86_64_64, symbol_and_addend, 8},
    {R_X86_64_PC32, symbol_and_addend_from_here, 4, RelocationFit::as_signed},
    {R_X86_64_GLOB_DAT, symbol, 8},
    {R_X86_64_JUMP_SLOT, symbol, 8},
    {R_X86_64_RELATIVE, base_and_addend, 8},
    {R_X86_64_32, symbol_and_addend, 4, RelocationFit::as_unsigned},
    {R_X86_64_32S, symbol_and_addend, 4, RelocationFit::as_signed},
};
constexpr RelocationRule kArm64[] = {
    {R_AARCH64_NONE, none, 0},
    {R_AARCH64_ABS64, symbol_and_addend, 8},
    {R_AARCH64_GLOB_DAT, symbol_and_addend, 8},
    {R_AARCH64_JUMP_SLOT, symbol_and_addend, 8},
    {R_AARCH64_RELATIVE, base_and_addend, 8},
};
constexpr RelocationRule kRiscv64[] = {
    {R_RISCV_NONE, none, 0},
    {R_RISCV_32, symbol_and_addend, 4, RelocationFit::as_unsigned},
    {R_RISCV_64, symbol_and_addend, 8},
    {R_RISCV_RELATIVE, base_and_addend, 8},
    {R_RISCV_JUMP_SLOT, symbol, 8},
};

}  // namespace

const ElfArchitecture kElfArchitectures[3] = {
    {"x86_64", EM_X86_64, kX86_64},
    {"arm_64", EM_AARCH64, kArm64},
    {"riscv_64", EM_RISCV, kRiscv64},
};

const RelocationRule* ElfArchitecture::find(uint32_t type) const {
  const auto found = std::ranges::find(relocations, type, &RelocationRule::type);
  return found == relocations.end() ? nullptr : &*found;
}

std::string_view architecture_name(uint16_t machine) {
  const auto* const found = std::ranges::find(kElfArchitectures, machine, &ElfArchitecture::machine);
  return found == std::ranges::end(kElfArchitectures) ? "another processor" : found->name;
}

const ElfArchitecture* host_architecture() {
  if constexpr (std::endian::native != std::endian::little || sizeof(void*) != 8) return nullptr;
#if defined(__x86_64__)
  return &kElfArchitectures[0];
#elif defined(__aarch64__)
  return &kElfArchitectures[1];
#elif defined(__riscv)
  return &kElfArchitectures[2];
#else
  return nullptr;
#endif
}

}  // namespace halyard::local
