// Why a collective must not wait any longer: its stop word, or its time limit.
#ifndef HALYARD_CHANNEL_STOP_HPP_
#define HALYARD_CHANNEL_STOP_HPP_

#include <cstdint>
#include <string>

#include "halyard/channel.h"

namespace halyard::channel {

struct Stop {
  halyard_status_code_t code = HALYARD_OK;  // HALYARD_OK: it may wait
  std::string text;                         // of the collective: "was stopped while it waited"

  explicit operator bool() const { return code != HALYARD_OK; }
};

// `waited_ns` is the time since the collective came.
inline Stop stop_of(const halyard_collective_t& collective, uint64_t waited_ns) {
  const uint32_t code = collective.stop ? __atomic_load_n(collective.stop, __ATOMIC_RELAXED) : 0;
  if (code != 0) return {static_cast<halyard_status_code_t>(code), "was stopped while it waited"};
  if (collective.timeout_ns == 0 || waited_ns <= collective.timeout_ns) return {};
  const std::string limit = std::to_string(collective.timeout_ns / 1'000'000);
  return {HALYARD_DEADLINE_EXCEEDED, "waited longer than its time limit of " + limit + " ms"};
}

}  // namespace halyard::channel

#endif  // HALYARD_CHANNEL_STOP_HPP_
