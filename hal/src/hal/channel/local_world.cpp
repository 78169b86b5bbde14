// The function table, implemented with groups.
#include "hal/channel/local_world.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "base/c_boundary.h"
#include "base/tracer.h"
#include "base/work_scope.h"
#include "hal/channel/local_group.h"

namespace halyard::hal {

const ObjectType LocalWorld::kType = object_type<LocalWorld>("hal.local_world");

namespace {

constexpr auto kLook = std::chrono::milliseconds(5);  // how often stop words are checked

struct Key {
  bool has_id;
  std::string id;
  std::string group;
  uint32_t count;
  auto operator<=>(const Key&) const = default;
};

}  // namespace

struct LocalWorld::State {
  explicit State(uint32_t world_count) : count(world_count) {}

  const uint32_t count;
  std::mutex mutex;  // guards the members below, and all groups and members
  std::condition_variable changed;
  // A rank's n-th opening of a key joins the n-th group of the key.
  std::map<Key, std::vector<std::weak_ptr<LocalGroup>>> groups;
  std::map<std::pair<Key, uint32_t>, size_t> openings;
  std::list<std::weak_ptr<LocalGroup>> watched;         // groups with stop words or time limits
  std::list<std::weak_ptr<LocalMember>> watched_early;  // members whose queued parts have some
  std::thread watcher;
  bool ends = false;
  bool is_left_to_watcher = false;  // which then destroys this object

  // Begins the queued parts of members whose group is known now. This may complete more splits.
  void begin_queued(LocalOutcome& outcome) {
    while (!outcome.resolved.empty()) {
      const std::shared_ptr<LocalMember> resolved = std::move(outcome.resolved.back());
      outcome.resolved.pop_back();
      LocalMember& member = *resolved;
      for (const LocalPart& part : std::exchange(member.queued, {})) {
        if (member.group) {
          add(resolved, part, outcome);
        } else if (!part.is_split) {
          outcome.completions.push_back({part.collective, member.broken});
        } else if (part.child) {
          part.child->broken = member.broken;
          outcome.resolved.push_back(part.child);
        }
      }
    }
    changed.notify_all();
  }

  void add(const std::shared_ptr<LocalMember>& shared, const LocalPart& part, LocalOutcome& outcome) {
    LocalMember& member = *shared;
    if (!member.group && !member.broken) return enqueue(shared, part);
    if (!part.is_split) {
      if (member.broken) return outcome.completions.push_back({part.collective, member.broken});
      return submit(member, part, outcome);
    }
    if (const Status& broken = member.broken ? member.broken : member.group->broken()) {
      if (part.child) {
        part.child->broken = broken;
        outcome.resolved.push_back(part.child);
      }
      return;
    }
    member.group->split(member.rank, part, outcome);
  }

  static bool may_stop(const LocalPart& part) {
    return !part.is_split && (part.collective.stop || part.collective.timeout_ns != 0);
  }

  void enqueue(const std::shared_ptr<LocalMember>& member, const LocalPart& part) {
    member->queued.push_back(part);
    member->queued.back().came = Tracer::now();
    if (may_stop(part)) watch(watched_early, member);
  }

  void submit(LocalMember& member, const LocalPart& part, LocalOutcome& outcome) {
    member.group->submit(member.rank, part.collective, outcome, part.came);
    if (may_stop(part)) watch(watched, member.group);
  }

  template <typename T>
  void watch(std::list<std::weak_ptr<T>>& all, const std::shared_ptr<T>& added) {
    for (const auto& known : all)
      if (known.lock() == added) return;
    all.push_back(added);
    if (!watcher.joinable())
      watcher = std::thread([this] {
        look();
        if (is_left_to_watcher) delete this;
      });
  }

  // Fails a member whose group is not known. The group fails when it is known.
  static void fail_early(const std::shared_ptr<LocalMember>& member, Status status, LocalOutcome& outcome) {
    if (member->group || member->broken) return;
    member->broken = std::move(status);
    outcome.resolved.push_back(member);
  }

  // Whether the member's group is not known, and its queued parts may wait for it.
  static bool is_waiting(const std::shared_ptr<LocalMember>& member, LocalOutcome& outcome) {
    if (member->group || member->broken) return false;
    for (const LocalPart& part : member->queued) {
      if (!may_stop(part)) continue;
      Status stop = stop_of(part.collective, part.came, "a channel that a split creates",
                            "the other ranks of the split");
      if (stop.ok()) continue;
      fail_early(member, std::move(stop), outcome);
      return false;
    }
    return true;
  }

