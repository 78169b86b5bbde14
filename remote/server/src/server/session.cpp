// The order of messages, the greeting, and the end of a connection.
#include "server/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <new>
#include <thread>
#include <utility>

#include "base/c_boundary.h"
#include "hal/queue/wait.h"
#include "server/failures.h"

namespace halyard::device_server {

namespace {

constexpr size_t kFrameOverhead = 128;
constexpr std::chrono::microseconds kLongBatch{500};
// When this thread has begun to handle messages that came together.
thread_local Session::Clock::time_point batch_begin;
constexpr size_t kUncharged = 64 << 10;  // bytes that may wait for a client without being charged
constexpr size_t kUnderWay = 8 << 20;    // bytes that are sent before the client is awaited
constexpr size_t kQuickBytes = 1 << 20;  // are copied, cleared or hashed in a moment

size_t size_of(const remote::Frame& frame) { return frame.message_size + frame.data_size + kFrameOverhead; }

}  // namespace

thread_local const Session* Session::batching = nullptr;

void Sessions::add(std::weak_ptr<Session> session) {
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= next_cleaning_) {
    std::erase_if(sessions_, [](const auto& each) { return each.expired(); });
    next_cleaning_ = std::max<size_t>(64, 2 * sessions_.size());
  }
  sessions_.push_back(std::move(session));
}

void Strangers::add(const std::shared_ptr<Session>& session) {
  std::shared_ptr<Session> oldest;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(sessions_, [](const std::weak_ptr<Session>& each) {
      const std::shared_ptr<Session> existing = each.lock();
      return !existing || existing->is_known() || existing->is_over();
    });
    if (sessions_.size() >= most_) {
      oldest = sessions_.front().lock();
      sessions_.pop_front();
    }
    sessions_.push_back(session);
  }
  if (oldest)
    oldest->end(Status(Code::UNAVAILABLE,
                       fmt::format("the server has ended the connection, because {}", kWhyStrangersEnd)));
}

std::vector<std::shared_ptr<Session>> Sessions::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Session>> existing;
  for (const auto& each : sessions_)
    if (auto session = each.lock()) existing.push_back(std::move(session));
  return existing;
}

Session::Session(Shared& shared, ReceivingThread& receiver, std::shared_ptr<remote::Stream> stream,
                 std::string key, std::string name)
    : shared_(shared),
      receiver_(receiver),
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
  if (spans_) client_->is_traced.store(false);
  if (client_) shared_.clients->end(*client_);
  // Not here, which may be a callback of the device.
  if (device_)
    boost::asio::post(shared_.io, [&devices = shared_.devices, device = std::move(device_)]() mutable {
      devices.close(*device);
      device = nullptr;
    });
}

void Session::start() {
  shared_.sessions.add(weak_from_this());
  stream_->set_largest(static_cast<uint32_t>(shared_.limits.of_stranger));
  stream_->start(shared_from_this());
  tick();
}

