// Scopes: their files, and the choice among several entries of a name.
#include "modules/parameters.h"

#include <algorithm>
#include <cctype>

#include "modules/parameter_archive.h"

namespace halyard::modules {

const ObjectType ParameterScope::kType = object_type<ParameterScope>("parameter_scope");

namespace {

using Reader = Result<ParameterEntries> (*)(const Ref<Bytes>& file, std::string_view path);

// By extension.
struct Format {
  std::string_view extension;
  Reader reader;
};
constexpr Format kFormats[] = {
    {".irpa", &read_irpa}, {".gguf", &read_gguf}, {".safetensors", &read_safetensors}};

Result<Reader> reader_for(const std::string& path) {
  std::string lower = path;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* format =
      std::ranges::find_if(kFormats, [&](const Format& known) { return lower.ends_with(known.extension); });
  if (format == std::end(kFormats))
    return fail(Code::UNIMPLEMENTED,
                "'{}' does not look like a parameter file; expected a name that ends in .irpa, .gguf or "
                ".safetensors",
                path);
  return format->reader;
}

}  // namespace

Result<> ParameterScope::add_file(const std::string& path, ParameterMode mode) {
  Ref<Bytes> file = HALYARD_TRY(Bytes::map_file(path));
  if (mode == ParameterMode::preload) file = Bytes::copy(file->span());
  return add(path, file);
}

Result<> ParameterScope::add(const std::string& path, const Ref<Bytes>& file) {
  const Reader read = HALYARD_TRY(reader_for(path));
  for (auto& [key, parameter] : HALYARD_TRY(read(file, path)))
    parameters_.try_emplace(std::move(key), std::move(parameter));
  return {};
}

const Parameter* ParameterScope::find(std::string_view key) const {
  const auto found = parameters_.find(key);
  return found == parameters_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> ParameterScope::keys() const {
  std::vector<std::string_view> result;
  for (const auto& [key, parameter] : parameters_) result.push_back(key);
  return result;
}

Result<ParameterScopes> load_parameters(std::span<const ParameterFile> files, ParameterMode mode,
                                        const ParameterProgress& progress) {
  std::vector<Ref<Bytes>> contents;
  uint64_t total = 0;
  for (const ParameterFile& file : files) {
    HALYARD_TRY(reader_for(file.path));
    contents.push_back(HALYARD_TRY(Bytes::map_file(file.path)));
    total += contents.back()->size();
  }
  ParameterScopes scopes;
  uint64_t done = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    Ref<Bytes>& file = contents[i];
    if (mode == ParameterMode::preload) {
      const auto copied = [&](size_t size) { return progress ? progress(done + size, total) : Result<>(); };
      file = HALYARD_TRY(Bytes::copy(file->span(), copied));
      done += file->size();
    }
    Ref<ParameterScope>& scope = scopes[files[i].scope];
    if (!scope) scope = make<ParameterScope>();
    HALYARD_TRY(scope->add(files[i].path, file));
  }
  return scopes;
}

}  // namespace halyard::modules
