// The log of the search for drivers, and trying a driver, in the C ABI.
#include "base/plugin.h"
#include "hal/registry/driver_probe.h"
#include "handles.h"

namespace halyard::c {
namespace {

using Registry = hal::DriverRegistry;

// One step of the search, with the texts to which entries point.
struct Entry {
  explicit Entry(Registry::Step made) : step(std::move(made)) {
    const Status& status = step.candidate ? step.candidate->status : step.skipped;
    if (!status.ok()) reason = status.text();
    if (!step.candidate) return;
    version = hal::note_version(step.candidate->note);
    drivers = joined(step.candidate->kinds);
    serves = joined(step.serves);
  }

  uint32_t outcome() const {
    if (!step.skipped.ok()) return HALYARD_SEARCH_SKIPPED;
    if (!step.candidate || step.candidate->status.ok()) return HALYARD_SEARCH_ACCEPTED;
    return step.candidate->status.code() == Code::ALREADY_EXISTS ? HALYARD_SEARCH_SHADOWED
                                                                 : HALYARD_SEARCH_REFUSED;
  }

  Registry::Step step;
  std::string reason;
  std::string version;
  std::string drivers;
  std::string serves;
};

struct Search final : ObjectOf<Search> {
  static const ObjectType kType;
  std::vector<Entry> entries;
};
const ObjectType Search::kType = object_type<Search>("halyard.search");

}  // namespace
}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_instance_search(halyard_instance_t instance, halyard_search_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    auto search = make<Search>();
    for (auto& step : HALYARD_TRY(checked<Instance>(instance))->drivers->search())
      search->entries.emplace_back(std::move(step));
    *out = give<halyard_search_t>(std::move(search));
    return {};
  });
}

halyard_status_t halyard_search_entry(halyard_search_t search, size_t index, halyard_search_entry_t* entry) {
  return guarded([&]() -> Result<> {
    const std::vector<Entry>& entries = HALYARD_TRY(checked<Search>(search))->entries;
    if (index >= entries.size())
      return fail(Code::OUT_OF_RANGE, "entry {} does not exist; the search for drivers has {}", index,
                  entries.size());
    const Entry& from = entries[index];
    halyard_search_entry_t filled = {};
    filled.origin = static_cast<uint32_t>(from.step.origin);
    filled.outcome = from.outcome();
    filled.is_folder = from.step.folder;
    filled.path = from.step.path.c_str();
    filled.reason = from.reason.c_str();
    filled.other_files = from.step.other_files;
    filled.library = from.step.candidate ? from.step.candidate->library.c_str() : "";
    filled.version = from.version.c_str();
    filled.drivers = from.drivers.c_str();
    filled.serves = from.serves.c_str();
    if (from.step.candidate) {
      filled.abi_min = from.step.candidate->note.abi_min;
      filled.abi_max = from.step.candidate->note.abi_max;
      filled.sanitizer = from.step.candidate->note.sanitizer;
      filled.loaded = from.step.candidate->loaded;
    }
    return fill_info(entry, filled, "entry");
  });
}

const char* halyard_sanitizer_name(uint32_t sanitizer) { return sanitizer_name(sanitizer); }

halyard_status_t halyard_driver_probe(const char* path, halyard_step_fn step, void* user) {
  return guarded([&]() -> Result<> {
    return hal::probe_driver(std::string(HALYARD_TRY(given_text(path, "path"))), [&](const char* name) {
      if (step) step(user, name);
    });
  });
}
