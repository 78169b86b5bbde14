// What arrives is handled on the threads of the runtime; what is asked, on the thread that asks.
#include "connection.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "failures.h"
#include "in_flight.h"
#include "mapped_bytes.h"

namespace halyard::remote {

namespace {

constexpr auto kTickWithWork = std::chrono::milliseconds(20);
constexpr auto kTickWithoutWork = std::chrono::milliseconds(250);

template <typename Build>
void send_to_server(Connection& connection, Stream::Urgency urgency, Build build) {
  Message message;
  connection.send(message.to_server(build(message.builder(), message)), {}, urgency);
}

}  // namespace

Connection::Connection(const kit::Services& services, Runtime& runtime, Place place)
    : services_(services),
      runtime_(runtime),
      place_(std::move(place)),
      trace_span_(kit::trace_function(services)),
      timer_(runtime.io()),
      moment_(runtime.io()) {}

Connection::~Connection() = default;

// ---- Opening and closing

kit::Result<std::shared_ptr<Connection>> Connection::open(const kit::Services& services, Runtime& runtime,
                                                          Place place) {
  Descriptor socket = HALYARD_KIT_TRY(to_kit(place.transport == Transport::unix_socket
                                                 ? connect_unix(place.path)
                                                 : connect_tcp(place.tcp, place.patience)));
  return over(services, runtime, std::move(place), std::move(socket));
}

kit::Result<std::shared_ptr<Connection>> Connection::over(const kit::Services& services, Runtime& runtime,
                                                          Place place, Descriptor socket) {
  auto made = std::make_shared<Connection>(services, runtime, std::move(place));
  const Place& to = made->place_;
  std::unique_ptr<Tls> tls;
  if (to.tls) {
    const auto context = HALYARD_KIT_TRY(to_kit(TlsContext::create(TlsSide::client, *to.tls)));
    tls = std::make_unique<Tls>(context, to.tcp.host);
  } else if (!to.allows_plain && !is_loopback(socket.get())) {
    return kit::Failure{
        HALYARD_PERMISSION_DENIED,
        to.text() +
            " is another machine, and no certificates are given, so anybody between could read and "
            "change all data; give the options 'cert', 'key' and 'ca', or insecure=1 in a network "
            "that you trust"};
  }
  made->stream_ = std::make_shared<Stream>(runtime.io(), std::move(socket), std::move(tls),
                                           Stream::Full::block, to.patience, to.busy_poll);
  HALYARD_KIT_TRY(to_kit(made->stream_->shake_hands(Clock::now() + to.patience)));
  runtime.start();
  runtime.add(made->stream_);
  made->stream_->start(made);
  made->tick();
  if (kit::Result<> greeted = made->greet(); !greeted) {
    made->close();
    return std::move(greeted.failure());
  }
  return made;
}

// The answer comes as that of request 0.
kit::Result<> Connection::greet() {
  Request welcome;
  {
    const std::lock_guard lock(mutex_);
    requests_.emplace(0, &welcome);
  }
  Message message;
  flatbuffers::FlatBufferBuilder& builder = message.builder();
  const auto device = message.text(place_.device);
  const auto name = message.text(::program_invocation_short_name);
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::Option>>> options;
  if (place_.profile) {
    const auto key = message.text("profile"), value = message.text("1");
    const auto option = wire::CreateOption(builder, key, value);
    options = builder.CreateVector(&option, 1);
  }
  send(message.to_server(wire::CreateHello(builder, kOldestVersion, kNewestVersion, device, options, name,
                                           trace_span_ != nullptr)),
       {}, Stream::Urgency::now);
  kit::Result<> greeted = wait(welcome, {});
  if (greeted && trace_span_ && version_ >= kVersionWithTraces) greeted = match_clocks();
  if (!greeted) greeted.failure().message += "; while opening a device of " + place_.text();
  return greeted;
}

// The server's clock is read halfway between the question and the answer. The shortest of several round trips
// has the smallest error, which is at most half of it.
kit::Result<> Connection::match_clocks() {
  constexpr int kTries = 5;
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    Request pong;
    const uint64_t begin = kit::trace_time();
    HALYARD_KIT_TRY(request(pong, [&](uint64_t number) {
      Message message;
      send(message.to_server(wire::CreatePing(message.builder(), number)), {}, Stream::Urgency::now);
    }));
    const uint64_t end = kit::trace_time();
    if (end - begin >= shortest) continue;
    shortest = end - begin;
    clock_ahead_.store(pong.value - static_cast<int64_t>(begin + shortest / 2));
  }
  return {};
}

