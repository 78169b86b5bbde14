// Reads the folder, its versions, and their model.json.
#include "model_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/json.h"
#include "route.h"

namespace halyard::tools::serve {

namespace fs = std::filesystem;

namespace {

// Identifies the file and its modification time; "" if there is no file.
std::string stamp_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return "";
  return fmt::format("{}:{}:{}:{}.{};", path, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

// The entries of a folder, sorted, without hidden ones.
Result<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (!entry->path().filename().native().starts_with('.')) entries.push_back(entry->path());
  if (error)
    return fail(HALYARD_NOT_FOUND, "cannot read the folder '{}': {}; check the path", folder.native(),
                error.message());
  std::ranges::sort(entries);
  return entries;
}

bool is_module(const fs::path& path) { return path.extension() == ".vmfb" || path.extension() == ".vmasm"; }
bool is_parameters(const fs::path& path) {
  return path.extension() == ".irpa" || path.extension() == ".gguf" || path.extension() == ".safetensors";
}

// Only regular files, because reading a pipe or a device may never end.
Result<> check_regular(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::is_regular_file(path, error)) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "'{}' is not a regular file; expected one in a folder of models",
              path.native());
}

Result<> read_settings(const fs::path& path, ModelSource& source) {
  TOOL_TRY(check_regular(path));
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.good() && !file.eof()) return fail(HALYARD_NOT_FOUND, "cannot read '{}'", path.native());
  const auto wrong = [&](std::string_view what) {
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}': {}; expected for example {{\"function\": \"main\", \"batch\": 8, \"parameters\": "
                "[{{\"scope\": \"\", "
                "\"file\": \"weights.irpa\"}}]}}",
                path.native(), what);
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return wrong("not a JSON object");
  for (const auto& [key, value] : json.items()) {
    if (key == "function" && value.is_string()) {
      source.function = value;
    } else if (key == "batch" && value.is_number_unsigned()) {
      source.batch = value;
      source.needs_batches = true;
    } else if (key == "parameters" && value.is_array()) {
      source.parameters.clear();
      for (const Json& each : value) {
        if (!each.is_object() || !each.contains("file") || !each["file"].is_string())
          return wrong("an entry of \"parameters\" has no \"file\"");
        const Json scope = each.value("scope", Json(""));
        if (!scope.is_string()) return wrong("a \"scope\" is not a string");
        source.parameters.push_back(scope.get<std::string>() + "=" +
                                    (path.parent_path() / each["file"].get<std::string>()).native());
      }
    } else {
      return wrong(fmt::format("the member \"{}\" is unknown or has another type", key));
    }
  }
  return {};
}

Result<> read_version(const fs::path& folder, ModelSource& source) {
  std::vector<fs::path> modules;
  for (const fs::path& path : TOOL_TRY(entries_of(folder))) {
    if (is_module(path)) modules.push_back(path);
    if (is_parameters(path)) source.parameters.push_back(path.stem().native() + "=" + path.native());
  }
  if (modules.size() > 1) std::erase_if(modules, [](const fs::path& path) { return path.stem() != "model"; });
  if (modules.size() != 1)
    return fail(HALYARD_NOT_FOUND, "'{}' has {} modules; expected one, or one with the name model.vmfb",
                folder.native(), modules.empty() ? "no" : "several");
  source.file = modules.front().native();
  TOOL_TRY(check_regular(source.file));
  if (const fs::path settings = folder / "model.json"; fs::exists(settings))
    TOOL_TRY(read_settings(settings, source));
  for (const std::string& parameters : source.parameters)
    TOOL_TRY(check_regular(parameters.substr(parameters.find('=') + 1)));
  return {};
}

}  // namespace

std::string stamp_of(const ModelSource& source) {
  std::string stamp = stamp_of(source.file);
  for (const std::string& parameters : source.parameters)
    stamp += stamp_of(parameters.substr(parameters.find('=') + 1));
  return stamp;
}

Result<std::vector<FoundModel>> find_models(const std::string& folder) {
  std::vector<FoundModel> found;
  for (const fs::path& model : TOOL_TRY(entries_of(folder))) {
    if (!fs::is_directory(model) || !is_name(model.filename().native())) continue;
    const auto versions = entries_of(model);
    if (!versions) continue;
    for (const fs::path& version : *versions) {
      if (!fs::is_directory(version) || !is_name(version.filename().native())) continue;
      FoundModel each;
      each.source.name = model.filename();
      each.source.version = version.filename();
      if (auto read = read_version(version, each.source); !read) each.failure = std::move(read).error();
      each.stamp = stamp_of(each.source) + stamp_of((version / "model.json").native());
      found.push_back(std::move(each));
    }
  }
  return found;
}

}  // namespace halyard::tools::serve
