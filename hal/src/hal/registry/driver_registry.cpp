// Searches for drivers, chooses a driver for each kind, and records why others are refused.
#include "hal/registry/driver_registry.h"

#include <dirent.h>
#include <fmt/ranges.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "hal/device/callback_scope.h"
#include "text/suggest.h"

namespace halyard::hal {

const ObjectType DriverRegistry::kType = object_type<DriverRegistry>("hal.driver_registry");

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFilePrefix = "halyard-driver-";
constexpr std::string_view kFileSuffix = ".so";

bool is_driver_file(std::string_view name) {
  return name.size() > kFilePrefix.size() + kFileSuffix.size() && name.starts_with(kFilePrefix) &&
         name.ends_with(kFileSuffix);
}

// NAME of halyard-driver-NAME.so; empty for other names.
std::string library_of_file(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (!is_driver_file(name)) return {};
  return name.substr(kFilePrefix.size(), name.size() - kFilePrefix.size() - kFileSuffix.size());
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// The user who starts a set-uid program must not choose the code that it runs.
Status set_uid() {
  return {Code::PERMISSION_DENIED,
          "this program has more rights than the user who started it (set-uid, set-gid or "
          "capabilities), so drivers that the user chooses are ignored"};
}

// The reason why a folder cannot be read.
Status no_folder(const std::string& path, std::error_code error) {
  if (error == std::errc::no_such_file_or_directory) return {Code::NOT_FOUND, "there is no such folder"};
  if (error == std::errc::not_a_directory)
    return {Code::INVALID_ARGUMENT, fmt::format("'{}' is not a folder, and no file named {}NAME{} either",
                                                path, kFilePrefix, kFileSuffix)};
  return {error == std::errc::permission_denied ? Code::PERMISSION_DENIED : Code::UNAVAILABLE,
          fmt::format("the folder cannot be read: {}", error.message())};
}

Status seen_before(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return {Code::ALREADY_EXISTS, error || real.string() == path
                                    ? "this file was seen before"
                                    : fmt::format("this file is '{}', which was seen before", real.string())};
}

bool has(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::unexpected<Status> bad_uri(std::string_view uri, std::string_view problem) {
  return fail(Code::INVALID_ARGUMENT,
              "device '{}': {}; expected driver[://path][?key=value&...], as in local-task or vulkan://0",
              uri, problem);
}

}  // namespace

Result<DeviceUri> DeviceUri::parse(std::string_view text) {
  DeviceUri uri;
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  const size_t question = std::min(text.find('?'), text.size());
  const std::string_view place = text.substr(0, question);  // the text before the options
  const size_t scheme = place.find("://");
  std::string_view kind = place.substr(0, scheme);
  if (scheme == std::string_view::npos && kind.ends_with(':')) kind.remove_suffix(1);
  if (kind.empty()) return bad_uri(text, "the driver is missing");
  const bool named = std::all_of(kind.begin(), kind.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '+';
  });
  if (!named) return bad_uri(text, fmt::format("'{}' is not the name of a driver", kind));
  uri.kind = kind;
  if (scheme != std::string_view::npos) uri.path = place.substr(scheme + 3);
  if (question == text.size()) return uri;
  std::string_view rest = text.substr(question + 1);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view option = rest.substr(0, end);
    const size_t equals = option.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return bad_uri(text, fmt::format("option '{}' is not key=value", option));
    const std::string_view key = option.substr(0, equals);
    for (const auto& [known, value] : uri.options) {
      if (known == key) return bad_uri(text, fmt::format("option '{}' is given twice", key));
    }
    uri.options.emplace_back(key, option.substr(equals + 1));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
    if (rest.empty()) return bad_uri(text, "an option is missing after the last '&'");
  }
  return uri;
}

Ref<DriverRegistry> DriverRegistry::create(RegistryOptions options) {
  return make<DriverRegistry>(std::move(options));
}

// Counts the devices of a registry that have not been closed; thread-safe.
class DriverRegistry::OpenDevices {
 public:
  // Counts a device as open. The device holds the result while it is open.
  static std::shared_ptr<void> add(const std::shared_ptr<OpenDevices>& devices) {
    return std::make_shared<One>(devices);
  }
  void await_none(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    closed_.wait_for(lock, most, [this] { return count_ == 0; });
  }