// The host takes a span before the completion of the submission. Times of a server that lies are those of
// this host, or the span is dropped.
void Connection::take_spans(const wire::Spans& spans) {
  if (!trace_span_ || !spans.spans()) return;
  const std::lock_guard lock(mutex_);
  const auto found = in_flight_.find(spans.submission());
  if (found == in_flight_.end()) return;
  constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;
  const auto now = static_cast<int64_t>(kit::trace_time());
  const uint64_t ahead = static_cast<uint64_t>(clock_ahead_.load());
  for (const wire::Span* const it : *spans.spans()) {
    const std::string_view name = view(it->name()).substr(0, 255);
    halyard_trace_span_t span = {};
    span.struct_size = sizeof span;
    span.kind = HALYARD_SPAN_QUEUE;
    span.begin_ns = it->begin_ns() - ahead;
    span.end_ns = it->end_ns() - ahead;
    const auto begin = static_cast<int64_t>(span.begin_ns), end = static_cast<int64_t>(span.end_ns);
    if (begin < now - 24 * kHour || end < begin || end > now + kHour) continue;
    span.name = name.data();
    span.name_size = name.size();
    span.submission = found->second->user();
    span.queue = it->track();
    span.workgroups = it->workgroups();
    span.dispatch_workgroups = it->dispatch_workgroups();
    span.operations = it->operations();
    span.bytes_read = it->bytes_read();
    span.bytes_written = it->bytes_written();
    span.known = it->known();
    span.code = it->code();
    span.threads = it->threads();
    span.command = found->second->command(it->command());
    trace_span_(services_.host, &span);
  }
}

void Connection::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  Message message;
  send(message.to_server(wire::CreateGoodbye(message.builder())), {}, Stream::Urgency::now);
  stream_->end({HALYARD_CANCELLED, "the device was closed"});
  const std::lock_guard lock(mutex_);
  timer_.cancel();
  moment_.cancel();
}

kit::Result<> Connection::check() const {
  const std::lock_guard lock(mutex_);
  if (!is_lost_) return {};
  return to_kit(loss_);
}

Failure Connection::failure_of(const kit::Status& status) const {
  const halyard_status_t handle = kit::Status(status).release();
  Failure failure = {services_.status_code(services_.host, handle),
                     services_.status_message(services_.host, handle)};
  services_.status_release(services_.host, handle);
  return failure;
}

// ---- Semaphores

void Connection::create_semaphore(uint64_t number, uint64_t initial) {
  if (version_ >= kVersionWithLists) {
    const std::lock_guard lock(created_mutex_);
    created_.emplace_back(number, initial);
    return;
  }
  send_to_server(*this, Stream::Urgency::later, [&](auto& builder, Message&) {
    return wire::CreateSemaphoreCreate(builder, number, initial);
  });
}

void Connection::destroy_semaphore(uint64_t number) {
  if (version_ < kVersionWithLists)
    return send_to_server(*this, Stream::Urgency::later, [&](auto& builder, Message&) {
      return wire::CreateSemaphoreDestroy(builder, number);
    });
  {
    const std::lock_guard lock(created_mutex_);
    if (std::erase_if(created_, [&](const wire::Point& each) { return each.semaphore() == number; }) > 0)
      return;
  }
  const std::lock_guard lock(destroyed_mutex_);
  destroyed_semaphores_.push_back(number);
  has_destroyed_.store(true, std::memory_order_release);
}

