// Bytes that drive queue work, files, command buffers and gates (modules/tests/queue_program.h): each driver,
// and pairs of drivers, have the outcome that is computed without a device.
#include <array>
#include <string>
#include <vector>

#include "fuzzing.h"
#include "hal/driver/driver_library.h"
#include "queue_program.h"
#include "run_files.h"

using namespace halyard;

namespace {

Ref<hal::Device> open(const Result<Ref<hal::DriverLibrary>>& library, const char* kind) {
  if (!library) fuzz::finding(library.error().text());
  Result<Ref<hal::Device>> device = hal::Device::open(*library, kind, "", {});
  if (!device) fuzz::finding(device.error().text());
  return *device;
}

struct Devices {
  std::string name;
  std::vector<Ref<hal::Device>> devices;
};

const std::vector<Devices>& all_devices() {
  static const std::vector<Devices> all = [] {
    const Result<Ref<hal::DriverLibrary>> local =
        hal::DriverLibrary::open(fuzz::run_file(HALYARD_LOCAL_DRIVER));
    const Result<Ref<hal::DriverLibrary>> null =
        hal::DriverLibrary::open(fuzz::run_file(HALYARD_NULL_DRIVER));
    const Ref<hal::Device> sync = open(local, "local-sync"), task = open(local, "local-task"),
                           other = open(null, "null");
    return std::vector<Devices>{{"local-sync", {sync}}, {"local-task", {task}}, {"null", {other}}};
  }();
  return all;
}

const std::vector<Devices>& pairs() {
  static const std::vector<Devices> all = [] {
    const auto& single = all_devices();
    const auto pair = [&](size_t a, size_t b) {
      return Devices{single[a].name + " and " + single[b].name, {single[a].devices[0], single[b].devices[0]}};
    };
    return std::vector<Devices>{pair(0, 1), pair(1, 2), pair(2, 0)};
  }();
  return all;
}

}  // namespace

// The first byte: whether on pairs of devices.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<Devices>& chosen = data[0] % 2 ? pairs() : all_devices();
  modules::QueueOutcome first;
  for (const Devices& devices : chosen) {
    const modules::QueueOutcome outcome = modules::run_queue_program({data + 1, size - 1}, devices.devices);
    if (!outcome.defect.empty()) fuzz::finding(devices.name + ": " + outcome.defect);
    if (&devices == &chosen[0])
      first = outcome;
    else if (outcome != first)
      fuzz::finding(devices.name + " has another outcome than " + chosen[0].name);
  }
  return 0;
}
