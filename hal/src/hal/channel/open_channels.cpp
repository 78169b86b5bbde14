// Searches a list, because programs have few channels.
#include "hal/channel/open_channels.h"

#include "hal/channel/find_provider.h"

namespace halyard::hal {

Result<Ref<Channel>> OpenChannels::open(const Channel::Options& options) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.id == options.id && entry.group == options.group && entry.rank == options.rank &&
        entry.count == options.count)
      return entry.channel;
  if (!provider_) {
    const Launch launch = detect_launch();
    Ref<ChannelProvider> found = HALYARD_TRY(find_provider(launch));
    HALYARD_TRY(found->check_launch(launch));
    provider_ = std::move(found);
  }
  Ref<Channel> channel = HALYARD_TRY(Channel::open(provider_, options));
  Entry& entry = entries_.emplace_back();
  if (options.id) entry.id = std::string(*options.id);
  entry.group = options.group;
  entry.rank = options.rank;
  entry.count = options.count;
  entry.channel = channel;
  return channel;
}

}  // namespace halyard::hal
