// Loads models, and replaces the list as a whole.
#include "repository.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "common/program.h"
#include "route.h"
#include "text/suggest.h"

namespace halyard::tools::serve {

namespace {

std::optional<uint64_t> as_number(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
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
  if (!folder_.empty()) TOOL_TRY(find_models(folder_));
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

// The entry of a version whose files are new or have changed. If it does not load, the old model stays.
Repository::Entry Repository::loaded(const FoundModel& found, const Entry* old,
                                     const std::shared_ptr<Devices>& devices) {
  Entry entry{.source = found.source, .stamp = found.stamp};
  std::optional<Failure> failure = found.failure;
  if (!failure) {
    auto loaded = Model::load(runtime_, found.source);
    Result<> done = loaded ? prepare(**loaded, devices) : std::unexpected(loaded.error());
    if (done) {
      entry.model = *std::move(loaded);
      log_.info("model_loaded", {{"model", found.source.name}, {"version", found.source.version}});
      return entry;
    }
    failure = std::move(done).error();
  }
  runtime_.metrics.failed_reloads.fetch_add(1, std::memory_order_relaxed);
  log_.error("model_failed",
             {{"model", found.source.name}, {"version", found.source.version}, {"error", failure->line()}});
  entry.why = failure->line();
  if (old) entry.model = old->model;
  return entry;
}

const Repository::Entry* Repository::find_entry(const Models& models, const ModelSource& source) {
  const auto versions = models.find(source.name);
  if (versions == models.end()) return nullptr;
  const auto version = versions->second.find(source.version);
  return version == versions->second.end() ? nullptr : &version->second;
}

// Whether the entry needs no loading: its files are the same, and its device works if one can be had.
bool Repository::is_current(const Entry* entry, const FoundModel& found, const Devices& devices) {
  return entry && entry->source == found.source && entry->stamp == found.stamp &&
         !is_stranded(entry, devices);
}
bool Repository::is_stranded(const Entry* entry, const Devices& devices) {
  return entry && entry->model && entry->model->has_lost_device() && !devices.is_lost();
}

void Repository::reload(bool only_if_steady) {
  const std::shared_ptr<const Models> before = this->models();
  const std::shared_ptr<Devices> devices = reopened();
  Models models;
  bool has_changed = false;
  size_t count = 0;
  for (FoundModel& each : look()) {
    ++count;
    const Entry* const old = find_entry(*before, each.source);
    const bool is_steady = std::exchange(seen_[each.source.file], each.stamp) == each.stamp;
    if (unloaded_.contains(each.source.name)) {
      models[each.source.name].emplace(each.source.version, unloaded_entry(each));
    } else if (is_current(old, each, *devices) ||
               (only_if_steady && !is_steady && !is_stranded(old, *devices))) {
      if (old) models[each.source.name].emplace(each.source.version, *old);
    } else {
      has_changed = true;
      models[each.source.name].emplace(each.source.version, loaded(each, old, devices));
    }
  }
  size_t count_before = 0;
  for (const auto& [name, versions] : *before) count_before += versions.size();
  if (only_if_steady && !has_changed && count == count_before) return;
  runtime_.metrics.reloads.fetch_add(1, std::memory_order_relaxed);
  log_.info("reloaded", {{"models", models.size()}});
  publish(std::move(models), devices);
}

Repository::Entry Repository::unloaded_entry(const FoundModel& found) {
  return {.model = nullptr, .why = "unloaded", .source = found.source, .stamp = "", .is_unloaded = true};
}

Result<> Repository::load(const std::string& name) {
  const std::shared_ptr<const Models> before = this->models();
  const std::shared_ptr<Devices> devices = reopened();
  std::vector<FoundModel> found = look();
  std::erase_if(found, [&](const FoundModel& each) { return each.source.name != name; });
  if (found.empty())
    return fail(HALYARD_NOT_FOUND,
                "there is no model '{}' in the folder or in the flags; POST /v2/repository/index lists them",
                name);
  unloaded_.erase(name);
  Models models = *before;
  Versions versions;
  std::string failures;
  for (const FoundModel& each : found) {
    const Entry* const old = find_entry(*before, each.source);
    seen_[each.source.file] = each.stamp;
    const bool is_good = is_current(old, each, *devices) && old->why.empty();
    Entry entry = is_good ? *old : loaded(each, old, devices);
    if (!entry.why.empty())
      failures +=
          fmt::format("{}version '{}': {}", failures.empty() ? "" : "; ", each.source.version, entry.why);
    versions.emplace(each.source.version, std::move(entry));
  }
  models[name] = std::move(versions);
  publish(std::move(models), devices);
  if (failures.empty()) return {};
  return fail(HALYARD_FAILED_PRECONDITION, "model '{}' could not be loaded: {}", name, failures);
}

Result<> Repository::unload(const std::string& name) {
  Models models = *this->models();
  const auto versions = models.find(name);
  if (versions == models.end())
    return fail(HALYARD_NOT_FOUND, "there is no model '{}'; POST /v2/repository/index lists them", name);
  for (auto& [version, entry] : versions->second)
    entry = unloaded_entry({.source = entry.source, .stamp = "", .failure = std::nullopt});
  unloaded_.insert(name);
  log_.info("model_unloaded", {{"model", name}});
  publish(std::move(models), devices_);
  return {};
}

std::vector<Repository::State> Repository::index() const {
  std::vector<State> states;
  for (const auto& [name, versions] : *models()) {
    for (const auto& [version, entry] : versions) {
      State state{.name = name,
                  .version = version,
                  .is_ready = entry.model && entry.model->is_ready(),
                  .reason = entry.why};
      if (entry.model && !state.is_ready)
        state.reason = entry.model->has_lost_device() ? "the device is lost" : "no context could be created";
      states.push_back(std::move(state));
    }
  }
  return states;
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
  if (found->is_unloaded)
    return fail(HALYARD_NOT_FOUND, "model '{}' is unloaded; POST /v2/repository/models/{}/load loads it",
                name, name);
  if (!found->model)
    return fail(HALYARD_UNAVAILABLE,
                "version '{}' of model '{}' could not be loaded; the server's log has the reason",
                found->source.version, name);
  return found->model;
}

}  // namespace halyard::tools::serve
