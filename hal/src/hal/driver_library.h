// DriverLibrary: one halyard-driver-NAME.so, from its note to its instance. What can be refused is refused before any of its
// code runs. Never unloaded (docs/driver-abi.md). Thread-safe after open().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "halyard/driver.h"

namespace halyard::hal {

// What the ELF note says, read without running anything. INVALID_ARGUMENT: not a shared library, or damaged; NOT_FOUND: no
// note; INCOMPATIBLE: another machine. The path stands in every message.
Result<halyard_driver_note_t> read_driver_note(const std::string& path);

class DriverLibrary final : public ObjectOf<DriverLibrary> {
 public:
  static const ObjectType kType;

  // Note, dlopen, negotiate, check of mandatory functions, initialize. Each failure says which step, what was expected and
  // found. INCOMPATIBLE for versions, sanitizers and missing functions.
  static Result<Ref<DriverLibrary>> open(const std::string& path);

  const std::string& path() const { return path_; }
  const halyard_driver_note_t& note() const { return note_; }
  struct Kind {
    std::string name;
    std::string description;
  };
  const std::vector<Kind>& kinds() const { return kinds_; }
  // The driver's functions; entries that the driver does not have are null.
  const halyard_driver_table_t& table() const { return table_; }
  halyard_driver_instance_t instance() const { return instance_; }

  struct DeviceInfo {
    std::string kind;
    std::string path;
    std::string name;
  };
  Result<std::vector<DeviceInfo>> enumerate() const;

  DriverLibrary() = default;
  ~DriverLibrary();  // shuts the instance down; the library stays mapped

 private:
  std::string path_;
  halyard_driver_note_t note_ = {};
  std::vector<Kind> kinds_;
  halyard_driver_table_t table_ = {};
  halyard_driver_instance_t instance_ = nullptr;
};

}  // namespace halyard::hal