void Connection::destroy_memory(uint64_t number) {
  if (version_ < kVersionWithLists)
    return send_to_server(*this, Stream::Urgency::later, [&](auto& builder, Message&) {
      return wire::CreateMemoryDestroy(builder, number);
    });
  const std::lock_guard lock(destroyed_mutex_);
  destroyed_memories_.push_back(number);
  has_destroyed_.store(true, std::memory_order_release);
}

// Objects are destroyed after the last message that uses them was sent.
void Connection::send_destroyed_now(Stream::Urgency urgency) {
  std::vector<uint64_t> semaphores, memories;
  {
    const std::lock_guard lock(destroyed_mutex_);
    semaphores.swap(destroyed_semaphores_);
    memories.swap(destroyed_memories_);
    has_destroyed_.store(false, std::memory_order_release);
  }
  Message message;
  const auto first = message.builder().CreateVector(semaphores),
             second = message.builder().CreateVector(memories);
  stream_->send(message.to_server(wire::CreateDestroy(message.builder(), first, second)), {}, urgency);
}

// Before a message that may use any of them.
void Connection::send_created() {
  const std::lock_guard lock(created_mutex_);
  for (const wire::Point& each : std::exchange(created_, {}))
    send_to_server(*this, Stream::Urgency::later, [&](auto& builder, Message&) {
      return wire::CreateSemaphoreCreate(builder, each.semaphore(), each.value());
    });
}

void Connection::signal_semaphore(uint64_t number, uint64_t value) {
  send_created();
  send_changes();
  send_to_server(*this, Stream::Urgency::now, [&](auto& builder, Message&) {
    return wire::CreateSemaphoreSignal(builder, number, value);
  });
}

void Connection::fail_semaphore(uint64_t number, const Failure& failure) {
  send_created();
  send_to_server(*this, Stream::Urgency::now, [&](auto& builder, Message& message) {
    return wire::CreateSemaphoreFail(builder, number, add_status(message, failure));
  });
}

// ---- Requests

void Connection::begin(Request& request) {
  request.number = new_number();
  const std::lock_guard lock(mutex_);
  requests_.emplace(request.number, &request);
  if (!request.may_take_long) return;
  ++long_requests_;
  if (++patient_requests_ == 1) stream_->set_patient(true);
}

// While code is loaded, a server may have no room for what other threads send: it pauses, and sends signs of
// life. The caller's stop comes behind what waits, so that has only the connection's patience left.
void Connection::end_patience(Request& request) {
  if (!request.may_take_long || std::exchange(request.is_stopped, true)) return;
  if (--patient_requests_ == 0) stream_->set_patient(false);
}

// Bytes that have come for this request and those before it, of which the server answers one after the other.
uint64_t Connection::received_until(const Request& request) const {
  uint64_t received = 0;
  for (const auto& [number, each] : requests_)
    if (number <= request.number) received += each->received;
  return received;
}

// A server that answers pings but not requests is as good as lost. It answers in order, so requests behind
// one that may take long, or whose bytes still come, have time as well.
kit::Result<> Connection::wait(Request& request, const kit::Stop& stop) {
  constexpr auto kBetweenStops = std::chrono::milliseconds(20);
  const auto is_over = [&] {
    const std::lock_guard lock(mutex_);
    return request.is_done || is_lost_;
  };
  std::unique_lock lock(mutex_);
  Clock::time_point deadline = Clock::now() + place_.patience;
  uint64_t received = 0;
  while (!request.is_done && !is_lost_) {
    // The answer, and the bytes of a read, come to the thread that needs them.
    lock.unlock();
    const bool has_helped = help_until(is_over, kBetweenStops);
    lock.lock();
    if (!has_helped && !request.is_done && !is_lost_) answered_.wait_for(lock, kBetweenStops);
    if (request.is_done) continue;
    const uint64_t received_now = received_until(request);
    if (long_requests_ > 0 || std::exchange(received, received_now) != received_now)
      deadline = Clock::now() + place_.patience;
    if (Clock::now() > deadline) {
      lock.unlock();
      stream_->end(
          {HALYARD_DEADLINE_EXCEEDED,
           fmt::format(
               "a request was not answered within {} ms; raise the option 'timeout' if the server is slow",
               place_.patience.count())});
      lock.lock();
      answered_.wait(lock, [&] { return request.is_done || is_lost_; });
      continue;
    }
    if (const kit::Result<> stopped = stop.check(); !stopped) {
      end_patience(request);
      lock.unlock();
      send_stop(request.number, stopped.failure().code);
      lock.lock();
    }
  }
  requests_.erase(request.number);
  long_requests_ -= request.may_take_long;
  end_patience(request);
  if (!request.is_done) return to_kit(loss_);
  if (request.failure.code != HALYARD_OK) return to_kit(request.failure);
  return {};
}