 private:
  struct One {
    explicit One(std::shared_ptr<OpenDevices> devices) : all(std::move(devices)) {
      const std::lock_guard lock(all->mutex_);
      ++all->count_;
    }
    One(const One&) = delete;
    One& operator=(const One&) = delete;
    ~One() {
      const std::lock_guard lock(all->mutex_);
      --all->count_;
      all->closed_.notify_all();
    }
    const std::shared_ptr<OpenDevices> all;
  };

  std::mutex mutex_;
  std::condition_variable closed_;
  size_t count_ = 0;
};

DriverRegistry::~DriverRegistry() {
  await_outside_of_callbacks(*loop_);
  if (!is_in_callback()) open_devices_->await_none(std::chrono::milliseconds(500));
}

DriverRegistry::DriverRegistry(RegistryOptions options)
    : log_(std::move(options.log)),
      tracer_(std::move(options.tracer)),
      loop_(options.loop ? std::move(options.loop) : Loop::create()),
      open_devices_(std::make_shared<OpenDevices>()),
      counts_objects_(options.counts_objects) {
  for (const LinkedDriver& driver : options.linked) add(driver);
  for (const std::string& library : options.libraries) add(Origin::embedder, absolute_path(library));
  for (Entry& entry : entries_) entry.named = !entry.linked;
  for (const std::string& folder : options.folders) search_folder(Origin::embedder, absolute_path(folder));
  const bool trusted = ::getauxval(AT_SECURE) == 0;
  if (options.use_environment) {
    if (trusted) {
      search_environment();
    } else if (std::getenv("HALYARD_DRIVER_PATH")) {
      skip(Origin::environment, false, "$HALYARD_DRIVER_PATH", set_uid());
    }
  }
  if (options.use_default_folders) {
    search_user_folder(trusted);
    search_default_folders();
  }
  mark_shadowed();
}

void DriverRegistry::search_environment() {
  const char* const variable = std::getenv("HALYARD_DRIVER_PATH");
  std::string_view rest = variable ? variable : "";
  while (!rest.empty()) {
    const size_t size = std::min(rest.find(':'), rest.size());
    const std::string entry(rest.substr(0, size));
    rest.remove_prefix(std::min(size + 1, rest.size()));
    std::error_code error;
    if (entry.empty()) {
      skip(Origin::environment, false, entry,
           Status(Code::INVALID_ARGUMENT,
                  "an empty entry in HALYARD_DRIVER_PATH names nothing: the current folder is never "
                  "searched; leave out the ':' beside it"));
    } else if (entry.front() != '/') {
      refuse(Origin::environment, entry,
             Status(Code::INVALID_ARGUMENT,
                    fmt::format("'{}' in HALYARD_DRIVER_PATH depends on the current folder, which is never "
                                "searched for drivers; give a path that starts with '/'",
                                entry)));
    } else if (fs::is_directory(entry, error) || !is_driver_file(fs::path(entry).filename().string())) {
      search_folder(Origin::environment, entry);
    } else {
      add(Origin::environment, entry);
    }
  }
}

void DriverRegistry::search_user_folder(bool trusted) {
  constexpr std::string_view kFolder = ".local/lib/halyard/drivers";
  const char* const home = std::getenv("HOME");
  if (trusted && home && *home == '/') {
    search_folder(Origin::user, fs::path(home) / kFolder);
  } else {
    skip(Origin::user, true, fmt::format("$HOME/{}", kFolder),
         trusted ? Status(Code::NOT_FOUND,
                          "HOME is not the path of a folder; expected one that starts with "
                          "'/'")
                 : set_uid());
  }
}

void DriverRegistry::search_default_folders() {
  const fs::path own = own_folder();
  if (own.empty()) return;
  // If this is libhalyard.so, both are the same folder.
  const std::string beside = (own / "halyard/drivers").string();
  const std::string above = (own / "../lib/halyard/drivers").lexically_normal().string();
  search_folder(Origin::installation, beside);
  if (above != beside) search_folder(Origin::installation, above);
}

void DriverRegistry::search_folder(Origin origin, const std::string& folder) {
  const std::string clean = fs::path(folder).lexically_normal().string();
  if (has(folders_, clean))
    return skip(origin, true, clean, Status(Code::ALREADY_EXISTS, "this folder was searched before"));
  folders_.push_back(clean);
  std::vector<std::string> files;
  size_t others = 0;
  // std::filesystem's iterator is not used, because it terminates the process when out of memory.
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(clean.c_str()), ::closedir);
  std::error_code error;
  if (!open) error = std::error_code(errno, std::generic_category());
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (is_driver_file(entry->d_name)) {
      files.push_back((fs::path(clean) / name).string());
    } else if (name != "." && name != "..") {
      ++others;
    }
  }
  skip(origin, true, clean, error ? no_folder(clean, error) : Status());
  trace_.back().step.other_files = others;
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) add(origin, file);
}