  // Polls, because stop words change without a call.
  void look() {
    std::unique_lock lock(mutex);
    while (!ends) {
      if (watched.empty() && watched_early.empty()) {
        changed.wait(lock);
        continue;
      }
      changed.wait_for(lock, kLook);
      LocalOutcome outcome;
      watched.remove_if([&](const std::weak_ptr<LocalGroup>& known) {
        const std::shared_ptr<LocalGroup> group = known.lock();
        return !group || !group->check_stops(outcome);
      });
      watched_early.remove_if([&](const std::weak_ptr<LocalMember>& known) {
        const std::shared_ptr<LocalMember> member = known.lock();
        return !member || !is_waiting(member, outcome);
      });
      if (outcome.is_empty()) continue;
      begin_queued(outcome);
      lock.unlock();
      outcome.carry_out();
      lock.lock();
    }
  }
};

namespace {

using State = LocalWorld::State;

// The object behind a provider's handle.
struct Rank {
  State* world;
  uint32_t rank;
};
// The object behind a channel's handle. A split may resolve the member after the channel has been closed.
struct End {
  State* world;
  std::shared_ptr<LocalMember> shared = std::make_shared<LocalMember>();
  LocalMember& member = *shared;
};

Rank& rank_of(halyard_channel_provider_t handle) { return *reinterpret_cast<Rank*>(handle); }
End& end_of(halyard_provider_channel_t handle) { return *reinterpret_cast<End*>(handle); }
std::string_view view(halyard_text_t text) { return {text.data, text.size}; }

halyard_status_t initialize(const halyard_channel_init_args_t*, halyard_channel_provider_t*) noexcept {
  return nullptr;
}

void shutdown(halyard_channel_provider_t* handle) noexcept {
  delete &rank_of(*handle);
  *handle = nullptr;
}

halyard_status_t world(halyard_channel_provider_t handle, halyard_channel_world_t* world) noexcept {
  const Rank& rank = rank_of(handle);
  world->rank = world->local_rank = rank.rank;
  world->count = world->local_count = rank.world->count;
  world->description = "threads of one process";
  return nullptr;
}

Result<> open(const Rank& opener, const halyard_channel_open_args_t& args, halyard_provider_channel_t& out) {
  State& world = *opener.world;
  if (args.has_id && (args.rank < 0 || args.count < 0))
    return fail(
        Code::NOT_FOUND,
        "channel id '{}' is unknown in this process; expected none, or an id with the rank and count of "
        "each of its channels",
        view(args.id));
  const uint32_t count = args.count < 0 ? world.count : static_cast<uint32_t>(args.count);
  const uint32_t rank = args.rank < 0 ? opener.rank : static_cast<uint32_t>(args.rank);
  if (rank >= count)
    return fail(Code::INVALID_ARGUMENT, "expected a rank below the count of {}, found rank {}", count, rank);
  const Key key = {args.has_id != 0, std::string(view(args.id)), std::string(view(args.group)), count};
  auto end = std::make_unique<End>();
  end->world = &world;
  end->member.rank = rank;
  const std::lock_guard lock(world.mutex);
  std::vector<std::weak_ptr<LocalGroup>>& groups = world.groups[key];
  const size_t number = world.openings[{key, rank}]++;
  if (groups.size() <= number) groups.resize(number + 1);
  std::shared_ptr<LocalGroup> group = groups[number].lock();
  if (!group) {
    std::string label = key.has_id ? key.id : "default";
    if (!key.group.empty()) label += "/" + key.group;
    group = std::make_shared<LocalGroup>(std::move(label), count);
    groups[number] = group;
  }
  group->join(rank);
  end->member.group = std::move(group);
  out = reinterpret_cast<halyard_provider_channel_t>(end.release());
  return {};
}

halyard_status_t channel_open(halyard_channel_provider_t handle, const halyard_channel_open_args_t* args,
                              halyard_provider_channel_t* out) noexcept {
  return guarded([&] { return open(rank_of(handle), *args, *out); });
}

// Calls `change` under the lock of the world, then executes the outcome without the lock.
template <typename Change>
halyard_status_t changing(State& world, Change change) noexcept {
  return guarded([&]() -> Result<> {
    LocalOutcome outcome;
    {
      const std::lock_guard lock(world.mutex);
      HALYARD_TRY(change(outcome));
      world.begin_queued(outcome);
    }
    outcome.carry_out();
    return {};
  });
}

halyard_status_t channel_split(halyard_provider_channel_t handle, int32_t color, int32_t key,
                               halyard_provider_channel_t* out) noexcept {
  End& base = end_of(handle);
  return changing(*base.world, [&](LocalOutcome& outcome) -> Result<> {
    if (base.member.broken) return std::unexpected(base.member.broken);
    if (base.member.group && base.member.group->broken()) return std::unexpected(base.member.group->broken());
    LocalPart part;
    part.is_split = true;
    part.color = color;
    part.key = key;
    std::unique_ptr<End> child;
    if (color != -1) {
      child = std::make_unique<End>();
      child->world = base.world;
      part.child = child->shared;
    }
    base.world->add(base.shared, part, outcome);
    *out = reinterpret_cast<halyard_provider_channel_t>(child.release());
    return {};
  });
}

halyard_status_t channel_place(halyard_provider_channel_t handle, const uint32_t* stop, uint32_t* rank,
                               uint32_t* count) noexcept {
  return guarded([&]() -> Result<> {
    End& end = end_of(handle);
    std::unique_lock lock(end.world->mutex);
    while (!end.member.group && !end.member.broken) {
      end.world->changed.wait_for(lock, kLook);
      if (const Code code = stop_code(stop); code != Code::OK)
        return fail(code, "stopped while the other ranks of a split were awaited");
    }
    if (end.member.broken) return std::unexpected(end.member.broken);
    *rank = end.member.rank;
    *count = end.member.group->count();
    return {};
  });
}

void channel_close(halyard_provider_channel_t handle) noexcept {
  std::unique_ptr<End> end(&end_of(handle));
  Status ignored = Status::adopt(changing(*end->world, [&](LocalOutcome& outcome) -> Result<> {
    if (end->member.group) end->member.group->leave(end->member.rank, outcome);
    return {};
  }));
  const std::lock_guard lock(end->world->mutex);
  end->member.group = nullptr;
}

halyard_status_t submit(halyard_provider_channel_t handle, const halyard_collective_t* collective) noexcept {
  End& end = end_of(handle);
  return changing(*end.world, [&](LocalOutcome& outcome) -> Result<> {
    LocalPart part;
    part.collective = *collective;
    end.world->add(end.shared, part, outcome);
    return {};
  });
}

void channel_fail(halyard_provider_channel_t handle, halyard_status_t handed) noexcept {
  Status status = Status::adopt(handed);
  End& end = end_of(handle);
  Status ignored = Status::adopt(changing(*end.world, [&](LocalOutcome& outcome) -> Result<> {
    LocalGroup* const group = end.member.group.get();
    if (!group) {
      State::fail_early(end.shared, std::move(status), outcome);
      return {};
    }
    group->fail({status.code(), fmt::format("rank {} of channel '{}' has failed: {}", end.member.rank,
                                            group->label(), status.message())},
                outcome);
    return {};
  }));
}

constexpr halyard_channel_table_t kTable = {
    .struct_size = sizeof(halyard_channel_table_t),
    .initialize = initialize,
    .shutdown = shutdown,
    .world = world,
    .channel_open = channel_open,
    .import = nullptr,
    .channel_split = channel_split,
    .channel_place = channel_place,
    .channel_close = channel_close,
    .submit = submit,
    .channel_fail = channel_fail,
};

}  // namespace

LocalWorld::LocalWorld(std::unique_ptr<State> state) : state_(std::move(state)) {}

LocalWorld::~LocalWorld() {
  if (origin_.is_inherited()) {
    static_cast<void>(state_.release());
    return;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
    state_->changed.notify_all();
  }
  if (!state_->watcher.joinable()) return;
  if (state_->watcher.get_id() == std::this_thread::get_id()) {
    // The last reference was dropped in a callback of the watcher, which must not wait for itself.
    state_->watcher.detach();
    state_.release()->is_left_to_watcher = true;
    return;
  }
  state_->watcher.join();
}

Ref<LocalWorld> LocalWorld::create(uint32_t count) {
  return make<LocalWorld>(std::make_unique<State>(count));
}

Ref<ChannelProvider> LocalWorld::provider(uint32_t rank) {
  return ChannelProvider::built_in("in this process", kTable,
                                   reinterpret_cast<halyard_channel_provider_t>(new Rank{state_.get(), rank}),
                                   Ref<LocalWorld>::share(this));
}

}  // namespace halyard::hal
