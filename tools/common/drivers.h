// Drivers: the flag that names some, the search for others, and a text about that search.
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
    "A driver library (halyard-driver-NAME.so) to use before those that are found by the search.",
    "--driver=./halyard-driver-mine.so"};
}

// An instance with the drivers of --driver before all others; `trace` (may be null) records its events.
// `options` are HALYARD_INSTANCE_*; `jit_cache` is a folder or null.
Result<Handle<halyard_instance_t>> make_instance(const Flags& flags, halyard_trace_t trace = nullptr,
                                                 uint32_t options = 0, const char* jit_cache = nullptr);

// The log of an instance's search for drivers, as it is now.
class DriverSearch {
 public:
  static Result<DriverSearch> of(halyard_instance_t instance);
  // In the order in which they were tried; their texts live as long as this.
  std::span<const halyard_search_entry_t> entries() const { return entries_; }
  // The driver whose note says that it serves devices of that kind; null if there is none.
  const halyard_search_entry_t* serving(std::string_view kind) const;

 private:
  Handle<halyard_search_t> search_;
  std::vector<halyard_search_entry_t> entries_;
};

inline bool is_accepted_driver(const halyard_search_entry_t& entry) {
  return !entry.is_folder && entry.outcome == HALYARD_SEARCH_ACCEPTED;
}

// "a,b" to {"a", "b"}; "" to {}.
std::vector<std::string> split_list(std::string_view list);

// The word for an entry's outcome: "taken", "refused", "shadowed", "skipped", "folder".
std::string_view outcome_name(const halyard_search_entry_t& entry, bool failed);
// "the environment" and the like.
std::string_view origin_name(uint32_t origin);
// "1" or "1..3".
std::string abi_text(uint32_t low, uint32_t high);

// A text about every place and file that was tried, in order, with the outcome and the reason. `failures` (as
// many as entries, or none) are those of drivers that failed when they were tried.
std::string explanation(const DriverSearch& search, std::span<const std::optional<Failure>> failures);

}  // namespace halyard::tools