// Request 0 is the greeting, which only a welcome answers.
template <typename Take>
void Connection::answer(uint64_t number, Take take, bool is_welcome) {
  if (number == 0 && !is_welcome) return;
  {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(number);
    if (found == requests_.end()) return;
    take(*found->second);
    if (!found->second->is_done) return;
  }
  answered_.notify_all();
}

kit::Result<> Connection::send_blob(const Sha256& digest, Bytes bytes) {
  const std::lock_guard lock(blob_mutex_);
  const wire::Digest name = to_wire(digest);
  for (size_t offset = 0; offset < bytes.size(); offset += kPiece) {
    HALYARD_KIT_TRY(check());
    Message message;
    const auto body = wire::CreateBlobWrite(message.builder(), &name, bytes.size(), offset);
    send(message.to_server(body), bytes.subspan(offset, std::min(kPiece, bytes.size() - offset)),
         Stream::Urgency::now);
  }
  return {};
}

void Connection::stage(uint64_t number, Bytes bytes) {
  for (size_t offset = 0; offset < bytes.size(); offset += kPiece) {
    Message message;
    const auto body = wire::CreateStageWrite(message.builder(), number, bytes.size(), offset);
    send(message.to_server(body), bytes.subspan(offset, std::min(kPiece, bytes.size() - offset)));
  }
}

// ---- Work in flight

kit::Result<bool> Connection::add(std::unique_ptr<InFlight> work) {
  const std::lock_guard lock(mutex_);
  if (is_lost_) return to_kit(loss_);
  const uint64_t number = work->number();
  const bool is_first = computing_ == 0;
  computing_ += work->computes;
  in_flight_.emplace(number, std::move(work));
  return is_first;
}

// One message for each of many small pieces of work costs more than the work, on both sides.
void Connection::wait_for_more(bool computes) {
  constexpr auto kMoment = std::chrono::milliseconds(1);
  has_unsent_work_.store(true);
  if (computes) flush_after(kMoment);
}

void Connection::flush() {
  constexpr auto kUntilItReceives = std::chrono::milliseconds(20);
  if (!has_unsent_work_.load() || !has_unsent_work_.exchange(false) || stream_->flush_some()) return;
  has_unsent_work_.store(true);
  flush_after(kUntilItReceives);
}

void Connection::flush_after(Clock::duration time) {
  if (is_moment_set_.exchange(true)) return;
  const std::lock_guard lock(mutex_);
  moment_.expires_after(time);
  moment_.async_wait([weak = weak_from_this()](boost::system::error_code) {
    const std::shared_ptr<Connection> self = weak.lock();
    if (!self) return;
    self->is_moment_set_.store(false);
    self->flush();
  });
}

size_t Connection::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_.size();
}

void Connection::completed(uint64_t submission, const Failure& failure) {
  std::unique_ptr<InFlight> work;
  {
    const std::lock_guard lock(mutex_);
    const auto found = in_flight_.find(submission);
    if (found == in_flight_.end()) return;
    work = std::move(found->second);
    in_flight_.erase(found);
    computing_ -= work->computes;
  }
  complete(std::move(work), failure);
}

