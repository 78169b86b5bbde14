// The order of messages, the greeting, and the end of a connection.
#include "server/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "base/c_boundary.h"
#include "server/failures.h"

namespace halyard::device_server {

namespace {

constexpr size_t kFrameOverhead = 128;

size_t size_of(const remote::Frame& frame) { return frame.message_size + frame.data_size + kFrameOverhead; }

}  // namespace

void Sessions::add(std::weak_ptr<Session> session) {
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= next_cleaning_) {
    std::erase_if(sessions_, [](const auto& each) { return each.expired(); });
    next_cleaning_ = std::max<size_t>(64, 2 * sessions_.size());
  }
  sessions_.push_back(std::move(session));
}

std::vector<std::shared_ptr<Session>> Sessions::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Session>> existing;
  for (const auto& each : sessions_)
    if (auto session = each.lock()) existing.push_back(std::move(session));
  return existing;
}

Session::Session(Shared& shared, std::shared_ptr<remote::Stream> stream, std::string key, std::string name)
    : shared_(shared),
      stream_(std::move(stream)),
      key_(std::move(key)),
      name_(std::move(name)),
      timer_(shared.io),
      objects_(shared.limits.handles) {}

Session::~Session() {
  // The work of a client that is gone is stopped; the device keeps what it uses until it has ended.
  for (auto& [number, work] : in_flight_) work.scope->stop(Code::CANCELLED);
  // Work that waits for what nobody will signal ends, too.
  objects_.semaphores.for_each([](SemaphoreObject& object) { abandon(object); });
  if (client_) shared_.clients.end(*client_);
  // Not here, which may be a callback of the device.
  if (device_)
    boost::asio::post(shared_.io, [&devices = shared_.devices, device = std::move(device_)]() mutable {
      devices.close(*device);
      device = nullptr;
    });
}

void Session::start() {
  shared_.sessions.add(weak_from_this());
  stream_->start(shared_from_this());
  tick();
}

void Session::end(const Status& why) {
  send([&](remote::Message& message) {
    const auto status = remote::add_status(message, to_wire(why));
    return wire::CreateRefused(message.builder(), status);
  });
  is_over_.store(true, std::memory_order_relaxed);
  stream_->end(to_wire(why));
}

void Session::stop_work(Code code) {
  std::vector<Ref<WorkScope>> scopes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, work] : in_flight_) scopes.push_back(work.scope);
    if (loading_scope_) scopes.push_back(loading_scope_);
  }
  for (const Ref<WorkScope>& scope : scopes) scope->stop(code);
}

// ---- Time. The timer is touched under the lock, because several threads may do so.

void Session::tick() {
  const std::lock_guard lock(mutex_);
  if (is_lost_) return;
  timer_.expires_after(std::chrono::milliseconds(100));
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const std::shared_ptr<Session> self = weak.lock();
    if (error || !self) return;
    self->look_around();
    self->tick();
  });
}

void Session::look_around() {
  const Limits& limits = shared_.limits;
  const Clock::time_point now = Clock::now();
  bool is_greeted = false;
  {
    const std::lock_guard lock(mutex_);
    is_greeted = bool(device_);
    stop_late_work(now);
  }
  if (!is_greeted && now - begin_ > limits.greeting) {
    end(Status(Code::DEADLINE_EXCEEDED, fmt::format("no greeting within {} ms", limits.greeting.count())));
  } else if (now - stream_->last_received() > limits.silence) {
    end(Status(Code::DEADLINE_EXCEEDED, fmt::format("no message within {} ms", limits.silence.count())));
  }
}

Session::Clock::time_point Session::deadline_of_work() const {
  const auto limit = shared_.limits.work_time;
  return limit.count() > 0 ? Clock::now() + limit : Clock::time_point::max();
}

// Under the lock.
void Session::stop_late_work(Clock::time_point now) {
  for (const auto& [number, work] : in_flight_)
    if (now > work.deadline) work.scope->stop(Code::DEADLINE_EXCEEDED);
  if (loading_scope_ && now > loading_deadline_) loading_scope_->stop(Code::DEADLINE_EXCEEDED);
}

