// Drivers as tools see them: the flag that names some, how they were looked for, and that search as text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

inline constexpr Flag kDriverFlag = {
    "driver", FlagKind::list, "FILE",
    "A driver library (halyard-driver-NAME.so) to be used before those that are found.",
    "--driver=./halyard-driver-mine.so"};

// An instance that knows the drivers of --driver first; `trace` (may be null) is told what it does. `options`
// are HALYARD_INSTANCE_*.
Result<Handle<halyard_instance_t>> make_instance(const Flags& flags, halyard_trace_t trace = nullptr,
                                                 uint32_t options = 0);

// The search for drivers of an instance, as it is now.
class DriverSearch {
 public:
  static Result<DriverSearch> of(halyard_instance_t instance);
  // In the order in which they were tried; their texts live as long as this.
  std::span<const halyard_search_entry_t> entries() const { return entries_; }
  // The driver that serves devices of that kind, by its note alone; null where none does.
  const halyard_search_entry_t* serving(std::string_view kind) const;

 private:
  Handle<halyard_search_t> search_;
  std::vector<halyard_search_entry_t> entries_;
};

inline bool is_accepted_driver(const halyard_search_entry_t& entry) {
  return !entry.is_folder && entry.outcome == HALYARD_SEARCH_ACCEPTED;
}

// "a,b" to {"a", "b"}; nothing of "".
std::vector<std::string> split_list(std::string_view list);

// How one entry is told: "taken", "refused", "shadowed", "skipped", "folder".
std::string_view outcome_name(const halyard_search_entry_t& entry, bool failed);
// "the environment" and the like.
std::string_view origin_name(uint32_t origin);
// "1" or "1..3".
std::string abi_text(uint32_t low, uint32_t high);

// Every place and file that was tried, in order, with what became of it and why. `failures` (as many as
// entries, or none) say which drivers failed when they were tried out.
std::string explanation(const DriverSearch& search, std::span<const std::optional<Failure>> failures);

}  // namespace halyard::tools
