// An arbitrary parameter file, passed to each reader. The entries are ranges of the file or patterns. They
// are the same at any address, and equal those of a second reader that shares no code with the first:
// Boost.JSON for headers, and a plain walk over the fields of .gguf.
#include <algorithm>
#include <boost/json/src.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fuzzing.h"
#include "modules/parameter_archive.h"
#include "modules/shard_index.h"

using namespace halyard;
using namespace halyard::modules;

namespace {

using Reader = Result<ParameterEntries> (*)(const Ref<Bytes>&, std::string_view);
constexpr Reader kReaders[] = {read_irpa, read_gguf, read_safetensors};

void check(const Parameter& parameter, std::span<const uint8_t> file) {
  constexpr size_t kMaxPattern = 16;
  if (!parameter.pattern.empty()) {
    if (!parameter.bytes.empty() || parameter.pattern.size() > kMaxPattern)
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

// A checksum of all data that was read; no value if the reader refuses the file.
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

// ---- The second reader. It gets only files that the first has accepted.

template <typename T>
T number_at(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Nothing if the text has a number that this reader refuses: one with a large exponent, even of 0.
std::optional<boost::json::value> parse(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 1000;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  boost::json::error_code error;
  boost::json::value value = boost::json::parse({text.data(), text.size()}, error, {}, options);
  if (error == boost::json::error::exponent_overflow) return std::nullopt;
  if (error) fuzz::finding("the header is no JSON");
  return value;
}

// The bits of an element; 0: unknown to this reader.
unsigned __int128 bits_of(std::string_view type) {
  static const std::map<std::string_view, unsigned> known = {
      {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E4M3", 8},
      {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"U16", 16},    {"I16", 16}, {"F16", 16}, {"BF16", 16}, {"U32", 32},
      {"I32", 32},    {"F32", 32},    {"U64", 64},    {"I64", 64}, {"F64", 64}, {"C64", 64}};
  const auto found = known.find(type);
  return found == known.end() ? 0 : found->second;
}

void check_tensor(const boost::json::object& tensor, const Parameter& parameter, const uint8_t* data) {
  const auto& offsets = tensor.at("data_offsets").as_array();
  const auto begin = offsets.at(0).to_number<uint64_t>(), end = offsets.at(1).to_number<uint64_t>();
  if (parameter.length != end - begin || (end > begin && parameter.bytes.data() != data + begin))
    fuzz::finding("a tensor is not where its offsets say");
  const auto *type = tensor.if_contains("dtype"), *shape = tensor.if_contains("shape");
  if (!type || !shape) return;
  const auto& name = type->as_string();
  unsigned __int128 bits = bits_of({name.data(), name.size()});
  if (bits == 0) return;
  for (const auto& dimension : shape->as_array()) {
    bits *= dimension.to_number<uint64_t>();
    if (bits > UINT64_MAX) return;  // dimensions of 0 may follow
  }
  if (bits != static_cast<unsigned __int128>(parameter.length) * 8)
    fuzz::finding("a tensor has another number of bytes than its type and shape");
}

void check_safetensors(const Ref<Bytes>& file) {
  const Result<ParameterEntries> entries = read_safetensors(file, "file");
  if (!entries) return;
  const auto size = number_at<uint64_t>(file->data());
  const std::optional header = parse({reinterpret_cast<const char*>(file->data()) + 8, size});
  if (!header) return;
  const boost::json::object& tensors = header->as_object();
  size_t count = tensors.size() - tensors.contains("__metadata__");
  for (const auto& [name, parameter] : *entries) {
    const auto* tensor = tensors.if_contains(name);
    if (!tensor) fuzz::finding("there is no such name in the header");
    check_tensor(tensor->as_object(), parameter, file->data() + 8 + size);
    if (count-- == 0) fuzz::finding("two tensors have one name");
  }
  if (count != 0) fuzz::finding("the header has another tensor");
}

// Elements and bytes of a block.
const std::map<uint32_t, std::pair<uint64_t, uint64_t>>& blocks() {
  static const std::map<uint32_t, std::pair<uint64_t, uint64_t>> known = {
      {0, {1, 4}},      {1, {1, 2}},      {2, {32, 18}},    {3, {32, 20}},    {6, {32, 22}},
      {7, {32, 24}},    {8, {32, 34}},    {10, {256, 84}},  {11, {256, 110}}, {12, {256, 144}},
      {13, {256, 176}}, {14, {256, 210}}, {15, {256, 292}}, {16, {256, 66}},  {17, {256, 74}},
      {18, {256, 98}},  {19, {256, 50}},  {20, {32, 18}},   {21, {256, 110}}, {22, {256, 82}},
      {23, {256, 136}}, {24, {1, 1}},     {25, {1, 2}},     {26, {1, 4}},     {27, {1, 8}},
      {28, {1, 8}},     {29, {256, 56}},  {30, {1, 2}},     {34, {256, 54}},  {35, {256, 66}},
      {39, {32, 17}},   {40, {64, 36}},   {41, {128, 18}},  {42, {64, 18}}};
  return known;
}

void check_gguf(const Ref<Bytes>& file) {
  const Result<ParameterEntries> entries = read_gguf(file, "file");
  if (!entries) return;
  const uint8_t* at = file->data() + 8;
  const auto take = [&]<typename T>(T) {
    at += sizeof(T);
    return number_at<T>(at - sizeof(T));
  };
  const auto text = [&] {
    const uint64_t size = take(uint64_t{});
    at += size;
    return std::string(reinterpret_cast<const char*>(at) - size, size);
  };
  constexpr uint64_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  const uint64_t tensors = take(uint64_t{}), pairs = take(uint64_t{});
  uint64_t alignment = 32;
  for (uint64_t i = 0; i < pairs; ++i) {
    const std::string key = text();
    uint32_t kind = take(uint32_t{});
    const bool is_array = kind == 9;
    if (is_array) kind = take(uint32_t{});
    const uint64_t count = is_array ? take(uint64_t{}) : 1;
    if (key == "general.alignment") alignment = number_at<uint32_t>(at);
    if (kind != 8) at += kSizes[kind] * count;
    for (uint64_t k = 0; kind == 8 && k < count; ++k) text();
  }
  struct Expected {
    std::string name;
    std::optional<uint64_t> length;
    uint64_t offset;
  };
  std::vector<Expected> expected;
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    Expected tensor{.name = text(), .length = {}, .offset = 0};
    if (!names.insert(tensor.name).second) fuzz::finding("two tensors have one name");
    const uint32_t rank = take(uint32_t{});
    uint64_t elements = 1, row = 1;
    for (uint32_t k = 0; k < rank; ++k) {
      const uint64_t dimension = take(uint64_t{});
      if (k == 0) row = dimension;
      elements *= dimension;
    }
    const auto type = take(uint32_t{});
    const auto block = blocks().find(type);
    if (type >= 16 && type <= 18 && row % 256 != 0) {  // in older versions: I8, I16, I32
      tensor.length = elements << (type - 16);
    } else if (block != blocks().end()) {
      tensor.length = elements / block->second.first * block->second.second;
      if (row % block->second.first != 0) fuzz::finding("a block of a tensor lies in two rows");
    }
    tensor.offset = take(uint64_t{});
    expected.push_back(std::move(tensor));
  }
  const uint64_t position = static_cast<uint64_t>(at - file->data());
  const uint64_t data = (position + alignment - 1) / alignment * alignment;
  if (expected.size() != entries->size()) fuzz::finding("another number of tensors");
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, parameter] = (*entries)[i];
    if (name != expected[i].name) fuzz::finding("a tensor of another name");
    if (parameter.trouble.empty() && expected[i].length && parameter.length != *expected[i].length)
      fuzz::finding("a tensor has another number of bytes than its type and shape");
    if (parameter.length > 0 && parameter.bytes.data() != file->data() + data + expected[i].offset)
      fuzz::finding("a tensor is not where its offset says");
  }
}

void check_index(std::span<const uint8_t> bytes) {
  const Result<ShardIndex> index = read_shard_index(bytes, "file");
  if (!index) return;
  const std::optional read = parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!read) return;
  const boost::json::object& map = read->at("weight_map").as_object();
  size_t count = 0;
  for (const auto& [file, tensors] : index->tensors) {
    if (file.empty() || file[0] == '/' || ("/" + file + "/").find("/../") != std::string::npos ||
        file.find('\0') != std::string::npos)
      fuzz::finding("an index leads out of its folder");
    for (const std::string& tensor : tensors) {
      const auto* named = map.if_contains(tensor);
      if (!named || named->as_string() != file) fuzz::finding("a tensor is in another file");
      ++count;
    }
  }
  if (count != map.size()) fuzz::finding("the index has other tensors");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Ref<Bytes> file = Bytes::copy({data, size});
  std::vector<uint8_t> moved(size + 1);
  if (size > 0) std::memcpy(moved.data() + 1, data, size);
  for (const Reader reader : kReaders)
    if (sum(reader, file) != sum(reader, Bytes::borrow({moved.data() + 1, size}, {})))
      fuzz::finding("the same bytes at an odd address are another file");
  check_safetensors(file);
  check_gguf(file);
  check_index(file->span());
  return 0;
}
