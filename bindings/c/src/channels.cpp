// Channels in the C ABI.
#include "halyard/channels.h"

#include "hal/channel/find_provider.h"
#include "hal/channel/local_world.h"
#include "hal/channel/provider.h"
#include "handles.h"
#include "made_here.h"

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_launch_detect(halyard_launch_t* out) {
  return guarded([&]() -> Result<> {
    const hal::Launch launch = hal::detect_launch();
    halyard_launch_t given = {};
    given.is_launched = launch.is_launched();
    given.rank = launch.rank;
    given.count = launch.count;
    given.local_rank = launch.local_rank;
    given.local_count = launch.local_count;
    launch.launcher.copy(given.launcher, sizeof given.launcher - 1);
    return fill_info(out, given, "out");
  });
}

halyard_status_t halyard_channels_create(const halyard_channels_options_t* options, halyard_channels_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    halyard_channels_options_t known = HALYARD_TRY(known_fields(options));
    HALYARD_TRY(check_reserved(known.reserved, "halyard_channels_options_t"));
    if (!options) known.rank = known.rank_count = -1;
    Ref<hal::ChannelProvider> provider = HALYARD_TRY(
        known.library && *known.library ? hal::ChannelProvider::open(known.library, known.timeout_ns)
                                        : hal::find_provider(hal::detect_launch(), known.timeout_ns));
    // A rank that the caller sets need not match the launcher.
    if (known.rank < 0 || known.rank_count < 0) HALYARD_TRY(provider->check_launch(hal::detect_launch()));
    const halyard_channel_world_t world = HALYARD_TRY(provider->world());
    if ((known.rank >= 0 && static_cast<uint32_t>(known.rank) != world.rank) ||
        (known.rank_count >= 0 && static_cast<uint32_t>(known.rank_count) != world.count))
      return fail(
          Code::FAILED_PRECONDITION,
          "expected to be rank {} of {} (-1: any), found rank {} of {} ({}); start the ranks with their "
          "launcher, as in: mpirun -n {} ...",
          known.rank, known.rank_count, world.rank, world.count, provider->name(),
          known.rank_count > 0 ? known.rank_count : 2);
    note_made(provider.get());
    if (known.timeout_ns != 0) provider->set_timeout(known.timeout_ns);
    *out = give<halyard_channels_t>(std::move(provider));
    return {};
  });
}

halyard_status_t halyard_channels_create_local(uint32_t count, halyard_channels_t* out) {
  constexpr uint32_t kMaxRanks = 65535;  // threads of one process
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    if (count == 0 || count > kMaxRanks)
      return fail(Code::INVALID_ARGUMENT, "expected a world of 1 to {} ranks, found a count of {}", kMaxRanks,
                  count);
    const Ref<hal::LocalWorld> world = hal::LocalWorld::create(count);
    std::vector<Ref<hal::ChannelProvider>> providers;
    for (uint32_t rank = 0; rank < count; ++rank) {
      providers.push_back(world->provider(rank));
      note_made(providers.back().get());
    }
    for (uint32_t rank = 0; rank < count; ++rank)
      out[rank] = give<halyard_channels_t>(std::move(providers[rank]));
    return {};
  });
}

halyard_status_t halyard_channels_world(halyard_channels_t channels, halyard_channels_world_t* world) {
  return guarded([&]() -> Result<> {
    const halyard_channel_world_t known =
        HALYARD_TRY(HALYARD_TRY(checked<hal::ChannelProvider>(channels))->world());
    halyard_channels_world_t given = {};
    given.rank = known.rank;
    given.count = known.count;
    given.local_rank = known.local_rank;
    given.local_count = known.local_count;
    given.description = known.description;
    return fill_info(world, given, "world");
  });
}

halyard_status_t halyard_channels_set_timeout(halyard_channels_t channels, uint64_t timeout_ns) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(checked<hal::ChannelProvider>(channels))->set_timeout(timeout_ns);
    return {};
  });
}

halyard_status_t halyard_channels_import(halyard_channels_t channels, const char* id, const char* kind,
                                         uint64_t handle) {
  return guarded([&]() -> Result<> {
    const std::string_view known_id = HALYARD_TRY(given_text(id, "id"));
    return HALYARD_TRY(checked<hal::ChannelProvider>(channels))
        ->import(known_id, HALYARD_TRY(given_text(kind, "kind")), handle);
  });
}