void Connection::complete(std::unique_ptr<InFlight> work, const Failure& failure) {
  kit::Status status;
  if (failure.code != HALYARD_OK) status = kit::Status(services_, failure.code, failure.message);
  kit::TaskList ready;
  kit::Task& told = InFlight::complete(std::move(work), *this, std::move(status), ready);
  runtime_.take_calls(ready);
  const std::lock_guard lock(completed_mutex_);
  completed_.push(told);
}

void Connection::tell_completed() {
  kit::TaskQueue told;
  {
    const std::lock_guard lock(completed_mutex_);
    told = std::exchange(completed_, {});
  }
  kit::TaskList ready;
  while (kit::Task* const call = told.pop()) call->run(*call, ready);
}

// For threads that receive: see Runtime::take_calls.
void Connection::run_calls() {
  kit::TaskList ready;
  {
    const std::lock_guard lock(completed_mutex_);
    while (kit::Task* const call = completed_.pop()) ready.push_call(*call);
  }
  runtime_.take_calls(ready);
  runtime_.run_calls();
}

// ---- Mapped bytes

void Connection::add_mapped(uint64_t memory, MappedBytes& bytes) {
  const std::lock_guard lock(mapped_mutex_);
  mapped_.emplace(memory, &bytes);
  mapped_count_.store(mapped_.size());
}

void Connection::remove_mapped(uint64_t memory) {
  const std::lock_guard lock(mapped_mutex_);
  mapped_.erase(memory);
  mapped_count_.store(mapped_.size());
}

void Connection::send_changes() {
  if (mapped_count_.load() == 0) [[likely]]
    return;
  const std::lock_guard lock(mapped_mutex_);
  for (const auto& [memory, bytes] : mapped_) bytes->send_changes();
}

// ---- Receiving. The server is not trusted: numbers that it sends may be any.

std::span<uint8_t> Connection::place(Bytes message, size_t size) {
  const wire::ToClient* const root = verified_to_client(message);
  const wire::Data* const data = root ? root->body_as_Data() : nullptr;
  if (!data) return {};
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(data->request());
  // A request that is done may end at any time, and its target with it.
  if (found == requests_.end() || found->second->is_done || data->offset() != found->second->received)
    return {};
  const std::span<uint8_t> target = found->second->target;
  if (data->offset() > target.size() || size > target.size() - data->offset()) return {};
  return target.subspan(data->offset(), size);
}

