// Loads plugins and resolves imports.
#include "plugins.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <ranges>
#include <system_error>

#include "library.h"

namespace halyard::local {

namespace {

constexpr std::string_view kEmbeddedPrefix = "embedded:";
constexpr std::string_view kEmbeddedSuffix = ".sos";
constexpr abi::PluginStatus kMaxCode = 31;

Code code_of(abi::PluginStatus status) {
  return status <= kMaxCode ? failure_code(static_cast<uint32_t>(status)) : Code::UNKNOWN;
}

// Streams of C, because streams of C++ link locales, which are most of a small static program.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Result<File> open_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "rbe"));
  if (!file) return fail(Code::NOT_FOUND, "cannot read the file: {}", std::generic_category().message(errno));
  return file;
}

Result<std::vector<uint8_t>> read_file(const std::string& path) {
  const File file = HALYARD_TRY(open_file(path));
  std::vector<uint8_t> bytes;
  uint8_t part[4096];
  while (const size_t size = std::fread(part, 1, sizeof part, file.get()))
    bytes.insert(bytes.end(), part, part + size);
  if (std::ferror(file.get()))
    return fail(Code::NOT_FOUND, "cannot read the file: {}", std::generic_category().message(errno));
  return bytes;
}

Result<std::unique_ptr<NativeCode>> load_code(std::string_view place) {
  const bool prefixed = place.starts_with(kEmbeddedPrefix);
  if (prefixed) place.remove_prefix(kEmbeddedPrefix.size());
  std::string path(place);
  if (prefixed || place.ends_with(kEmbeddedSuffix))
    return load_embedded_library(HALYARD_TRY(read_file(path)));
  // Without a slash, the loader would search the system's folders for the name.
  if (!place.contains('/')) path = "./" + path;
  HALYARD_TRY(open_file(path));
  return load_system_library_file(path);
}

// Parses the "key=value" pairs after '&'.
std::vector<abi::PluginOption> parse_options(std::string_view text) {
  std::vector<abi::PluginOption> options;
  while (!text.empty()) {
    const std::string_view option = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(option.size() + 1, text.size()));
    const std::string_view key = option.substr(0, option.find('='));
    const std::string_view value = option.substr(std::min(key.size() + 1, option.size()));
    options.push_back({key.data(), key.size(), value.data(), value.size()});
  }
  return options;
}

Result<const abi::Plugin*> query_plugin(const NativeCode& code) {
  auto* query = code.find_function<abi::PluginQuery>(abi::kPluginQuery);
  if (!query)
    return fail(Code::FAILED_PRECONDITION, "it has no function '{}', so it is no plugin", abi::kPluginQuery);
  const abi::Plugin* plugin = query(abi::kPluginVersion, nullptr);
  if (!plugin || !plugin->header || plugin->header->version != abi::kPluginVersion)
    return fail(Code::FAILED_PRECONDITION, "it is a plugin of version {}; expected version {}",
                plugin && plugin->header ? plugin->header->version : 0, abi::kPluginVersion);
  if (!plugin->load || !plugin->unload || !plugin->resolve)
    return fail(Code::FAILED_PRECONDITION, "it lacks one of its functions: load, unload, resolve");
  HALYARD_TRY(check_sanitizer(plugin->header->sanitizer, "it"));
  return plugin;
}

}  // namespace

Plugins::~Plugins() {
  for (const Loaded& each : std::views::reverse(plugins_)) each.plugin->unload(each.self);
}

Result<> Plugins::load(std::string_view text, const abi::Environment& environment) {
  const std::string_view place = text.substr(0, text.find('&'));
  const auto loaded = [&]() -> Result<> {
    std::unique_ptr<NativeCode> code = HALYARD_TRY(load_code(place));
    const abi::Plugin* plugin = HALYARD_TRY(query_plugin(*code));
    const std::vector<abi::PluginOption> options =
        parse_options(text.substr(std::min(place.size() + 1, text.size())));
    // After the plugin's load() nothing may fail.
    Loaded made = {std::string(place), std::move(code), plugin, nullptr};
    plugins_.reserve(plugins_.size() + 1);
    if (const abi::PluginStatus status =
            plugin->load(&environment, options.size(), options.data(), &made.self))
      return fail(code_of(status), "it refuses to be loaded (status {:#x})", status);
    plugins_.push_back(std::move(made));
    return {};
  }();
  if (loaded) return {};
  return fail(loaded.error().code(), "executable plugin '{}' cannot be used: {}", place,
              loaded.error().message());
}

Result<Plugins::Import> Plugins::resolve(const char* name) const {
  const bool optional = name[0] == '?';
  Status failure;
  for (const Loaded& each : plugins_) {
    Import import;
    const abi::ResolveParameters parameters = {1, &name, &import.function, &import.context};
    uint32_t resolution = 0;
    const abi::PluginStatus status = each.plugin->resolve(each.self, &parameters, &resolution);
    if (status == 0 && import.function) return import;
    // NOT_FOUND: try the next plugin.
    if (status != 0 && code_of(status) != Code::NOT_FOUND && failure.ok())
      failure =
          Status(code_of(status), fmt::format("executable plugin '{}' fails to resolve '{}' (status {:#x})",
                                              each.path, name, status));
  }
  if (!failure.ok()) return std::unexpected(std::move(failure));
  if (optional) return Import();
  return fail(Code::NOT_FOUND,
              "the executable imports '{}', which {}; name a plugin that has it (--executable_plugin=FILE)",
              name,
              plugins_.empty() ? "no plugin provides, since there is none" : "none of the plugins provides");
}

}  // namespace halyard::local
