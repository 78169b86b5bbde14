// DriverLibrary: one halyard-driver-NAME.so, from reading its note to its instance. Incompatible drivers are
// refused before any of their code runs, if possible. Never unloaded (docs/driver-abi.md). Thread-safe after
// open().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/plugin.h"
#include "base/status.h"
#include "hal/driver/host_services.h"
#include "hal/driver/linked_driver.h"
#include "halyard/driver.h"

namespace halyard::hal {

// The plugin kind of drivers, and the supported ABI versions.
extern const PluginKind kDriverPlugin;
constexpr AbiRange kDriverAbi = {HALYARD_DRIVER_ABI_V1, HALYARD_DRIVER_ABI_V1};

// Reads the ELF note without running any code. INVALID_ARGUMENT: not a shared library, or damaged. NOT_FOUND:
// no note. INCOMPATIBLE: another machine. Every message contains the path.
Result<halyard_driver_note_t> read_driver_note(const std::string& path);

// The texts of a note.
std::string_view note_library(const halyard_driver_note_t& note);
std::string_view note_version(const halyard_driver_note_t& note);
std::vector<std::string> note_kinds(const halyard_driver_note_t& note);

// Whether a driver with this note, at this path, can be opened here. INCOMPATIBLE: versions of the ABI, or
// sanitizers, differ. INVALID_ARGUMENT: an invalid note, or a file not named halyard-driver-NAME.so.
Result<> check_driver_note(const halyard_driver_note_t& note, const std::string& path);

// The note of a driver without a file, made from its reply to the negotiation. INCOMPATIBLE: the driver
// refuses this host, or has no kinds.
Result<halyard_driver_note_t> negotiated_note(const LinkedDriver& driver);

// Called with the name of the next step before that step runs code of the driver: "load" (constructors of the
// library), "negotiate", "initialize", "enumerate_devices", "device_open", "shutdown". For locating crashes
// and hangs.
using DriverProgress = std::function<void(const char* step)>;

class DriverLibrary final : public ObjectOf<DriverLibrary> {
 public:
  static const ObjectType kType;

  // Reads the note, opens the library, negotiates, checks the mandatory functions, initializes. An error
  // names the step, the expected and the actual value. INCOMPATIBLE: versions, sanitizers or missing
  // functions. Opening a library twice creates two instances. `log` (may be empty) receives the driver's log
  // lines; `progress` (may be empty) is used only during the call. `tracer` (may be null) records the work of
  // its devices.
  static Result<Ref<DriverLibrary>> open(const std::string& path, DriverLog log = {},
                                         const DriverProgress& progress = {}, Ref<Tracer> tracer = {});
  // The same for a driver that is linked into the program; `note` is negotiated_note(driver).
  static Result<Ref<DriverLibrary>> start(const LinkedDriver& driver, const halyard_driver_note_t& note,
                                          DriverLog log = {}, Ref<Tracer> tracer = {});
  // A driver inside the host: nothing is loaded, negotiated or initialized, and there is no instance. Its
  // functions create statuses directly.
  static Ref<DriverLibrary> built_in(std::string_view name, const halyard_driver_table_t& table);

  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }  // of the driver
  const halyard_driver_note_t& note() const { return note_; }
  struct Kind {
    std::string name;
    std::string description;
  };
  const std::vector<Kind>& kinds() const { return kinds_; }
  // The driver's functions; missing ones are null.
  const halyard_driver_table_t& table() const { return table_; }
  halyard_driver_instance_t instance() const { return instance_; }

  struct DeviceInfo {
    std::string kind;
    std::string path;
    std::string name;
  };
  Result<std::vector<DeviceInfo>> enumerate() const;

  Tracer* tracer() const { return services_.tracer(); }  // may be null
  TracedWork& traced_work() const { return services_.traced_work(); }

  DriverLibrary(std::string path, const halyard_driver_note_t& note, DriverLog log, Ref<Tracer> tracer);
  ~DriverLibrary();  // shuts the instance down; the library stays mapped

 private:
  Result<uint32_t> negotiate(halyard_driver_negotiate_fn negotiate);  // returns the common version
  Result<> take_kinds(const halyard_driver_reply_t& reply);
  Result<> initialize(uint32_t abi_version);

  std::string path_;
  halyard_driver_note_t note_ = {};
  std::string version_{note_version(note_)};
  HostServices services_;
  std::vector<Kind> kinds_;
  halyard_driver_table_t table_ = {};
  halyard_driver_instance_t instance_ = nullptr;
};

}  // namespace halyard::hal
