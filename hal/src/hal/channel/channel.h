// Channel: one rank's handle of a provider's channel. Queue work draws a ticket when the program submits it,
// and collectives begin in the order of their tickets. So the order is the same on all ranks, whichever work
// becomes ready first. Specified by hal-module.md, "Channel". Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/object.h"
#include "base/status.h"
#include "base/tracer.h"
#include "hal/channel/operation.h"
#include "hal/channel/provider.h"

namespace halyard::hal {

class Channel final : public ObjectOf<Channel> {
 public:
  static const ObjectType kType;  // "hal.channel"

  struct Options {
    std::optional<std::string_view> id;
    std::string_view group;
    int32_t rank = -1;  // -1: the rank in the world
    int32_t count = -1;
  };
  // Implements hal.channel.create.
  static Result<Ref<Channel>> open(const Ref<ChannelProvider>& provider, const Options& options);
  // Implements hal.channel.split; null for color -1. Does not wait for the other ranks.
  Result<Ref<Channel>> split(int32_t color, int32_t key);
  // Blocks until the ranks of a split are known, or until *stop (may be null) is not 0.
  Result<Place> place(const uint32_t* stop);

  const std::string& name() const { return name_; }  // "channel 'default'"

  const ChannelProvider& provider() const { return *provider_; }

  // The number of the next collective of the channel.
  uint64_t draw_ticket();
  // Calls `act` when it is the ticket's turn: now, or on the thread that ends the previous turn. Every ticket
  // must get its turn.
  void at_turn(uint64_t ticket, std::move_only_function<void()> act);
  // Calls halyard_channel_table.submit. Only within a turn.
  Status submit(const halyard_collective_t& collective);
  // Fails the channel, here and on the other ranks, because this rank cannot continue.
  void fail(const Status& status);

  // Records a slice on the channel's track. `tracer` may be null.
  void trace(Tracer* tracer, std::string_view text, uint64_t begin, uint64_t end) noexcept;

  Channel(Ref<ChannelProvider> provider, std::string label)
      : provider_(std::move(provider)), label_(std::move(label)) {}
  ~Channel();

 private:
  void take_turns(std::unique_lock<std::mutex>& lock);
  void opened(Result<halyard_provider_channel_t> handle);
  const halyard_channel_table_t& table() const { return provider_->table(); }

  const Ref<ChannelProvider> provider_;
  const std::string label_;
  const std::string name_ = fmt::format("channel '{}'", label_);
  Ref<Channel> base_;  // the parent of a split channel
  std::mutex mutex_;   // guards the members below
  std::condition_variable opened_;
  halyard_provider_channel_t handle_ = nullptr;
  bool is_open_ = false;
  Status broken_;  // why the channel could not be opened
  std::optional<Place> place_;
  uint64_t next_ticket_ = 0;
  uint64_t turn_ = 0;
  bool is_taken_ = false;  // a thread is running turns
  std::map<uint64_t, std::move_only_function<void()>> waiting_;
  std::optional<Tracer::Track> track_;
  uint64_t traced_until_ = 0;
  uint32_t splits_ = 0;
};

}  // namespace halyard::hal
