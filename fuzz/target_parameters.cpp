// An arbitrary parameter file, passed to each reader: the entries are ranges of the file or patterns, the
// same at any address.
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzzing.h"
#include "modules/parameter_archive.h"

using namespace halyard;
using namespace halyard::modules;

namespace {

using Reader = Result<ParameterEntries> (*)(const Ref<Bytes>&, std::string_view);
constexpr Reader kReaders[] = {read_irpa, read_gguf, read_safetensors};

void check(const Parameter& parameter, std::span<const uint8_t> file) {
  constexpr size_t kLongestPattern = 16;
  if (!parameter.pattern.empty()) {
    if (!parameter.bytes.empty() || parameter.pattern.size() > kLongestPattern)
      fuzz::finding("a splat with bytes, or with a pattern that is too long");
    return;
  }
  if (parameter.bytes.size() != parameter.length)
    fuzz::finding("a parameter has not as many bytes as it says");
  if (parameter.bytes.empty()) return;
  const std::less_equal<const uint8_t*> not_after;  // also defined for pointers into different objects
  if (!not_after(file.data(), parameter.bytes.data()) ||
      !not_after(parameter.bytes.data() + parameter.bytes.size(), file.data() + file.size()))
    fuzz::finding("a parameter lies outside of its file");
}

// A checksum of everything that was read; no value if it is not such a file.
std::optional<uint64_t> sum(Reader reader, const Ref<Bytes>& file) {
  const Result<ParameterEntries> entries = reader(file, "file");
  if (!entries) {
    if (entries.error().message().empty()) fuzz::finding("a failure without a message");
    return std::nullopt;
  }
  uint64_t sum = entries->size();
  for (const auto& [name, parameter] : *entries) {
    check(parameter, file->span());
    for (const char c : name) sum = sum * 31 + static_cast<uint8_t>(c);
    sum = sum * 31 + parameter.length;
    for (const uint8_t byte : parameter.pattern) sum = sum * 31 + byte;
    if (!parameter.bytes.empty()) sum = sum * 31 + parameter.bytes.front() + parameter.bytes.back();
  }
  return sum;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Ref<Bytes> file = Bytes::copy({data, size});
  std::vector<uint8_t> moved(size + 1);
  if (size > 0) std::memcpy(moved.data() + 1, data, size);
  for (const Reader reader : kReaders)
    if (sum(reader, file) != sum(reader, Bytes::borrow({moved.data() + 1, size}, {})))
      fuzz::finding("the same bytes at an odd address are another file");
  return 0;
}
