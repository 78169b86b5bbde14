// The .safetensors reader. Its header is JSON, of which only member names and their data_offsets matter.
// Names are the raw bytes of the text, including escapes, so a JSON library does not fit. Specified by
// parameters-and-files.md, section 3.3.
#include <charconv>

#include "modules/file_fields.h"
#include "modules/parameter_archive.h"

namespace halyard::modules {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr int kMostNesting = 64;

// Reads JSON text from left to right. Skips irrelevant values by their brackets and strings without
// validating the rest.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  Result<> expect(char wanted) {
    if (take(wanted)) return {};
    return error("expected '{}'", wanted);
  }
  // The text between the quotes.
  Result<std::string_view> string() {
    HALYARD_TRY(expect('"'));
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return error("a string does not end");
    return text_.substr(begin, at_++ - begin);
  }
  Result<uint64_t> number() {
    peek();
    uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem != std::errc()) return error("expected a number that is not negative");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  Result<> skip(int depth = 0) {
    if (depth > kMostNesting) return error("values are nested more than {} deep", kMostNesting);
    const char first = peek();
    if (first == '"') {
      HALYARD_TRY(string());
      return {};
    }
    if (first != '{' && first != '[') {
      const size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      if (end == at_) return error("expected a value");
      at_ = end;
      return {};
    }
    ++at_;
    const char close = first == '{' ? '}' : ']';
    if (take(close)) return {};
    do {
      if (first == '{') {
        HALYARD_TRY(string());
        HALYARD_TRY(expect(':'));
      }
      HALYARD_TRY(skip(depth + 1));
    } while (take(','));
    return expect(close);
  }
  // Calls `member` with each name of the next object; it must consume the value.
  template <typename Member>
  Result<> object(Member&& member) {
    HALYARD_TRY(expect('{'));
    if (take('}')) return {};
    do {
      const std::string_view name = HALYARD_TRY(string());
      HALYARD_TRY(expect(':'));
      HALYARD_TRY(member(name));
    } while (take(','));
    return expect('}');
  }

  template <typename... Args>
  std::unexpected<Status> error(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(Code::INVALID_ARGUMENT, "parameter file '{}', character {} of its header: {}", path_, at_,
                fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view text_;
  std::string_view path_;
  size_t at_ = 0;
};

Result<Parameter> read_tensor(Scanner& scanner, std::string_view name, const Ref<Bytes>& file,
                              std::span<const uint8_t> data) {
  Parameter parameter;
  parameter.keep = file;
  bool found = false;
  HALYARD_TRY(scanner.object([&](std::string_view member) -> Result<> {
    if (member != "data_offsets") return scanner.skip();
    HALYARD_TRY(scanner.expect('['));
    const uint64_t begin = HALYARD_TRY(scanner.number());
    HALYARD_TRY(scanner.expect(','));
    const uint64_t end = HALYARD_TRY(scanner.number());
    HALYARD_TRY(scanner.expect(']'));
    if (begin > end || end > data.size())
      return scanner.error(
          "tensor '{}' is at [{}, {}) of {} bytes of data; the file is damaged or was cut off", name, begin,
          end, data.size());
    parameter.bytes = data.subspan(begin, end - begin);
    parameter.length = end - begin;
    found = true;
    return {};
  }));
  if (!found) return scanner.error("tensor '{}' has no data_offsets", name);
  return parameter;
}

}  // namespace

Result<ParameterEntries> read_safetensors(const Ref<Bytes>& file, std::string_view path) {
  FileFields fields(file->span(), path);
  const uint64_t size = HALYARD_TRY(fields.next<uint64_t>("the length of the header"));
  const auto header = HALYARD_TRY(fields.take(size, "the header"));
  const std::span<const uint8_t> data = file->span().subspan(fields.position());
  Scanner scanner({reinterpret_cast<const char*>(header.data()), header.size()}, path);
  ParameterEntries entries;
  HALYARD_TRY(scanner.object([&](std::string_view name) -> Result<> {
    if (name == kMetadata) return scanner.skip();
    entries.emplace_back(name, HALYARD_TRY(read_tensor(scanner, name, file, data)));
    return {};
  }));
  if (scanner.peek() != '\0') return scanner.error("text after the end of the header's object");
  return entries;
}

}  // namespace halyard::modules
