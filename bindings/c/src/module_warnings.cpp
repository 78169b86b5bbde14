// Finds Vulkan shaders for targets without 8- or 16-bit types, such as the compiler's default target. For
// tensors of such types the compiler then uses 32-bit numbers without a warning: f16 elements in pairs, i8
// without their sign.
#include "module_warnings.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "declaration.h"
#include "hal/view/element_type.h"
#include "vm/format/bytecode_reader.h"

namespace halyard::c {
namespace {

// The element types that declarations can name; "" for others.
struct DeclaredType {
  std::string_view text;
  uint32_t bits;
};
constexpr DeclaredType kDeclared[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, ...) \
  {hal::k##numerical == hal::kBoolean ? "" : declared, bits},
#include "halyard/element_types.inc"
};

struct Width {
  uint32_t bits;
  std::vector<uint32_t> capabilities;  // SPIR-V: a shader that declares one is for a target with such types
};
// Created for each call, so that no static object has a destructor.
std::array<Width, 2> widths() {
  return {{
      {16, {9, 22, 4433, 4434, 4435}},
      {8, {39, 4448, 4449, 4450}},
  }};
}

// The first element type of width `width` in a declaration: f16 in "tensor<4x?xf16>".
std::optional<std::string_view> narrow_element(std::string_view declaration, const Width& width) {
  constexpr std::string_view kTensor = "tensor<";
  for (size_t at = declaration.find(kTensor); at != std::string_view::npos;
       at = declaration.find(kTensor, at)) {
    at += kTensor.size();
    const std::string_view inside = declaration.substr(at, declaration.find_first_of(">,", at) - at);
    const size_t dimensions = inside.find_first_not_of("0123456789?x");
    if (dimensions == std::string_view::npos) continue;
    const std::string_view element = inside.substr(dimensions);
    const bool is_narrow = std::ranges::any_of(
        kDeclared, [&](const DeclaredType& type) { return type.bits == width.bits && type.text == element; });
    if (is_narrow) return element;
  }
  return std::nullopt;
}

// Adds the capabilities that the shaders in an executable declare, in any container: a SPIR-V module begins
// with its magic number, aligned to a word, and capabilities come first. Returns whether there was a shader.
bool read_capabilities(std::span<const uint8_t> bytes, std::set<uint32_t>& declared) {
  constexpr uint32_t kMagic = 0x07230203;
  constexpr uint32_t kOpCapability = 2u << 16 | 17;  // two words
  constexpr size_t kHeaderBytes = 20;
  bool found = false;
  const auto word = [&](size_t at) { return vm::load_unaligned<uint32_t>(bytes.data() + at); };
  for (size_t at = 0; at + kHeaderBytes <= bytes.size(); at += 4) {
    if (word(at) != kMagic) continue;
    for (size_t next = at + kHeaderBytes; next + 8 <= bytes.size() && word(next) == kOpCapability;
         next += 8) {
      declared.insert(word(next + 4));
      found = true;
    }
  }
  return found;
}

bool may_be_shaders(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view kSpirv("\x03\x02\x23\x07", 4);
  return text.starts_with("VKE1") || (text.size() >= 8 && text.substr(4).starts_with("VKE1")) ||
         text.starts_with(kSpirv);
}

}  // namespace

std::vector<std::string> warnings_about(const vm::BytecodeModule& module) {
  struct Found {
    const Width* width;
    std::string_view function, element;
  };
  const std::array<Width, 2> known = widths();
  std::vector<Found> narrow;
  for (const Width& width : known)
    for (const vm::Export& function : module.exports())
      if (const auto element = narrow_element(function.attribute(kDeclarationAttribute), width)) {
        narrow.push_back({&width, function.name, *element});
        break;
      }
  if (narrow.empty()) return {};
  std::set<uint32_t> declared;
  bool has_shaders = false;
  for (const auto& constant : module.rodata())
    if (may_be_shaders(constant->span())) has_shaders |= read_capabilities(constant->span(), declared);
  if (!has_shaders) return {};
  std::vector<std::string> warnings;
  for (const auto& [width, function, element] : narrow) {
    if (std::ranges::any_of(width->capabilities, [&](uint32_t number) { return declared.contains(number); }))
      continue;
    warnings.push_back(fmt::format(
        "the Vulkan shaders of module '{}' were compiled for a target without {}-bit types, but function "
        "'{}' has tensors of {}; such shaders compute with 32-bit numbers, so results may be wrong; compile "
        "with --iree-vulkan-target= and the name of a GPU that has these types, such as ampere, rdna3 or "
        "valhall",
        module.name(), width->bits, function, element));
  }
  return warnings;
}

}  // namespace halyard::c