bool Session::await_receiver() {
  constexpr size_t kUnderWay = 8 << 20;
  const Clock::time_point begin = Clock::now();
  for (size_t least = SIZE_MAX; !is_over_.load(std::memory_order_relaxed) && !stream_->is_ended();) {
    const size_t queued = stream_->queued();
    if (queued <= kUnderWay) return true;
    if (Clock::now() - begin > shared_.limits.silence && queued >= least) {
      end(Status(Code::DEADLINE_EXCEEDED, "the client does not receive what it has asked for"));
      return false;
    }
    least = std::min(least, queued);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// ---- The order of messages

bool Session::received(remote::Frame frame) {
  shared_.counts.received_bytes.fetch_add(size_of(frame), std::memory_order_relaxed);
  const wire::ToServer* const message = remote::verified_to_server(frame.message());
  if (message && handle_at_once(*message)) return true;
  const std::lock_guard lock(mutex_);
  backlog_bytes_ += size_of(frame);
  backlog_.push_back(std::move(frame));
  return backlog_bytes_ <= shared_.limits.backlog;
}

bool Session::handle_at_once(const wire::ToServer& message) {
  if (message.body_type() == wire::ToServerBody::Ping) {
    send([](remote::Message& pong) { return wire::CreatePong(pong.builder()); });
    return true;
  }
  const wire::Stop* const stop = message.body_as_Stop();
  if (!stop) return false;
  const Code code = stop->code() == HALYARD_DEADLINE_EXCEEDED ? Code::DEADLINE_EXCEEDED : Code::CANCELLED;
  const std::lock_guard lock(mutex_);
  if (const auto found = in_flight_.find(stop->submission()); found != in_flight_.end())
    found->second.scope->stop(code);
  if (loading_ == stop->submission() && loading_scope_) loading_scope_->stop(code);
  return true;
}

void Session::received_some() {
  {
    std::unique_lock lock(mutex_);
    if (is_handling_) return;
    is_handling_ = true;
    handle_all(lock);
    is_handling_ = false;
  }
  stream_->resume();
}

void Session::handle_all(std::unique_lock<std::mutex>& lock) {
  while (!backlog_.empty() && !is_lost_) {
    const remote::Frame frame = std::move(backlog_.front());
    backlog_.pop_front();
    backlog_bytes_ -= size_of(frame);
    lock.unlock();
    const Status status = outcome_of([&] { return handle(frame); });
    if (!status.ok()) {
      shared_.counts.broken.fetch_add(1, std::memory_order_relaxed);
      shared_.log(
          fmt::format("client '{}' ({}): {}", name_, remote::peer_text(stream_->socket()), status.text()));
      end(status);
    }
    lock.lock();
    if (!status.ok()) is_lost_ = true;
  }
  if (is_lost_) backlog_.clear();
}

Result<> Session::handle(const remote::Frame& frame) {
  const wire::ToServer* const message = remote::verified_to_server(frame.message());
  if (!message)
    return fail(Code::INVALID_ARGUMENT, "expected a message of this protocol, found {} other bytes",
                frame.message_size);
  if (message->body_type() == wire::ToServerBody::Hello) return greet(*message->body_as_Hello());
  if (!device_) return fail(Code::UNAUTHENTICATED, "expected a greeting as the first message");
  const remote::Bytes data = frame.bytes();
  switch (message->body_type()) {
#define DEVICE_SERVER_MESSAGE(Name, ...) \
  case wire::ToServerBody::Name:         \
    return on(*message->body_as_##Name() __VA_OPT__(, ) __VA_ARGS__);
    DEVICE_SERVER_MESSAGE(Query)
    DEVICE_SERVER_MESSAGE(Grade, data)
    DEVICE_SERVER_MESSAGE(MemoryCreate)
    DEVICE_SERVER_MESSAGE(MemoryImport)
    DEVICE_SERVER_MESSAGE(MemoryDestroy)
    DEVICE_SERVER_MESSAGE(MemoryWrite, data)
    DEVICE_SERVER_MESSAGE(MemoryRead)
    DEVICE_SERVER_MESSAGE(MemoryWatch)
    DEVICE_SERVER_MESSAGE(Credit)
    DEVICE_SERVER_MESSAGE(SemaphoreCreate)
    DEVICE_SERVER_MESSAGE(SemaphoreDestroy)
    DEVICE_SERVER_MESSAGE(SemaphoreSignal)
    DEVICE_SERVER_MESSAGE(SemaphoreFail)
    DEVICE_SERVER_MESSAGE(BlobWrite, data)
    DEVICE_SERVER_MESSAGE(ExecutableCreate)
    DEVICE_SERVER_MESSAGE(ListCreate)
    DEVICE_SERVER_MESSAGE(StageWrite, data)
    DEVICE_SERVER_MESSAGE(Submit, data)
#undef DEVICE_SERVER_MESSAGE
    case wire::ToServerBody::ExecutableDestroy:
      return objects_.executables.destroy(message->body_as_ExecutableDestroy()->id());
    case wire::ToServerBody::ListDestroy:
      return objects_.lists.destroy(message->body_as_ListDestroy()->id());
    case wire::ToServerBody::Trim:
      (void)device_->trim();
      return {};
    case wire::ToServerBody::Goodbye:
      stream_->end({HALYARD_CANCELLED, "the client has closed the device"});
      return {};
    default:
      return fail(Code::UNIMPLEMENTED, "a message of kind {} is unknown",
                  static_cast<unsigned>(message->body_type()));
  }
}

// ---- The greeting

Result<> Session::greet(const wire::Hello& hello) {
  if (device_) return fail(Code::INVALID_ARGUMENT, "expected one greeting, found another one");
  if (const remote::Tls* const tls = stream_->tls()) {
    const std::lock_guard lock(mutex_);
    key_ = "tls:" + tls->peer_digest();
    name_ = "CN=" + tls->peer_name();
  }
  const remote::Result<uint32_t> version = remote::negotiate(hello.oldest(), hello.newest());
  if (!version) return fail(static_cast<Code>(version.error().code), "{}", version.error().message);
  std::shared_ptr<Client> client = HALYARD_TRY(shared_.clients.begin(key_, name_));
  {
    const std::lock_guard lock(mutex_);
    client_ = std::move(client);
  }
  // Not a broken protocol, but nothing can be done without a device.
  Ref<hal::Device> device = HALYARD_TRY(shared_.devices.open(remote::view(hello.device()), key_));
  {
    const std::lock_guard lock(mutex_);
    device_ = device;
  }
  shared_.log(
      fmt::format("client '{}' ({}) uses '{}'", name_, remote::peer_text(stream_->socket()), device->uri()));
  const halyard_device_properties_t& known = device->properties();
  send([&](remote::Message& message) {
    const auto properties = wire::CreateProperties(message.builder(), known.capabilities, known.queue_count,
                                                   known.memory_alignment,
                                                   std::min(known.maximum_allocation, shared_.limits.memory));
    const auto uri = message.text(device->uri());
    return wire::CreateWelcome(message.builder(), *version, properties, uri, message.text(HALYARD_VERSION));
  });
  return {};
}

void Session::lost(const remote::Failure& reason) {
  is_over_.store(true, std::memory_order_relaxed);
  std::unordered_map<uint64_t, Ref<hal::Buffer>> watched;
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    is_lost_ = true;
    watched.swap(watched_);
    timer_.cancel();
    if (client_) line = fmt::format("client '{}' has gone: {}", name_, reason.message);
  }
  stop_work(Code::CANCELLED);
  if (!line.empty()) shared_.log(line);
}

void Session::done(uint64_t request, const Status& status) {
  send([&](remote::Message& message) {
    const auto failure =
        status.ok() ? flatbuffers::Offset<wire::Status>() : remote::add_status(message, to_wire(status));
    return wire::CreateDone(message.builder(), request, failure);
  });
}

}  // namespace halyard::device_server
