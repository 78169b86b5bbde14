// ChannelProvider: executes the collectives of one rank. Either a library halyard-channel-NAME.so, or the
// provider inside this library, whose ranks are threads of one process (hal/channel/local_world.h).
// Thread-safe.
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

  // Reads the note, opens the library, negotiates, and joins the job, which may block. The library and its
  // provider live until the process ends, because a process can join a job only once. Later calls with the
  // same path return the same object. `timeout_ns` limits the wait for other processes, 0: no limit; after it
  // every call fails with DEADLINE_EXCEEDED. INCOMPATIBLE, UNAVAILABLE.
  static Result<Ref<ChannelProvider>> open(const std::string& path, uint64_t timeout_ns = 0);
  // A provider inside the host. It retains `keep`.
  static Ref<ChannelProvider> built_in(std::string name, const halyard_channel_table_t& table,
                                       halyard_channel_provider_t handle, Ref<Object> keep);

  const std::string& name() const { return name_; }  // the path, or "in this process"
  const halyard_channel_table_t& table() const { return table_; }
  halyard_channel_provider_t handle() const { return handle_; }
  const Origin& origin() const { return origin_; }
  // FAILED_PRECONDITION: the provider joined its job before fork(), and this is the child.
  Result<> check_origin() const;
  // FAILED_PRECONDITION: the rank or the count of the launcher differs from the world that the provider has
  // joined.
  Result<> check_launch(const Launch& launch) const;
  Result<halyard_channel_world_t> world() const;
  // How long a collective may wait for other ranks, in nanoseconds; 0: no limit. Applies to collectives that
  // are submitted later.
  void set_timeout(uint64_t nanoseconds) { timeout_.store(nanoseconds, std::memory_order_relaxed); }
  uint64_t timeout() const { return timeout_.load(std::memory_order_relaxed); }
  // Registers a communicator of the embedder under an id, with halyard_channel_table.import.
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
  Ref<Object> keep_;  // for a built-in provider
  std::atomic<uint64_t> timeout_{0};
};

}  // namespace halyard::hal
