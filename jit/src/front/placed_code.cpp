// Copies an image, writes the addresses of its symbols, and makes the memory executable.
#include "front/placed_code.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/system_error.h"
#include "shared/symbols.h"

namespace halyard::jit {

namespace {

const void* host_symbol(std::string_view name, const halyard_jit_host_t& host) {
  if (name == kPutRef) return reinterpret_cast<const void*>(host.put_ref);
  if (name == kBufferType) return host.buffer_type;
  if (name == kListType) return host.list_type;
  size_t op = 0;
  if (!name.starts_with(kHelper)) return nullptr;
  name.remove_prefix(std::string_view(kHelper).size());
  const auto [end, error] = std::from_chars(name.begin(), name.end(), op);
  return error == std::errc() && end == name.end() && op < host.helper_count ? host.helpers[op] : nullptr;
}

// Vector functions are in a separate library, which may not be loaded yet.
const void* library_symbol(const char* name) {
  if (std::string_view(name).starts_with("_ZGV")) {
    void* const library = ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed
    return library ? ::dlsym(library, name) : nullptr;
  }
  return ::dlsym(RTLD_DEFAULT, name);
}

}  // namespace

Result<std::unique_ptr<PlacedCode>> PlacedCode::place(const Image& image, const halyard_jit_host_t& host) {
  std::unique_ptr<PlacedCode> placed(new PlacedCode);
  void* const memory =
      ::mmap(nullptr, image.code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for {} bytes of compiled code: {}", image.code.size(),
                std::strerror(errno));
  placed->memory_ = memory;
  placed->size_ = image.code.size();
  char* const code = static_cast<char*>(memory);
  std::ranges::copy(image.code, code);
  std::vector<uint64_t> addresses;
  for (const std::string& symbol : image.symbols) {
    const void* const address = symbol == kImage                 ? memory
                                : symbol.starts_with("halyard_") ? host_symbol(symbol, host)
                                                                 : library_symbol(symbol.c_str());
    if (!address)
      return fail(Code::NOT_FOUND, "compiled code needs '{}', which is in neither Halyard nor the C library",
                  symbol);
    addresses.push_back(reinterpret_cast<uintptr_t>(address));
  }
  for (const Fixup& fixup : image.fixups) {
    const uint64_t value = addresses[fixup.symbol] + static_cast<uint64_t>(fixup.addend);
    std::memcpy(code + fixup.offset, &value, sizeof value);
  }
  if (::mprotect(memory, placed->size_, PROT_READ | PROT_EXEC) != 0)
    return fail(code_of_errno(errno), "memory for compiled code cannot be made executable: {}",
                std::strerror(errno));
  __builtin___clear_cache(code, code + placed->size_);
  placed->entry_ = code + image.entry;
  return placed;
}

PlacedCode::~PlacedCode() {
  if (memory_) ::munmap(memory_, size_);
}

}  // namespace halyard::jit