bool Connection::received(Frame& frame) {
  const wire::ToClient* const root = verified_to_client(frame.message());
  if (!root) {
    broken("a message that is no message of this protocol");
    return true;
  }
  switch (root->body_type()) {
    case wire::ToClientBody::Welcome: {
      const wire::Welcome& welcome = *root->body_as_Welcome();
      const wire::Properties* const given = welcome.properties();
      if (!given || welcome.version() < kOldestVersion || welcome.version() > kNewestVersion) {
        broken("a welcome of version " + std::to_string(welcome.version()));
        break;
      }
      answer(
          0,
          [&](Request& request) {
            version_ = welcome.version();
            properties_.capabilities = given->capabilities();
            properties_.queue_count = given->queue_count();
            properties_.memory_alignment = given->memory_alignment();
            properties_.maximum_allocation = given->maximum_allocation();
            request.is_done = true;
          },
          true);
      break;
    }
    case wire::ToClientBody::Refused: {
      Failure why = remote::failure_of(root->body_as_Refused()->status());
      if (why.code == HALYARD_OK) why.code = HALYARD_UNAVAILABLE;
      stream_->end(std::move(why));
      break;
    }
    case wire::ToClientBody::Answer: {
      const wire::Answer& given = *root->body_as_Answer();
      answer(given.request(), [&](Request& request) {
        request.known = given.known();
        request.value = given.value();
        request.text = view(given.text());
        request.is_done = true;
      });
      break;
    }
    case wire::ToClientBody::Done:
      answer(root->body_as_Done()->request(), [&](Request& request) {
        request.failure = remote::failure_of(root->body_as_Done()->status());
        request.is_done = true;
      });
      break;
    case wire::ToClientBody::Need:
      answer(root->body_as_Need()->request(),
             [&](Request& request) { request.needs_blob = request.is_done = true; });
      break;
    case wire::ToClientBody::Data:
      take_data(*root->body_as_Data(), frame);
      break;
    case wire::ToClientBody::Contents:
      take_contents(*root->body_as_Contents(), frame.bytes());
      break;
    case wire::ToClientBody::Functions:
      take_functions(*root->body_as_Functions(), frame.message_size);
      break;
    case wire::ToClientBody::Completed:
      completed(root->body_as_Completed()->submission(),
                remote::failure_of(root->body_as_Completed()->status()));
      break;
    case wire::ToClientBody::Completions:
      if (const auto* const numbers = root->body_as_Completions()->submissions())
        for (const uint64_t number : *numbers) completed(number, {HALYARD_OK, ""});
      break;
    case wire::ToClientBody::Pong:
      answer(root->body_as_Pong()->request(), [&](Request& request) {
        request.value = static_cast<int64_t>(root->body_as_Pong()->time_ns());
        request.is_done = true;
      });
      break;
    case wire::ToClientBody::BlobsKnown:
      answer(root->body_as_BlobsKnown()->request(), [&](Request& request) {
        if (const auto* const known = root->body_as_BlobsKnown()->known())
          request.has_blobs.assign(known->begin(), known->end());
        request.is_done = true;
      });
      break;
    case wire::ToClientBody::Spans:
      take_spans(*root->body_as_Spans());
      break;
    default:
      broken("a message of kind " + std::to_string(static_cast<unsigned>(root->body_type())));
  }
  return true;
}

void Connection::take_data(const wire::Data& data, const Frame& frame) {
  uint64_t more = 0;
  bool is_wrong = false;
  answer(data.request(), [&](Request& request) {
    const uint64_t offset = data.offset();
    if (offset != request.received || frame.data_size == 0 || offset > request.target.size() ||
        frame.data_size > request.target.size() - offset) {
      is_wrong = true;
      return;
    }
    if (frame.data != request.target.data() + offset)
      std::memcpy(request.target.data() + offset, frame.data, frame.data_size);
    request.received += frame.data_size;
    request.is_done = request.received == request.target.size();
    request.uncredited += frame.data_size;
    if (!request.is_done && request.uncredited >= kCredit / 4) more = std::exchange(request.uncredited, 0);
  });
  if (is_wrong) return broken("bytes that nobody has asked for");
  if (more > 0)
    send_to_server(*this, Stream::Urgency::soon, [&](auto& builder, Message&) {
      return wire::CreateCredit(builder, data.request(), more);
    });
}

void Connection::take_contents(const wire::Contents& contents, Bytes bytes) {
  {
    const std::lock_guard lock(mapped_mutex_);
    if (const auto found = mapped_.find(contents.memory()); found != mapped_.end())
      found->second->merge(contents.offset(), bytes);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [number, request] : requests_)
    if (request->merged > 0 && request->merged_memory == contents.memory())
      request->received += std::min<uint64_t>(bytes.size(), request->merged - request->received);
}

// Functions of a message may be the same table many times: they have no more text than the message.
void Connection::take_functions(const wire::Functions& functions, size_t message_size) {
  constexpr size_t kMost = 1 << 16;
  size_t text = 0;
  if (functions.functions()) {
    if (functions.functions()->size() > kMost)
      return broken(std::to_string(functions.functions()->size()) +
                    " functions of an executable, more than " + std::to_string(kMost));
    for (const wire::Function* const given : *functions.functions())
      text += view(given->name()).size() + view(given->source()).size();
  }
  if (text > message_size) return broken("functions of an executable with more text than their message has");
  answer(functions.request(), [&](Request& request) {
    if (functions.functions())
      for (const wire::Function* const given : *functions.functions()) {
        Request::Function function = {
            std::string(view(given->name())), std::string(view(given->source())), {}};
        function.info.binding_count = given->binding_count();
        function.info.constant_count = given->constant_count();
        function.info.flags = given->flags();
        function.info.local_memory = given->local_memory();
        if (const wire::Workgroups* const size = given->workgroup_size()) {
          function.info.workgroup_size[0] = size->x();
          function.info.workgroup_size[1] = size->y();
          function.info.workgroup_size[2] = size->z();
        }
        request.functions.push_back(std::move(function));
      }
    request.is_done = true;
  });
}

