// ChannelProvider: carries the collectives of one rank. A library halyard-channel-NAME.so, or the provider
// inside this library, whose ranks are threads of one process (hal/channel/local_world.h). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/origin.h"
#include "base/plugin.h"
#include "base/status.h"
#include "hal/channel/launch.h"
#include "hal/driver/host_services.h"
#include "halyard/channel.h"

namespace halyard::hal {

extern const PluginKind kChannelPlugin;

class ChannelProvider final : public ObjectOf<ChannelProvider> {
 public:
  static const ObjectType kType;

  // Reads the note, opens the library, negotiates, and joins the job, for which it may wait. The library and
  // its provider stay for the life of the process: a process joins a job once. Later calls with the same
  // path return the same object. `timeout_ns` limits the wait for other processes, 0: no limit; then
  // DEADLINE_EXCEEDED, and for good. INCOMPATIBLE, UNAVAILABLE.
  static Result<Ref<ChannelProvider>> open(const std::string& path, uint64_t timeout_ns = 0);
  // A provider inside the host. `keep` lives as long as it.
  static Ref<ChannelProvider> built_in(std::string name, const halyard_channel_table_t& table,
                                       halyard_channel_provider_t handle, Ref<Object> keep);
  // The provider of a process that nobody has given one: where a launcher has started it, the library for
  // that launcher; else one of a world of one rank. NOT_FOUND: no library for the launcher, with the places
  // that were looked at. $HALYARD_CHANNEL_PROVIDER, the path of a library, comes first (not in set-uid
  // programs).
  static Result<Ref<ChannelProvider>> find(const Launch& launch, uint64_t timeout_ns = 0);

  const std::string& name() const { return name_; }  // its path, or "in this process"
  const halyard_channel_table_t& table() const { return table_; }
  halyard_channel_provider_t handle() const { return handle_; }
  const Origin& origin() const { return origin_; }
  // FAILED_PRECONDITION: it joined its job before fork(), and this is the child.
  Result<> check_origin() const;
  // FAILED_PRECONDITION: the launcher says another rank, or another number of them, than the world that the
  // provider has joined.
  Result<> check_launch(const Launch& launch) const;
  Result<halyard_channel_world_t> world() const;
  // How long a collective may wait for other ranks, in nanoseconds; 0: no limit. For those submitted later.
  void set_timeout(uint64_t nanoseconds) { timeout_.store(nanoseconds, std::memory_order_relaxed); }
  uint64_t timeout() const { return timeout_.load(std::memory_order_relaxed); }
  // Makes a communicator of the embedder known under an id. As halyard_channel_table.import.
  Result<> import(std::string_view id, std::string_view kind, uint64_t handle) const;

  explicit ChannelProvider(std::string name) : name_(std::move(name)), services_("of channels", {}, {}) {}
  ~ChannelProvider();

 private:
  Result<> load(uint64_t timeout_ns);

  Origin origin_;
  std::string name_;
  HostServices services_;
  halyard_channel_table_t table_ = {};
  halyard_channel_provider_t handle_ = nullptr;
  Ref<Object> keep_;  // of a built-in one
  std::atomic<uint64_t> timeout_{0};
};

// The places of libraries of channel providers: every halyard-channel-NAME.so in the folders of <library
// folder>/halyard/channels.
std::vector<std::string> channel_libraries();

}  // namespace halyard::hal
