// Loads a driver, and reads its file.
#include "driver.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "common/files.h"

namespace halyard::cts {

using tools::check;
using tools::fail;

namespace {

constexpr char kHostVersion[] = "hal-cts";

// An array in the file; empty if it would exceed the file or is misaligned.
template <typename T>
std::span<const T> array_at(std::span<const uint8_t> file, uint64_t offset, uint64_t count) {
  if (offset > file.size() || offset % alignof(T) != 0 || count > (file.size() - offset) / sizeof(T))
    return {};
  return {reinterpret_cast<const T*>(file.data() + offset), static_cast<size_t>(count)};
}

}  // namespace

Result<halyard_driver_negotiate_fn> load_driver(const std::string& path) {
  // Without a '/' the dynamic linker would search its own folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail(HALYARD_UNAVAILABLE, "cannot load driver '{}': {}", path, dlerror());
  void* const symbol = dlsym(library, HALYARD_DRIVER_NEGOTIATE_SYMBOL);
  if (!symbol)
    return fail(HALYARD_INCOMPATIBLE, "'{}' exports no {}; is it a driver?", path,
                HALYARD_DRIVER_NEGOTIATE_SYMBOL);
  return reinterpret_cast<halyard_driver_negotiate_fn>(symbol);
}

halyard_driver_request_t plain_request() {
  return {.struct_size = sizeof(halyard_driver_request_t),
          .abi_min = HALYARD_DRIVER_ABI_V1,
          .abi_max = HALYARD_DRIVER_ABI_V1,
          .sanitizer = HALYARD_SANITIZER_KIND,
          .host_version = kHostVersion};
}

Result<> host_verdict(const std::string& path) {
  const Instance instance = TOOL_TRY(
      Instance::create({.flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS,
                        .driver_libraries = {path}}));
  const Block<halyard_driver_candidate_t> candidates = TOOL_TRY(instance.candidates());
  for (const halyard_driver_candidate_t& each : candidates)
    if (!each.accepted) return fail(HALYARD_INCOMPATIBLE, "{}", each.reason);
  if (candidates.empty()) return fail(HALYARD_NOT_FOUND, "no driver at '{}'", path);
  // So far only the file has been read. Listing devices loads the driver, negotiates and initializes.
  const std::string kinds = candidates[0].drivers;
  TOOL_TRY(instance.devices(kinds.substr(0, kinds.find(','))));
  return {};
}

Result<std::vector<std::string>> exported_symbols(const std::string& path) {
  const tools::FileContents contents = TOOL_TRY(tools::FileContents::open(path));
  const std::span<const uint8_t> file = contents.bytes();
  const auto headers = array_at<Elf64_Ehdr>(file, 0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0)
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' is no ELF file", path);
  const auto sections = array_at<Elf64_Shdr>(file, headers[0].e_shoff, headers[0].e_shnum);
  std::vector<std::string> names;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& texts = sections[section.sh_link];
    const auto characters = array_at<char>(file, texts.sh_offset, texts.sh_size);
    for (const Elf64_Sym& symbol :
         array_at<Elf64_Sym>(file, section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
      const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
      if (!defined || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || symbol.st_name >= characters.size())
        continue;
      const char* const name = &characters[symbol.st_name];
      names.emplace_back(name, strnlen(name, characters.size() - symbol.st_name));
    }
  }
  return names;
}

}  // namespace halyard::cts
