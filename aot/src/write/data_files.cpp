#include "write/data_files.h"

#include <fmt/core.h>

namespace halyard::aot {

namespace {

// Constants of this size are not written as numbers: compilers take seconds for a megabyte of them.
constexpr size_t kLargeBytes = size_t{1} << 20;

std::string constant_text(std::string_view symbol, std::span<const uint8_t> bytes) {
  std::string text = fmt::format("static const _Alignas(64) unsigned char {}[{}] = {{", symbol, bytes.size());
  text.reserve(text.size() + 4 * bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 32 == 0) text += "\n  ";
    text += std::to_string(bytes[i]);
    text += ',';
  }
  return text + "};\n";
}

}  // namespace

std::string DataFiles::add(const std::string& symbol, std::span<const uint8_t> bytes) {
  if (bytes.size() < kLargeBytes) return constant_text(symbol, bytes);
  const std::string public_name = fmt::format("{}_{}", prefix_, symbol);
  assembly_ += fmt::format(".globl {0}\n.balign 64\n{0}:\n  .incbin \"{1}.bin\", {2}, {3}\n", public_name,
                           name_, binary_.size(), bytes.size());
  binary_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return fmt::format("extern const unsigned char {1}[{2}];\n#define {0} {1}\n", symbol, public_name,
                     bytes.size());
}

void DataFiles::finish(std::string_view comment, std::vector<File>& files) const {
  if (assembly_.empty()) return;
  files.push_back({name_ + ".bin", binary_});
  files.push_back(
      {name_ + "_data.S",
       fmt::format("{}.section .rodata\n{}.section .note.GNU-stack,\"\",%progbits\n", comment, assembly_)});
}

}  // namespace halyard::aot
