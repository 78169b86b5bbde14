// Scopes: loads their files, and selects among entries with the same name.
#include "modules/parameters.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/foreign_file.h"
#include "modules/shard_index.h"

namespace halyard::modules {

const ObjectType ParameterScope::kType = object_type<ParameterScope>("parameter_scope");

namespace {

using Reader = Result<ParameterEntries> (*)(const Ref<Bytes>& file, std::string_view path);

// Selects the reader by extension.
struct Format {
  std::string_view extension;
  Reader reader;
};
constexpr Format kFormats[] = {
    {".irpa", &read_irpa}, {".gguf", &read_gguf}, {".safetensors", &read_safetensors}};

Result<const Format*> format_of(const std::string& path) {
  std::string lower = path;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* format =
      std::ranges::find_if(kFormats, [&](const Format& known) { return lower.ends_with(known.extension); });
  if (format == std::end(kFormats))
    return fail(Code::UNIMPLEMENTED,
                "'{}' is not a parameter file; expected a name that ends in .irpa, .gguf or "
                ".safetensors, or in .safetensors.index.json",
                path);
  return format;
}

Result<ParameterEntries> read_entries(const Format& format, const std::string& path, const Ref<Bytes>& file) {
  Result<ParameterEntries> entries = format.reader(file, path);
  if (entries) return entries;
  // Recognises foreign formats only after a failure, because a valid file may begin with any bytes.
  const std::optional<ForeignFile> foreign = foreign_file(file->span(), format.extension);
  if (!foreign) return entries;
  return fail(Code::INVALID_ARGUMENT, "'{}' is {}, not a {} file; {}", path, foreign->is, format.extension,
              foreign->advice);
}

Result<Ref<Bytes>> map_shard(const std::string& index, const std::string& path) {
  Result<Ref<Bytes>> file = Bytes::map_file(path);
  if (file) return file;
  return fail(file.error().code(), "index of shards '{}': {}", index, file.error().message());
}

// A file to read; the order determines precedence.
struct Source {
  std::string scope;
  std::string path;
  Ref<Bytes> bytes;
  std::shared_ptr<const ShardIndex> index;  // the index that lists it as a shard; null: none
  std::string index_path, shard;
};

Result<> add_sources(const ParameterFile& file, std::vector<Source>& sources) {
  if (!is_shard_index(file.path)) {
    HALYARD_TRY(format_of(file.path));
    sources.push_back({file.scope, file.path, HALYARD_TRY(Bytes::map_file(file.path)), nullptr, {}, {}});
    return {};
  }
  const Ref<Bytes> text = HALYARD_TRY(Bytes::map_file(file.path));
  Result<ShardIndex> read = read_shard_index(text->span(), file.path);
  if (!read) {
    if (const auto foreign = foreign_file(text->span(), ".json"))
      return fail(Code::INVALID_ARGUMENT, "'{}' is {}, not an index of shards; {}", file.path, foreign->is,
                  foreign->advice);
    return std::unexpected(std::move(read).error());
  }
  const auto index = std::make_shared<const ShardIndex>(std::move(*read));
  const std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
  for (const auto& [shard, tensors] : index->tensors) {
    std::string path = (folder / shard).native();
    Ref<Bytes> bytes = HALYARD_TRY(map_shard(file.path, path));
    sources.push_back({file.scope, std::move(path), std::move(bytes), index, file.path, shard});
  }
  return {};
}

}  // namespace

Result<> refuse_repeated_names(const ParameterEntries& entries, std::string_view path) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const auto& [name, parameter] : entries) names.push_back(name);
  std::ranges::sort(names);
  const auto repeated = std::ranges::adjacent_find(names);
  if (repeated == names.end()) return {};
  return fail(Code::INVALID_ARGUMENT,
              "parameter file '{}': two tensors have the name '{}'; write the file again with one of them",
              path, *repeated);
}

Result<> ParameterScope::add(const std::string& path, const Ref<Bytes>& file) {
  return add(path, HALYARD_TRY(read_entries(*HALYARD_TRY(format_of(path)), path, file)));
}

Result<> ParameterScope::add(const std::string& path,
                             std::vector<std::pair<std::string, Parameter>> entries) {
  const auto file = static_cast<uint32_t>(paths_.size());
  paths_.push_back(path);
  for (auto& [key, parameter] : entries) {
    const auto [place, is_new] = parameters_.try_emplace(std::move(key), Entry{std::move(parameter), file});
    Entry& first = place->second;
    if (!is_new && first.parameter.other.empty())
      first.parameter.other =
          first.file == file
              ? fmt::format("'{}' contains it twice; the first one is used", path)
              : fmt::format("'{}' and '{}' contain it; the first one is used", paths_[first.file], path);
  }
  return {};
}

ParameterScope::Found ParameterScope::find(std::string_view key) const {
  const auto found = parameters_.find(key);
  if (found == parameters_.end()) return {};
  return {found->first, &found->second.parameter, paths_[found->second.file]};
}

std::vector<std::string_view> ParameterScope::keys() const {
  std::vector<std::string_view> result;
  for (const auto& [key, entry] : parameters_) result.push_back(key);
  return result;
}

Result<ParameterScopes> load_parameters(std::span<const ParameterFile> files, ParameterMode mode,
                                        const ParameterProgress& progress) {
  std::vector<Source> sources;
  for (const ParameterFile& file : files) HALYARD_TRY(add_sources(file, sources));
  uint64_t total = 0;
  for (const Source& source : sources) total += source.bytes->size();
  ParameterScopes scopes;
  for (const ParameterFile& file : files) scopes.try_emplace(file.scope, make<ParameterScope>());
  uint64_t done = 0;
  for (Source& source : sources) {
    Ref<Bytes>& bytes = source.bytes;
    if (mode == ParameterMode::preload) {
      const auto copied = [&](size_t size) { return progress ? progress(done + size, total) : Result<>(); };
      bytes = HALYARD_TRY(Bytes::copy(bytes->span(), copied));
      done += bytes->size();
    }
    ParameterEntries entries =
        HALYARD_TRY(read_entries(*HALYARD_TRY(format_of(source.path)), source.path, bytes));
    if (source.index) HALYARD_TRY(check_shard(*source.index, source.index_path, source.shard, entries));
    HALYARD_TRY(scopes.find(source.scope)->second->add(source.path, std::move(entries)));
  }
  return scopes;
}

}  // namespace halyard::modules
