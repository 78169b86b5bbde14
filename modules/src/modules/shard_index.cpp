#include "modules/shard_index.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "modules/json_events.h"

namespace halyard::modules {
namespace {

using Kind = JsonEvent::Kind;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Checks only the name. A link in the folder may lead elsewhere, because caches of models consist of such
// links.
bool lies_below(std::string_view file) {
  const std::filesystem::path path(file);
  return !file.empty() && file.find('\0') == file.npos && path.is_relative() &&
         std::ranges::find(path, std::filesystem::path("..")) == path.end();
}

}  // namespace

bool is_shard_index(std::string_view path) {
  const std::string lower = lower_case(std::filesystem::path(path).filename().native());
  return lower.contains(".safetensors.index.") && lower.ends_with(".json");
}

Result<ShardIndex> read_shard_index(std::span<const uint8_t> bytes, std::string_view path) {
  ShardIndex index;
  std::string name;
  bool in_map = false, has_map = false;
  const auto take = [&](const JsonEvent& event) -> Result<> {
    if (event.depth == 0 && event.kind != Kind::object && event.kind != Kind::end)
      return fail(Code::INVALID_ARGUMENT, "expected an object with the member weight_map");
    if (event.depth == 1 && event.kind == Kind::key) {
      in_map = event.text == "weight_map";
      if (in_map && std::exchange(has_map, true))
        return fail(Code::INVALID_ARGUMENT, "weight_map occurs twice");
    } else if (event.depth == 1 && in_map && event.kind != Kind::object && event.kind != Kind::end) {
      return fail(Code::INVALID_ARGUMENT, "weight_map is not an object; expected the file of each tensor");
    } else if (event.depth == 2 && in_map && event.kind == Kind::key) {
      name = event.text;
    } else if (event.depth == 2 && in_map) {
      if (event.kind != Kind::string)
        return fail(Code::INVALID_ARGUMENT, "tensor '{}': the name of its file is not a string", name);
      if (!lies_below(event.text))
        return fail(Code::INVALID_ARGUMENT,
                    "tensor '{}' is in '{}'; expected a file in the folder of the index", name, event.text);
      if (!lower_case(event.text).ends_with(".safetensors"))
        return fail(Code::INVALID_ARGUMENT, "tensor '{}' is in '{}'; expected a .safetensors file", name,
                    event.text);
      if (!index.file_by_tensor.try_emplace(name, event.text).second)
        return fail(Code::INVALID_ARGUMENT, "tensor '{}' occurs twice", name);
      index.tensors[std::string(event.text)].push_back(name);
    }
    return {};
  };
  Result<> read = read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, take);
  if (read && !has_map) read = fail(Code::INVALID_ARGUMENT, "weight_map is missing");
  if (!read) return fail(read.error().code(), "index of shards '{}': {}", path, read.error().message());
  return index;
}

Result<> check_shard(const ShardIndex& index, std::string_view path, const std::string& shard,
                     const ParameterEntries& entries) {
  std::vector<std::string_view> there;
  for (const auto& [name, parameter] : entries) there.push_back(name);
  std::ranges::sort(there);
  for (const std::string_view name : there) {
    const auto found = index.file_by_tensor.find(name);
    if (found != index.file_by_tensor.end() && found->second != shard)
      return fail(
          Code::INVALID_ARGUMENT,
          "index of shards '{}': tensor '{}' is assigned to '{}', but '{}' contains it; the files do not "
          "belong to one model",
          path, name, found->second, shard);
  }
  for (const std::string& name : index.tensors.at(shard))
    if (!std::ranges::binary_search(there, std::string_view(name)))
      return fail(
          Code::INVALID_ARGUMENT,
          "index of shards '{}': tensor '{}' is assigned to '{}', which does not contain it; the files do "
          "not belong to one model, or were cut off",
          path, name, shard);
  return {};
}

}  // namespace halyard::modules