void DriverRegistry::add(Origin origin, const std::string& path) {
  struct stat info = {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  const Seen file = {exists ? "" : path, info.st_dev, info.st_ino};
  if (std::ranges::find(seen_, file) != seen_.end()) return skip(origin, false, path, seen_before(path));
  seen_.push_back(file);
  trace_.push_back({.step = {.origin = origin, .path = path}, .entry = entries_.size()});
  Entry entry;
  entry.candidate.path = path;
  if (auto note = read_driver_note(path)) {
    entry.candidate.note = *note;
    entry.candidate.library = note_library(*note);
    entry.candidate.kinds = note_kinds(*note);
    entry.candidate.status = to_status(check_driver_note(*note, path));
  } else {
    entry.candidate.status = std::move(note.error());
  }
  entry.usable = entry.candidate.status.ok();
  entries_.push_back(std::move(entry));
}

void DriverRegistry::add(const LinkedDriver& driver) {
  Entry entry;
  entry.candidate.path = fmt::format("{} (part of this program)", driver.name);
  entry.candidate.library = driver.name;
  if (auto note = negotiated_note(driver)) {
    entry.candidate.note = *note;
    entry.candidate.kinds = note_kinds(*note);
    entry.usable = true;
  } else {
    entry.candidate.status = std::move(note.error());
  }
  entry.linked = driver;
  trace_.push_back(
      {.step = {.origin = Origin::installation, .path = entry.candidate.path}, .entry = entries_.size()});
  entries_.push_back(std::move(entry));
}

void DriverRegistry::skip(Origin origin, bool folder, std::string path, Status why) {
  trace_.push_back(
      {.step = {.origin = origin, .folder = folder, .path = std::move(path), .skipped = std::move(why)}});
}

void DriverRegistry::refuse(Origin origin, std::string path, Status status) {
  trace_.push_back({.step = {.origin = origin, .path = path}, .entry = entries_.size()});
  Entry entry;
  entry.candidate.path = std::move(path);
  entry.candidate.status = std::move(status);
  entries_.push_back(std::move(entry));
}

void DriverRegistry::mark_shadowed() {
  for (Entry& entry : entries_) {
    if (!entry.usable) continue;
    const auto& kinds = entry.candidate.kinds;
    const bool wanted = std::any_of(kinds.begin(), kinds.end(),
                                    [&](const std::string& kind) { return owner(kind) == &entry; });
    if (wanted) continue;
    entry.candidate.status = Status(
        Code::ALREADY_EXISTS,
        fmt::format("driver '{}' is shadowed by '{}', which is found first and has its kinds: {}",
                    entry.candidate.path, owner(kinds.front())->candidate.path, fmt::join(kinds, ", ")));
  }
  for (Entry& entry : entries_) entry.usable = entry.candidate.status.ok();
}

DriverRegistry::Entry* DriverRegistry::owner(std::string_view kind) {
  for (Entry& entry : entries_) {
    if (entry.usable && has(entry.candidate.kinds, kind)) return &entry;
  }
  return nullptr;
}

Result<Ref<DriverLibrary>> DriverRegistry::load(Entry& entry) {
  if (entry.library) return entry.library;
  if (entry.candidate.status) return std::unexpected(entry.candidate.status);
  auto library = entry.linked ? DriverLibrary::start(*entry.linked, entry.candidate.note, log_, tracer_)
                              : DriverLibrary::open(entry.candidate.path, log_, {}, tracer_);
  if (!library) {
    entry.candidate.status = library.error();
    return library;
  }
  entry.library = *library;
  entry.candidate.loaded = true;
  return library;
}

namespace {

// Whether a request for `kind` may refer to this file: by its note or, if that is unreadable, by its name.
bool is_about(const DriverRegistry::Candidate& candidate, std::string_view kind) {
  return has(candidate.kinds, kind) || candidate.library == kind || library_of_file(candidate.path) == kind;
}

}  // namespace

Result<Ref<DriverLibrary>> DriverRegistry::library_for(std::string_view kind) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = owner(kind);
  for (const Entry& other : entries_) {
    const bool preferred = other.named && !(entry && entry->named);
    if (preferred && !other.usable && is_about(other.candidate, kind))
      return std::unexpected(other.candidate.status);
  }
  if (!entry) return std::unexpected(unknown_kind(kind));
  return load(*entry);
}

