// DriverRegistry: the available drivers, and the refused drivers with the reason. The embedder creates it;
// there is no global registry. The constructor reads the notes of the files found; a driver's code runs when
// one of its kinds is requested. Thread-safe.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"
#include "hal/driver/driver_library.h"
#include "hal/driver/linked_driver.h"

namespace halyard::hal {

struct RegistryOptions {
  std::vector<LinkedDriver> linked;    // precede all files
  std::vector<std::string> libraries;  // paths of drivers, searched first
  std::vector<std::string> folders;    // searched next, in order
  bool use_environment = true;      // $HALYARD_DRIVER_PATH (colon-separated files or folders), unless set-uid
  bool use_default_folders = true;  // the user's folder, then the folder beside this library
  DriverLog log = {};               // receives the drivers' log lines; empty: they are dropped
  Ref<Tracer> tracer = {};          // records the work of devices
  Ref<Loop> loop = {};  // closes devices whose last reference is dropped in a callback; null: its own loop
  bool counts_objects = false;  // devices count their objects (base/live_objects.h)
};

using DeviceOption = std::pair<std::string, std::string>;  // key, value

// "driver[://path][?key=value&...]". INVALID_ARGUMENT with the reason.
struct DeviceUri {
  std::string kind;
  std::string path;
  std::vector<DeviceOption> options;
  static Result<DeviceUri> parse(std::string_view text);
};

class DriverRegistry final : public ObjectOf<DriverRegistry> {
 public:
  static const ObjectType kType;

  static Ref<DriverRegistry> create(RegistryOptions options);

  // Every candidate file, accepted or refused, with the reason; and the searched folders.
  struct Candidate {
    std::string path;
    std::string library;  // NAME; empty if the note could not be read
    std::vector<std::string> kinds;
    halyard_driver_note_t note = {};  // zeros if the note could not be read
    Status status;                    // ok: loaded, or loadable but not needed so far
    bool loaded = false;
  };
  std::vector<Candidate> explain();
  std::vector<std::string> searched_folders() const { return folders_; }

  // The search log: every place in search order, each folder before its files.
  enum class Origin : uint8_t { embedder, environment, user, installation };
  struct Step {
    Origin origin = Origin::embedder;
    bool folder = false;                 // false: a file, or a path that does not exist
    std::string path;                    // the given path, made absolute; "" for an empty entry
    Status skipped;                      // why it was skipped; ok: it was examined
    std::optional<Candidate> candidate;  // of an examined file
    std::vector<std::string> serves;     // its kinds that no earlier driver has
    size_t other_files = 0;              // in a folder: entries not named halyard-driver-NAME.so
  };
  std::vector<Step> search();

  struct Kind {
    std::string name;
    std::string description;
    std::string library_path;
  };
  // The kinds of all drivers that load, sorted by name. A bad driver does not affect the others.
  std::vector<Kind> kinds();
  // The URIs ("vulkan://0") of the available devices, of one kind or of all (""). NOT_FOUND: no such kind.
  // The message names the available kinds, and why a driver of that name was refused.
  struct DeviceEntry {
    std::string uri;
    std::string name;
  };
  Result<std::vector<DeviceEntry>> devices(std::string_view kind);
  // NOT_FOUND as above; otherwise errors of the driver. `options` follow those of the URI; the driver defines
  // their values and whether they may be repeated.
  Result<Ref<Device>> open_device(std::string_view uri, const std::vector<DeviceOption>& options = {});

  explicit DriverRegistry(RegistryOptions options);
  // Waits until the loop has closed the devices whose last reference was held by their own work, and at most
  // 100 ms for devices that are still open, because their last work may have signalled but not yet released
  // them. So a process that has released everything does not exit while a driver's thread closes a device.
  ~DriverRegistry();

 private:
  struct Entry {
    Candidate candidate;
    bool usable = false;  // according to its note
    bool named = false;   // the embedder named this file: if it is refused, requests for its kinds fail
    std::optional<LinkedDriver> linked;  // set: the driver is linked into the program and has no file
    Ref<DriverLibrary> library;          // null if not loaded
  };

  // A file; if it cannot be examined, its path.
  struct Seen {
    std::string path;
    dev_t device;
    ino_t number;
    bool operator==(const Seen&) const = default;
  };

  static constexpr size_t kNoEntry = SIZE_MAX;
  class OpenDevices;
  struct Trace {
    Step step;
    size_t entry = kNoEntry;  // index of the step's candidate
  };

  void search_environment();
  void search_user_folder(bool trusted);
  void search_default_folders();
  void search_folder(Origin origin, const std::string& folder);
  void add(Origin origin, const std::string& path);
  void add(const LinkedDriver& driver);
  void refuse(Origin origin, std::string path, Status status);
  void skip(Origin origin, bool folder, std::string path, Status why);
  void mark_shadowed();
  Entry* owner(std::string_view kind);            // the first usable candidate that has the kind
  Result<Ref<DriverLibrary>> load(Entry& entry);  // tried once; a failure is kept
  Result<Ref<DriverLibrary>> library_for(std::string_view kind);
  Status unknown_kind(std::string_view kind);
  // All kinds that load, sorted, each with its library.
  std::vector<std::pair<DriverLibrary::Kind, Ref<DriverLibrary>>> load_all();

  DriverLog log_;
  Ref<Tracer> tracer_;
  Ref<Loop> loop_;
  const std::shared_ptr<OpenDevices> open_devices_;
  const bool counts_objects_;
  std::vector<std::string> folders_;
  std::vector<Trace> trace_;
  std::vector<Seen> seen_;  // so that no file is used twice
  std::mutex mutex_;        // guards the entries
  std::vector<Entry> entries_;
};

}  // namespace halyard::hal
