// Searches for models, and replaces the list as a whole.
#include "repository.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/json.h"
#include "common/program.h"
#include "route.h"
#include "text/suggest.h"

namespace halyard::tools::serve {

namespace fs = std::filesystem;

namespace {

std::optional<uint64_t> as_number(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Identifies the file and its modification time; "" if there is no file.
std::string stamp_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return "";
  return fmt::format("{}:{}:{}:{}.{};", path, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

std::string stamp_of(const ModelSource& source) {
  std::string stamp = stamp_of(source.file);
  for (const std::string& parameters : source.parameters)
    stamp += stamp_of(parameters.substr(parameters.find('=') + 1));
  return stamp;
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

bool VersionOrder::operator()(const std::string& one, const std::string& two) const {
  const auto first = as_number(one), second = as_number(two);
  if (first && second && *first != *second) return *first < *second;
  if (first.has_value() != second.has_value()) return first.has_value();
  return one < two;
}

Result<ModelSource> parse_model_flag(std::string_view text) {
  const auto wrong = [&] {
    return fail(HALYARD_INVALID_ARGUMENT,
                "--model={}: expected NAME[/VERSION][:FUNCTION]=FILE, such as --model=mul=simple_mul.vmfb; "
                "names have letters, digits, '_', '-' and '.'",
                text);
  };
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) return wrong();
  ModelSource source;
  source.file = text.substr(equals + 1);
  source.version = "1";
  source.is_named = true;
  std::string_view name = text.substr(0, equals);
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
    source.function = name.substr(colon + 1);
    if (source.function.empty()) return wrong();
    name = name.substr(0, colon);
  }
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    source.version = name.substr(slash + 1);
    name = name.substr(0, slash);
  }
  source.name = name;
  if (!is_name(source.name) || !is_name(source.version)) return wrong();
  return source;
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

Repository::Repository(const Runtime& runtime, Scheduler& scheduler, Log& log, std::vector<ModelSource> named,
                       std::string folder, std::map<std::string, uint64_t> batches)
    : runtime_(runtime),
      scheduler_(scheduler),
      log_(log),
      named_(std::move(named)),
      folder_(std::move(folder)),
      batches_(std::move(batches)),
      models_(std::make_shared<Models>()) {}

std::vector<FoundModel> Repository::look() const {
  std::vector<FoundModel> found;
  for (const ModelSource& source : named_) {
    FoundModel each{.source = source};
    each.source.parameters = runtime_.flags[flag::parameters];
    each.stamp = stamp_of(each.source);
    found.push_back(std::move(each));
  }
  if (!folder_.empty()) {
    if (auto models = find_models(folder_)) {
      found.insert(found.end(), std::make_move_iterator(models->begin()),
                   std::make_move_iterator(models->end()));
    } else {
      log_.error("folder_failed", {{"folder", folder_}, {"error", models.error().line()}});
    }
  }
  for (FoundModel& each : found) {
    if (each.source.batch != 0) continue;
    auto batch = batches_.find(each.source.name);
    each.source.needs_batches = batch != batches_.end();
    if (batch == batches_.end()) batch = batches_.find("");
    if (batch != batches_.end()) each.source.batch = batch->second;
  }
  return found;
}

// Refuses a --batch that would have no effect: for a name that no model has, for a model without support, or
// for all models if none supports batches.
Result<> Repository::check_batches(const Models& models) const {
  std::vector<std::string_view> names;
  for (const auto& [name, versions] : models) names.push_back(name);
  for (const auto& [name, rows] : batches_) {
    if (name.empty()) continue;
    const auto found = models.find(name);
    if (found == models.end())
      return fail(HALYARD_INVALID_ARGUMENT, "--batch={}={}: there is no model '{}'{}", name, rows, name,
                  names.empty() ? "; the folder has no models" : did_you_mean(name, names));
    for (const auto& [version, entry] : found->second)
      if (entry.model) TOOL_TRY(entry.model->check_batches());
  }
  const auto of_all = batches_.find("");
  if (of_all == batches_.end() || of_all->second <= 1) return {};
  std::string reason;
  for (const auto& [name, versions] : models) {
    for (const auto& [version, entry] : versions) {
      if (!entry.model) continue;
      const std::string why = why_no_batches(entry.model->spec());
      if (why.empty()) return {};
      if (reason.empty()) reason = fmt::format("of model '{}', {}", name, why);
    }
  }
  if (reason.empty()) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "--batch={}: no model can have batches: {}; {}", of_all->second,
              reason, kExpectedForBatches);
}

Result<> Repository::prepare(Model& model, const std::shared_ptr<Devices>& devices) {
  TOOL_TRY(model.check_batches());
  TOOL_TRY(model.prepare(runtime_, devices));
  scheduler_.add_worker(model, TOOL_TRY(model.make_worker(runtime_)));
  model.has_contexts = true;
  return {};
}

// The devices. If one is lost, opens them again if possible.
std::shared_ptr<Devices> Repository::reopened() {
  if (!devices_->is_lost()) return devices_;
  std::vector<Module> modules;
  for (const auto& [name, versions] : *models())
    for (const auto& [version, entry] : versions)
      if (entry.model) modules.push_back(entry.model->module());
  auto opened = Devices::open(runtime_.flags, runtime_.program, std::move(modules));
  if (opened) {
    log_.info("devices_opened", {{"devices", (*opened)->list().size()}});
    return *std::move(opened);
  }
  runtime_.metrics.failed_reloads.fetch_add(1, std::memory_order_relaxed);
  log_.error("devices_failed", {{"error", opened.error().line()}});
  return devices_;
}

Result<> Repository::start() {
  if (!folder_.empty()) TOOL_TRY(entries_of(folder_));
  Models models;
  std::vector<Module> modules;
  for (FoundModel& each : look()) {
    Entry entry{.source = each.source, .stamp = each.stamp};
    if (!each.failure) {
      auto loaded = Model::load(runtime_, each.source);
      if (loaded) {
        entry.model = *std::move(loaded);
        modules.push_back(entry.model->module());
      } else {
        each.failure = std::move(loaded).error();
      }
    }
    if (each.failure) {
      if (each.source.is_named) return std::unexpected(*std::move(each.failure));
      entry.why = each.failure->line();
    }
    seen_[each.source.file] = each.stamp;
    if (!models[each.source.name].emplace(each.source.version, std::move(entry)).second)
      return fail(HALYARD_ALREADY_EXISTS, "model '{}' has version '{}' twice; give them different versions",
                  each.source.name, each.source.version);
  }
  TOOL_TRY(check_batches(models));
  auto devices = TOOL_TRY(Devices::open(runtime_.flags, runtime_.program, std::move(modules)));
  for (auto& [name, versions] : models) {
    for (auto& [version, entry] : versions) {
      if (!entry.model) continue;
      if (auto done = prepare(*entry.model, devices); !done) {
        if (entry.source.is_named) return done;
        entry.why = done.error().line();
        entry.model = nullptr;
      }
    }
  }
  publish(std::move(models), std::move(devices));
  return {};
}

void Repository::reload(bool only_if_steady) {
  const std::shared_ptr<const Models> before = this->models();
  const std::shared_ptr<Devices> devices = reopened();
  Models models;
  bool has_changed = false;
  size_t count = 0;
  for (FoundModel& each : look()) {
    const Entry* old = nullptr;
    if (const auto versions = before->find(each.source.name); versions != before->end())
      if (const auto version = versions->second.find(each.source.version); version != versions->second.end())
        old = &version->second;
    Entry entry{.source = each.source, .stamp = each.stamp};
    const bool is_stranded = old && old->model && old->model->has_lost_device() && !devices->is_lost();
    const bool is_same = old && old->source == each.source && old->stamp == each.stamp && !is_stranded;
    const bool is_steady = std::exchange(seen_[each.source.file], each.stamp) == each.stamp;
    ++count;
    if (is_same || (only_if_steady && !is_steady && !is_stranded)) {
      if (!old) continue;
      entry = *old;
    } else {
      has_changed = true;
      if (!each.failure) {
        auto loaded = Model::load(runtime_, each.source);
        Result<> done = loaded ? prepare(**loaded, devices) : std::unexpected(loaded.error());
        if (done) {
          entry.model = *std::move(loaded);
          log_.info("model_loaded", {{"model", each.source.name}, {"version", each.source.version}});
        } else {
          each.failure = std::move(done).error();
        }
      }
      if (each.failure) {
        runtime_.metrics.failed_reloads.fetch_add(1, std::memory_order_relaxed);
        log_.error(
            "model_failed",
            {{"model", each.source.name}, {"version", each.source.version}, {"error", each.failure->line()}});
        entry.why = each.failure->line();
        if (old) entry.model = old->model;  // the old model stays
      }
    }
    models[each.source.name].emplace(each.source.version, std::move(entry));
  }
  size_t count_before = 0;
  for (const auto& [name, versions] : *before) count_before += versions.size();
  if (only_if_steady && !has_changed && count == count_before) return;
  runtime_.metrics.reloads.fetch_add(1, std::memory_order_relaxed);
  log_.info("reloaded", {{"models", models.size()}});
  publish(std::move(models), devices);
}

void Repository::publish(Models models, std::shared_ptr<Devices> devices) {
  auto published = std::make_shared<const Models>(std::move(models));
  const std::lock_guard lock(mutex_);
  models_.swap(published);
  devices_.swap(devices);
}

std::shared_ptr<const Devices> Repository::devices() const {
  const std::lock_guard lock(mutex_);
  return devices_;
}

std::shared_ptr<const Repository::Models> Repository::models() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

Result<std::shared_ptr<Model>> Repository::find(const std::string& name, const std::string& version) const {
  const auto models = this->models();
  const auto versions = models->find(name);
  if (versions == models->end())
    return fail(HALYARD_NOT_FOUND, "there is no model '{}'; GET /v2/models lists them", name);
  const Entry* found = nullptr;
  if (version.empty()) {
    // The latest version that works.
    for (const auto& [each, entry] : versions->second)
      if (entry.model || !found) found = &entry;
  } else if (const auto place = versions->second.find(version); place != versions->second.end()) {
    found = &place->second;
  } else {
    return fail(HALYARD_NOT_FOUND, "model '{}' has no version '{}'; GET /v2/models/{} lists them", name,
                version, name);
  }
  if (!found->model)
    return fail(HALYARD_UNAVAILABLE,
                "version '{}' of model '{}' could not be loaded; the server's log has the reason",
                found->source.version, name);
  return found->model;
}

bool Repository::is_ready() const {
  for (const auto& [name, versions] : *models())
    for (const auto& [version, entry] : versions)
      if (!entry.model || !entry.model->is_ready()) return false;
  return true;
}

}  // namespace halyard::tools::serve
