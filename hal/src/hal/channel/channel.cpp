// Turns, and calls to the provider.
#include "hal/channel/channel.h"

#include <algorithm>
#include <chrono>

#include "base/work_scope.h"

namespace halyard::hal {

const ObjectType Channel::kType = object_type<Channel>("hal.channel");

Result<Ref<Channel>> Channel::open(const Ref<ChannelProvider>& provider, const Options& options) {
  halyard_channel_open_args_t args = {};
  args.struct_size = sizeof args;
  args.rank = options.rank;
  args.count = options.count;
  args.has_id = options.id.has_value();
  if (options.id) args.id = {options.id->data(), options.id->size()};
  args.group = {options.group.data(), options.group.size()};
  std::string label(options.id.value_or("default"));
  if (!options.group.empty()) label.append("/").append(options.group);
  Ref<Channel> channel = make<Channel>(provider, std::move(label));
  HALYARD_TRY(provider->check_origin());
  halyard_provider_channel_t handle = nullptr;
  if (Status status = Status::adopt(provider->table().channel_open(provider->handle(), &args, &handle)))
    return std::unexpected(std::move(status).note(fmt::format("while opening {}", channel->name_)));
  if (!handle)
    return halyard::fail(Code::INTERNAL, "'{}' opened {} but gave no handle", provider->name(),
                         channel->name_);
  channel->opened(handle);
  return channel;
}

Result<Ref<Channel>> Channel::split(int32_t color, int32_t key) {
  Ref<Channel> child;
  {
    const std::lock_guard lock(mutex_);
    const uint32_t number = splits_++;
    if (color != -1) child = make<Channel>(provider_, fmt::format("{}.{}", label_, number));
  }
  if (child) child->base_ = Ref<Channel>::share(this);
  at_turn(draw_ticket(), [base = Ref<Channel>::share(this), child, color, key] {
    halyard_provider_channel_t handle = nullptr;
    Status status = base->broken_;
    if (status.ok()) status = Status::adopt(base->table().channel_split(base->handle_, color, key, &handle));
    if (!child) return;
    if (status)
      return child->opened(std::unexpected(std::move(status).note("while splitting " + base->name_)));
    child->opened(handle);
  });
  return child;
}

Status Channel::submit(const halyard_collective_t& collective) {
  if (broken_) return broken_;
  if (Result<> here = provider_->check_origin(); !here) return here.error();
  return Status::adopt(table().submit(handle_, &collective));
}

void Channel::opened(Result<halyard_provider_channel_t> handle) {
  std::unique_lock lock(mutex_);
  if (handle) {
    handle_ = *handle;
  } else {
    broken_ = std::move(handle.error());
  }
  is_open_ = true;
  opened_.notify_all();
  take_turns(lock);
}

Result<Place> Channel::place(const uint32_t* stop) {
  std::unique_lock lock(mutex_);
  if (place_) return *place_;
  while (!is_open_) {
    constexpr auto kLook = std::chrono::milliseconds(10);
    opened_.wait_for(lock, kLook);
    if (const Code code = stop_code(stop); code != Code::OK && !is_open_)
      return halyard::fail(code, "stopped while {} waited for its turn to be split off", name_);
  }
  if (broken_) return std::unexpected(broken_);
  lock.unlock();
  Place place;
  if (Status status = Status::adopt(table().channel_place(handle_, stop, &place.rank, &place.count)))
    return std::unexpected(std::move(status).note(fmt::format("while the ranks of {} were awaited", name_)));
  if (place.rank >= place.count)
    return halyard::fail(Code::INTERNAL, "'{}' says that this is rank {} of the {} ranks of {}",
                         provider_->name(), place.rank, place.count, name_);
  lock.lock();
  place_ = place;
  return place;
}

uint64_t Channel::draw_ticket() {
  const std::lock_guard lock(mutex_);
  return next_ticket_++;
}

void Channel::at_turn(uint64_t ticket, std::move_only_function<void()> act) {
  std::unique_lock lock(mutex_);
  waiting_.emplace(ticket, std::move(act));
  take_turns(lock);
}

// The provider may complete a collective before submit() returns, and the completion may call this function
// again. The nested call then returns, and the outer call continues.
void Channel::take_turns(std::unique_lock<std::mutex>& lock) {
  if (is_taken_ || !is_open_) return;
  is_taken_ = true;
  const auto keep = Ref<Channel>::share(this);  // `act` may hold the last reference
  while (!waiting_.empty() && waiting_.begin()->first == turn_) {
    auto act = std::move(waiting_.extract(waiting_.begin()).mapped());
    ++turn_;
    lock.unlock();
    act();
    act = nullptr;
    lock.lock();
  }
  is_taken_ = false;
  lock.unlock();
}

void Channel::fail(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!handle_) return;
  }
  table().channel_fail(handle_, Status(status).release());
}

void Channel::trace(Tracer* tracer, std::string_view text, uint64_t begin, uint64_t end) noexcept {
  if (!tracer) return;
  const std::lock_guard lock(mutex_);
  if (!track_) track_ = tracer->add_track(name_);
  // Slices of a track must not overlap, but collectives that begin together do.
  begin = std::max(begin, traced_until_);
  end = std::max(begin, end);
  traced_until_ = end;
  tracer->span_on(*track_, TraceCategory::device, text, begin, end);
}

Channel::~Channel() {
  if (handle_ && !provider_->origin().is_inherited()) table().channel_close(handle_);
}

}  // namespace halyard::hal
