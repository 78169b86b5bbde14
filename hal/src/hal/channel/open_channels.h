// OpenChannels: the open channels of one program. Programs open the same channel again in each call, but a
// provider has few channels, and all ranks must create a channel together. So each channel is opened once.
// Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hal/channel/channel.h"

namespace halyard::hal {

class OpenChannels {
 public:
  // Null: the provider is found when the first channel is opened (find_provider).
  explicit OpenChannels(Ref<ChannelProvider> provider) : provider_(std::move(provider)) {}

  // Implements hal.channel.create.
  Result<Ref<Channel>> open(const Channel::Options& options);

 private:
  struct Entry {
    std::optional<std::string> id;
    std::string group;
    int32_t rank;
    int32_t count;
    Ref<Channel> channel;
  };

  std::mutex mutex_;
  Ref<ChannelProvider> provider_;
  std::vector<Entry> entries_;
};

}  // namespace halyard::hal
