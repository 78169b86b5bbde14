// Drivers: the flag that names drivers, the log of the search for drivers, and a text about that search.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

namespace flag {
inline constexpr List driver = {
    "driver", "FILE",
    "A driver library (halyard-driver-NAME.so), which is used before those that the search finds.",
    "--driver=./halyard-driver-mine.so"};
}

// Creates an instance that prefers the drivers of --driver.
Result<Instance> make_instance(const Flags& flags, InstanceOptions options = {});

// The search skips a driver that cannot be used, but a file that is not there is a wrong path. NOT_FOUND.
Result<> check_drivers(const Flags& flags);

// The log of an instance's search for drivers, up to now.
class DriverSearch {
 public:
  static Result<DriverSearch> of(const Instance& instance);
  // In search order. The texts live as long as this object.
  std::span<const halyard_search_entry_t> entries() const { return entries_; }
  // The driver whose note lists that kind of device; null if there is none.
  const halyard_search_entry_t* serving(std::string_view kind) const;

 private:
  Search search_;
  std::vector<halyard_search_entry_t> entries_;
};

inline bool is_accepted_driver(const halyard_search_entry_t& entry) {
  return !entry.is_folder && entry.outcome == HALYARD_SEARCH_ACCEPTED;
}

// "a,b" to {"a", "b"}; "" to {}.
std::vector<std::string> split_list(std::string_view list);

// The word for an entry's outcome: "taken", "refused", "shadowed", "skipped", "folder".
std::string_view outcome_name(const halyard_search_entry_t& entry, bool failed);
// "the environment", ...
std::string_view origin_name(uint32_t origin);
// "1" or "1..3".
std::string abi_text(uint32_t low, uint32_t high);

// Describes every place and file that was searched, in order, with the outcome and the reason. `failures` are
// the failures of tried drivers: one for each entry, or empty.
std::string explanation(const DriverSearch& search, std::span<const std::optional<Failure>> failures);

}  // namespace halyard::tools
