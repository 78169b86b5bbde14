// The serialized form of an image: header, fixups, names of symbols, code.
#include "shared/image.h"

#include <cstring>
#include <optional>
#include <string_view>

namespace halyard::jit {

namespace {

// An image has few symbols with short names: helpers of the host and functions of the C library.
constexpr uint32_t kMaxSymbols = 4096;

struct Header {
  uint32_t entry;
  uint32_t entry_size;
  uint32_t code_size;
  uint32_t fixup_count;
  uint32_t symbol_count;
  uint32_t symbols_size;  // bytes of the names, each with a terminating zero
};

// Consumes data from the front of the bytes.
class Reader {
 public:
  explicit Reader(std::span<const char> bytes) : bytes_(bytes) {}
  std::optional<std::string_view> take(uint64_t size) {
    if (size > bytes_.size()) return std::nullopt;
    const std::string_view taken(bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  template <typename T>
  bool take_into(T* to, uint64_t count) {
    const auto taken = take(count * sizeof(T));
    if (taken && count > 0) std::memcpy(to, taken->data(), taken->size());
    return taken.has_value();
  }
  bool is_empty() const { return bytes_.empty(); }

 private:
  std::span<const char> bytes_;
};

}  // namespace

std::string Image::to_bytes() const {
  std::string names;
  for (const std::string& symbol : symbols) names.append(symbol).push_back('\0');
  const Header header = {entry,
                         entry_size,
                         static_cast<uint32_t>(code.size()),
                         static_cast<uint32_t>(fixups.size()),
                         static_cast<uint32_t>(symbols.size()),
                         static_cast<uint32_t>(names.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(fixups.data()), fixups.size() * sizeof(Fixup));
  return bytes + names + code;
}

Result<Image> Image::from_bytes(std::span<const char> bytes) {
  const auto damaged = [](const char* how) {
    return fail(Code::INVALID_ARGUMENT, "compiled code is damaged: {}", how);
  };
  Reader reader(bytes);
  Header header;
  if (!reader.take_into(&header, 1)) return damaged("it ends within its header");
  if (header.symbol_count > kMaxSymbols || header.fixup_count > bytes.size() / sizeof(Fixup))
    return damaged("it has more fixups or symbols than bytes");
  Image image;
  image.entry = header.entry;
  image.entry_size = header.entry_size;
  image.fixups.resize(header.fixup_count);
  if (!reader.take_into(image.fixups.data(), image.fixups.size()))
    return damaged("it ends within its fixups");
  auto names = reader.take(header.symbols_size);
  const auto code = reader.take(header.code_size);
  if (!names || !code || !reader.is_empty()) return damaged("its size differs from the one in its header");
  for (uint32_t i = 0; i < header.symbol_count; ++i) {
    const size_t end = names->find('\0');
    if (end == std::string_view::npos) return damaged("a symbol has no end");
    image.symbols.emplace_back(names->substr(0, end));
    names->remove_prefix(end + 1);
  }
  image.code = *code;
  if (header.entry >= header.code_size || header.entry_size > header.code_size - header.entry)
    return damaged("its function lies outside of its code");
  for (const Fixup& fixup : image.fixups)
    if (uint64_t{fixup.offset} + sizeof(uint64_t) > header.code_size || fixup.symbol >= header.symbol_count)
      return damaged("a fixup lies outside of its code");
  return image;
}

}  // namespace halyard::jit