void Connection::received_some(bool) {
  flush();
  run_calls();
}

// The host's `completed` is short [R88]. Subscribers may take long, and this thread has its own work to wait
// for.
void Connection::received_by_waiter() {
  flush();
  tell_completed();
  if (runtime_.has_calls())
    boost::asio::post(runtime_.io(), [this_runtime = &runtime_] { this_runtime->run_calls(); });
}

void Connection::broken(std::string what) {
  stream_->end({HALYARD_INTERNAL, "the server sent " + std::move(what) + "; it is broken, or not vm-device"});
}

void Connection::lost(const Failure& reason) {
  std::unordered_map<uint64_t, std::unique_ptr<InFlight>> dropped;
  Failure loss = reason;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(in_flight_);
    computing_ = 0;
    const bool is_refusal = loss.code != HALYARD_UNAVAILABLE && loss.code != HALYARD_DEADLINE_EXCEEDED;
    if (!is_refusal)
      loss.message = fmt::format(
          "the connection to {} is lost ({}), and with it the memory of the device and {} submissions in "
          "flight; open the device again",
          place_.text(), reason.message, dropped.size());
    is_lost_ = true;
    loss_ = loss;
  }
  answered_.notify_all();
  for (auto& [number, work] : dropped) complete(std::move(work), loss);
  run_calls();
}

// ---- Time

// The timer is touched under the lock, because several threads may do so.
void Connection::tick() {
  const std::lock_guard lock(mutex_);
  if (is_closed_ || is_lost_) return;
  timer_.expires_after(in_flight_.empty() ? kTickWithoutWork : kTickWithWork);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const std::shared_ptr<Connection> self = weak.lock();
    if (error || !self) return;
    self->look_around();
    self->tick();
  });
}

void Connection::look_around() {
  look_at_stops();
  send_destroyed(Stream::Urgency::soon);
  stream_->flush_some();
  const Clock::time_point now = Clock::now();
  const Clock::duration silence = now - stream_->last_received();
  if (silence > place_.patience)
    return stream_->end(
        {HALYARD_DEADLINE_EXCEEDED,
         fmt::format("nothing was received for {} ms; the server is stopped, or the network is down",
                     place_.patience.count())});
  if (silence <= place_.patience / 4 || now - last_ping_ <= place_.patience / 4) return;
  last_ping_ = now;
  send_to_server(*this, Stream::Urgency::soon,
                 [](auto& builder, Message&) { return wire::CreatePing(builder); });
}

void Connection::look_at_stops() {
  std::vector<std::pair<uint64_t, halyard_status_code_t>> stopped;
  {
    const std::lock_guard lock(mutex_);
    // Told again until the work ends: the server may not have had the work when it was told first.
    for (const auto& [number, work] : in_flight_)
      if (const kit::Result<> stop = work->stop().check(); !stop)
        stopped.emplace_back(number, stop.failure().code);
  }
  for (const auto& [submission, reason] : stopped) send_stop(submission, reason);
}

// Told again later if the server does not receive now.
void Connection::send_stop(uint64_t number, halyard_status_code_t reason) {
  if (!stream_->flush_some()) return;
  send_to_server(*this, Stream::Urgency::soon,
                 [&](auto& builder, Message&) { return wire::CreateStop(builder, number, reason); });
}

}  // namespace halyard::remote