void Session::refuse(const Status& why) {
  end(why);
  shared_.lost();
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
  (void)charge_unsent();                   // the client may have received some
  if (stream_->is_paused()) send_pong(0);  // it cannot ask for signs of life
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

bool Session::has_stuck_work(std::chrono::milliseconds patience) {
  if (shared_.limits.work_time.count() == 0) return false;
  const Clock::time_point latest = Clock::now() - patience;
  // Work that still waits fails when it begins.
  const auto has_begun = [](const Work& work) {
    if (!work.wait) return true;
    hal::Fence* const wait[] = {work.wait.get()};
    const Result<bool> reached = hal::are_reached(wait);
    return !reached || *reached;
  };
  const std::lock_guard lock(mutex_);
  return (loading_scope_ && loading_deadline_ < latest) ||
         std::ranges::any_of(in_flight_, [&](const auto& each) {
           return each.second.deadline < latest && has_begun(each.second);
         });
}

bool Session::charge_unsent() {
  const size_t waiting = stream_->queued_copies();
  const size_t charged = waiting <= kUncharged ? 0 : waiting;
  const std::lock_guard lock(unsent_mutex_);
  unsent_charge_.shrink_to(charged);
  return unsent_charge_.grow_to(charged, "bytes that wait for the client").has_value();
}

bool Session::has_much_unsent() const { return stream_->queued() > kUnderWay; }

bool Session::await_receiver() {
  if (batching == this) return true;  // a thread that receives for other clients, too, and a short answer
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

bool Session::received(remote::Frame& frame) {
  receiver_.polling.arrived();
  shared_.counts.received_bytes.fetch_add(size_of(frame), std::memory_order_relaxed);
  if (placed_) {
    placed_->unmap();
    placed_ = nullptr;
    const wire::MemoryWrite& written = *flatbuffers::GetRoot<wire::ToServer>(frame.message().data())
                                            ->body_as_MemoryWrite();  // as place() has verified
    if (const Result<MemoryObject*> memory = objects_.memories.find(written.id()))
      advance_written(**memory, written.offset(), frame.data_size);
    return true;
  }
  if (is_over_.load(std::memory_order_relaxed)) return true;
  const wire::ToServer* const message = remote::verified_to_server(frame.message());
  if (!std::exchange(has_greeted_, true) && !(message && message->body_as_Hello())) {
    handle_or_end(message, frame);
    return true;
  }
  if (message && handle_at_once(*message)) return true;
  if (batching != this) batch_begin = Clock::now();
  batching = this;
  if (!is_in_pool_.load(std::memory_order_acquire) && message && is_quick(*message, frame)) {
    if (!is_lost_.load(std::memory_order_relaxed)) handle_or_end(message, frame);
    return true;
  }
  const std::lock_guard lock(mutex_);
  backlog_bytes_ += size_of(frame);
  backlog_.push_back({message, std::move(frame)});
  if (!is_in_pool_.exchange(true))
    boost::asio::post(shared_.io, [self = shared_from_this()] { self->handle_backlog(); });
  // Without memory the client waits until these messages have been handled.
  const bool has_room = backlog_charge_.grow_to(backlog_bytes_, "messages that wait").has_value();
  return has_room && backlog_bytes_ <= (is_known() ? shared_.limits.backlog : shared_.limits.of_stranger);
}

void Session::send_pong(uint64_t request) {
  send([&](remote::Message& message) {
    return wire::CreatePong(message.builder(), request, request != 0 ? Tracer::now() : 0);
  });
}

bool Session::handle_at_once(const wire::ToServer& message) {
  if (const wire::Ping* const ping = message.body_as_Ping()) {
    send_pong(ping->request());
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

// This thread runs short work of the client itself, because waking another one takes longer.
void Session::received_some(bool more) {
  const Status finished = outcome_of([&] { return finish_begun(), Result<>(); });
  batching = nullptr;
  if (!finished.ok()) stream_->end(to_wire(finished));
  // Answers leave together with those to messages that are here already, unless that would take long.
  if (!more || Clock::now() - batch_begin > kLongBatch) stream_->flush();
  // The pool may have handled the backlog before the stream was paused for it.
  if (!is_in_pool_.load()) stream_->resume();
}

void Session::handle_or_end(const wire::ToServer* message, const remote::Frame& frame) {
  if (is_over_.load(std::memory_order_relaxed)) return;
  const Status status = outcome_of([&] { return handle(message, frame); });
  if (status.ok()) return;
  shared_.counts.broken.fetch_add(1, std::memory_order_relaxed);
  shared_.log(
      fmt::format("client '{}' ({}): {}", name_, remote::peer_text(stream_->socket()), status.text()));
  end(status);
  is_lost_.store(true);
}

void Session::handle_backlog() {
  std::unique_lock lock(mutex_);
  while (!backlog_.empty() && !is_lost_.load()) {
    const Waiting next = std::move(backlog_.front());
    backlog_.pop_front();
    backlog_bytes_ -= size_of(next.frame);
    backlog_charge_.shrink_to(backlog_bytes_);
    lock.unlock();
    handle_or_end(next.message, next.frame);
    lock.lock();
  }
  if (is_lost_.load()) {
    backlog_.clear();
    backlog_bytes_ = 0;
    backlog_charge_.shrink_to(0);
  }
  is_in_pool_.store(false);
  lock.unlock();
  stream_->resume();
}

bool Session::is_unwritten(uint64_t number) {
  const Result<MemoryObject*> memory = objects_.memories.find(number);
  return memory && (*memory)->unwritten != UINT64_MAX;
}

bool Session::has_unwritten() {
  while (!unwritten_.empty() && !is_unwritten(unwritten_.back())) unwritten_.pop_back();
  return !unwritten_.empty();
}

bool Session::is_quick(const wire::ToServer& message, const remote::Frame& frame) {
  if (!device_) return false;  // opening it may take long
  const uint32_t capabilities = device_->properties().capabilities;
  const auto is_mapped = [&](uint64_t number) {
    const Result<MemoryObject*> memory = objects_.memories.find(number);
    return !memory || !(*memory)->buffer || (*memory)->buffer->is_mappable();
  };
  // Bytes that the client has not written are cleared before the memory is used.
  const auto clears_much = [&](uint64_t number) {
    const Result<MemoryObject*> memory = objects_.memories.find(number);
    return memory && (*memory)->unwritten != UINT64_MAX &&
           (*memory)->buffer->length() - (*memory)->unwritten > kQuickBytes;
  };
  switch (message.body_type()) {
    case wire::ToServerBody::MemoryCreate: {
      const wire::Request* const asked = message.body_as_MemoryCreate()->memory();
      return !asked || asked->size() <= kQuickBytes || asked->owner() == HALYARD_OWNER_WRITES_ALL;
    }
    case wire::ToServerBody::MemoryImport:
      if (message.body_as_MemoryImport()->file()) return false;
      return (capabilities & HALYARD_DEVICE_WRITES_CONSTANTS) != 0;
    case wire::ToServerBody::MemoryWrite: {
      const wire::MemoryWrite& asked = *message.body_as_MemoryWrite();
      const Result<MemoryObject*> memory = objects_.memories.find(asked.id());
      const bool is_next = memory && (*memory)->unwritten == asked.offset();
      return is_mapped(asked.id()) && (is_next || !clears_much(asked.id()));
    }
    case wire::ToServerBody::MemoryRead: {
      const uint64_t memory = message.body_as_MemoryRead()->id();
      return is_mapped(memory) && !clears_much(memory);
    }
    case wire::ToServerBody::Credit: {
      const auto found = readings_.find(message.body_as_Credit()->request());
      return found == readings_.end() || found->second.buffer->is_mappable();
    }
    case wire::ToServerBody::BlobWrite:
      return message.body_as_BlobWrite()->size() <= kQuickBytes;
    case wire::ToServerBody::ListCreate:
      return frame.message_size <= kQuickBytes && !has_unwritten();
    // Work may begin, on this thread if the device runs it there.
    case wire::ToServerBody::Submit:
      return (capabilities & HALYARD_DEVICE_RUNS_IN_CALLER) == 0 && !has_unwritten();
    case wire::ToServerBody::SemaphoreSignal:
    case wire::ToServerBody::SemaphoreFail:
    case wire::ToServerBody::SemaphoreDestroy:
    case wire::ToServerBody::Destroy:
      return (capabilities & HALYARD_DEVICE_RUNS_IN_CALLER) == 0;
    case wire::ToServerBody::MemoryWatch:
      return !clears_much(message.body_as_MemoryWatch()->id());
    case wire::ToServerBody::Query:
    case wire::ToServerBody::BlobsWanted:
    case wire::ToServerBody::MemoryDestroy:
    case wire::ToServerBody::SemaphoreCreate:
    case wire::ToServerBody::StageWrite:
    case wire::ToServerBody::ListDestroy:
    case wire::ToServerBody::ExecutableDestroy:
      return true;
    default:
      return false;
  }
}

// The bytes of a write go straight to the memory.
std::span<uint8_t> Session::place(remote::Bytes bytes, size_t size) {
  if (is_in_pool_.load(std::memory_order_acquire) || is_over_.load(std::memory_order_relaxed) || !device_)
    return {};
  const wire::ToServer* const message = remote::verified_to_server(bytes);
  const wire::MemoryWrite* const asked = message ? message->body_as_MemoryWrite() : nullptr;
  if (!asked) return {};
  const Result<MemoryObject*> memory = objects_.memories.find(asked->id());
  if (!memory || !(*memory)->failure.ok() || !(*memory)->buffer->is_mappable()) return {};
  if ((*memory)->unwritten != UINT64_MAX && (*memory)->unwritten != asked->offset()) return {};
  hal::Buffer& buffer = *(*memory)->buffer;
  if (!(buffer.access() & hal::kWrite) || !buffer.check_range(asked->offset(), size)) return {};
  const Result<std::span<uint8_t>> mapped = buffer.map();
  if (!mapped) return {};
  placed_ = Ref<hal::Allocation>::share(&buffer.allocation());
  return mapped->subspan(asked->offset(), size);
}

Result<> Session::handle(const wire::ToServer* message, const remote::Frame& frame) {
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
    DEVICE_SERVER_MESSAGE(BlobsWanted)
    DEVICE_SERVER_MESSAGE(MemoryDestroy)
    DEVICE_SERVER_MESSAGE(MemoryWrite, data)
    DEVICE_SERVER_MESSAGE(MemoryRead)
    DEVICE_SERVER_MESSAGE(MemoryWatch)
    DEVICE_SERVER_MESSAGE(Credit)
    DEVICE_SERVER_MESSAGE(SemaphoreCreate)
    DEVICE_SERVER_MESSAGE(SemaphoreDestroy)
    DEVICE_SERVER_MESSAGE(Destroy)
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
  version_ = *version;
  std::shared_ptr<Client> client = HALYARD_TRY(shared_.clients->begin(key_, name_));
  {
    const std::lock_guard lock(mutex_);
    client_ = std::move(client);
    backlog_charge_ = Charge(client_->memory);
  }
  {
    const std::lock_guard lock(unsent_mutex_);
    unsent_charge_ = Charge(client_->memory);
  }
  is_known_.store(true);
  stream_->set_largest(remote::kMaxMessage);
  // Not a broken protocol, but nothing can be done without a device.
  // The spans of a device that others use would show this client their work.
  if (*version >= remote::kVersionWithTraces && hello.trace() && !client_->is_traced.exchange(true))
    spans_ = HALYARD_TRY(Spans::create());
  const std::string_view wanted = remote::view(hello.device());
  bool counts = false;
  if (hello.options())
    for (const wire::Option* const option : *hello.options())
      counts |= remote::view(option->key()) == "profile" && remote::view(option->value()) == "1";
  Ref<hal::Device> device = HALYARD_TRY(spans_ ? shared_.devices.open_traced(wanted, spans_->tracer(), counts)
                                               : shared_.devices.open(wanted, key_));
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
  if (placed_) std::exchange(placed_, nullptr)->unmap();
  is_over_.store(true, std::memory_order_relaxed);
  std::unordered_map<uint64_t, Ref<hal::Buffer>> watched;
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    is_lost_.store(true);
    watched.swap(watched_);
    timer_.cancel();
    if (client_) line = fmt::format("client '{}' has gone: {}", name_, reason.message);
  }
  stop_work(Code::CANCELLED);
  if (!line.empty()) shared_.log(line);
  shared_.lost();
}

void Session::done(uint64_t request, const Status& status) {
  send([&](remote::Message& message) {
    const auto failure =
        status.ok() ? flatbuffers::Offset<wire::Status>() : remote::add_status(message, to_wire(status));
    return wire::CreateDone(message.builder(), request, failure);
  });
}

}  // namespace halyard::device_server