Status DriverRegistry::unknown_kind(std::string_view kind) {
  std::vector<std::string_view> known;
  for (const Entry& entry : entries_) {
    if (!entry.usable || !entry.candidate.status.ok()) continue;
    for (const std::string& name : entry.candidate.kinds) {
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
  // Lists the refused files that may have been meant; all refused files if there is no driver.
  std::string refusals;
  for (const Entry& entry : entries_) {
    const Candidate& candidate = entry.candidate;
    if (candidate.status.ok() || candidate.status.code() == Code::ALREADY_EXISTS) continue;
    if (known.empty() || entry.named || is_about(candidate, kind))
      refusals += "; refused: " + candidate.status.text();
  }
  std::sort(known.begin(), known.end());
  const std::string there_are =
      known.empty() ? "there is no driver at all" : fmt::format("there are {}", fmt::join(known, ", "));
  return Status(Code::NOT_FOUND, fmt::format("no driver for devices of kind '{}'; {}{}{}", kind, there_are,
                                             did_you_mean(kind, known), refusals));
}

std::vector<DriverRegistry::Candidate> DriverRegistry::explain() {
  const std::lock_guard lock(mutex_);
  std::vector<Candidate> candidates;
  for (const Entry& entry : entries_) candidates.push_back(entry.candidate);
  return candidates;
}

std::vector<DriverRegistry::Step> DriverRegistry::search() {
  const std::lock_guard lock(mutex_);
  std::vector<Step> steps;
  for (const Trace& trace : trace_) {
    Step& step = steps.emplace_back(trace.step);
    if (trace.entry == kNoEntry) continue;
    const Entry& entry = entries_[trace.entry];
    step.candidate = entry.candidate;
    for (const std::string& kind : entry.candidate.kinds) {
      if (owner(kind) == &entry) step.serves.push_back(kind);
    }
  }
  return steps;
}

std::vector<std::pair<DriverLibrary::Kind, Ref<DriverLibrary>>> DriverRegistry::load_all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<DriverLibrary::Kind, Ref<DriverLibrary>>> kinds;
  for (Entry& entry : entries_) {
    if (!entry.usable) continue;
    const auto library = load(entry);
    if (!library) continue;
    for (const DriverLibrary::Kind& kind : (*library)->kinds()) {
      if (owner(kind.name) == &entry) kinds.emplace_back(kind, *library);
    }
  }
  std::sort(kinds.begin(), kinds.end(),
            [](const auto& a, const auto& b) { return a.first.name < b.first.name; });
  return kinds;
}

std::vector<DriverRegistry::Kind> DriverRegistry::kinds() {
  std::vector<Kind> kinds;
  for (const auto& [kind, library] : load_all())
    kinds.push_back({kind.name, kind.description, library->path()});
  return kinds;
}

Result<std::vector<DriverRegistry::DeviceEntry>> DriverRegistry::devices(std::string_view kind) {
  std::vector<DeviceEntry> entries;
  const auto append = [&](const std::string& name, const DriverLibrary& library) -> Result<> {
    for (const DriverLibrary::DeviceInfo& info : HALYARD_TRY(library.enumerate())) {
      if (info.kind == name) entries.push_back({info.kind + "://" + info.path, info.name});
    }
    return {};
  };
  if (!kind.empty()) {
    HALYARD_TRY(append(std::string(kind), *HALYARD_TRY(library_for(kind))));
    return entries;
  }
  // Lists the devices of all drivers. A driver that cannot list its devices does not affect the others.
  for (const auto& [known, library] : load_all()) static_cast<void>(append(known.name, *library));
  return entries;
}

Result<Ref<Device>> DriverRegistry::open_device(std::string_view uri,
                                                const std::vector<DeviceOption>& options) {
  DeviceUri parsed = HALYARD_TRY(DeviceUri::parse(uri));
  parsed.options.insert(parsed.options.end(), options.begin(), options.end());
  Ref<DriverLibrary> library = HALYARD_TRY(library_for(parsed.kind));
  return Device::open(std::move(library), std::move(parsed.kind), std::move(parsed.path), parsed.options,
                      counts_objects_, loop_, OpenDevices::add(open_devices_));
}

}  // namespace halyard::hal
