// Programs of several ranks: the launcher of the process, and channels between ranks (docs/collectives.md).
#ifndef HALYARD_CPP_CHANNELS_HPP_
#define HALYARD_CPP_CHANNELS_HPP_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "halyard/channels.h"
#include "halyard/cpp/handle.hpp"

namespace halyard::inline HALYARD_CPP_FORM {

// Reads the rank that the launcher has set in environment variables; without a launcher: rank 0 of 1.
inline Result<halyard_launch_t> detect_launch() {
  auto launch = detail::sized<halyard_launch_t>();
  return detail::finish(halyard_launch_detect(&launch), [&] { return launch; });
}

// One rank of a program, for ContextOptions::channels. Any thread.
class Channels : public Handle<halyard_channels_t> {
 public:
  using Handle::Handle;

  // Joins the job; may wait for the other processes (halyard_channels_create). `library` "": the library for
  // the launcher. `rank` and `count` -1: any. `timeout` limits this wait and the waits of collectives; 0: no
  // limit.
  static Result<Channels> create(const std::string& library = "", int32_t rank = -1, int32_t count = -1,
                                 std::chrono::nanoseconds timeout = {}) {
    auto options = detail::sized<halyard_channels_options_t>();
    options.library = library.c_str();
    options.rank = rank;
    options.rank_count = count;
    options.timeout_ns = static_cast<uint64_t>(timeout.count());
    halyard_channels_t made = nullptr;
    return detail::finish(halyard_channels_create(&options, &made), [&] { return Channels(adopt, made); });
  }
  // Creates a world within this process: one handle for each rank.
  static Result<std::vector<Channels>> create_local(uint32_t count) {
    std::vector<Channels> ranks;
    std::vector<halyard_channels_t> made(count);
    ranks.reserve(count);
    return detail::finish(halyard_channels_create_local(count, made.data()), [&] {
      for (halyard_channels_t rank : made) ranks.emplace_back(adopt, rank);
      return std::move(ranks);
    });
  }

  // The description lives as long as this object.
  Result<halyard_channels_world_t> world() const {
    auto world = detail::sized<halyard_channels_world_t>();
    return detail::finish(halyard_channels_world(get(), &world), [&] { return world; });
  }
  // Sets how long collectives that are submitted later may wait for other ranks; 0: no limit.
  Result<void> set_timeout(std::chrono::nanoseconds timeout) const {
    return detail::finish(halyard_channels_set_timeout(
        get(), timeout.count() > 0 ? static_cast<uint64_t>(timeout.count()) : 0));
  }
  // Registers a communicator of the caller for programs (halyard_channels_import).
  Result<void> import(CString id, CString kind, uint64_t handle) const {
    return detail::finish(halyard_channels_import(get(), id.get(), kind.get(), handle));
  }
};

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_CHANNELS_HPP_
