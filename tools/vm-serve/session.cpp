// A coroutine for each connection, on a strand of its own. Boost.Beast reads headers and chunks; a body whose
// length is known is read from the socket straight into the memory of its tensors.
#include "session.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <charconv>
#include <cstring>
#include <mutex>

#include "endpoints.h"
#include "job.h"

namespace halyard::tools::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr uint32_t kMostHeader = 16 << 10;  // bytes
constexpr size_t kFirstRead = 8 << 10;      // Beast reads into what there is
constexpr size_t kPiece = 64 << 10;         // of a body without a length
constexpr size_t kReadyBytes = 256 << 10;   // of a large body, before the socket counts as ready
constexpr size_t kMostSkipped = 256 << 10;  // of a refused body, so that the connection can be kept
constexpr uint64_t kLeastRate =
    64 << 10;  // bytes in a second that bodies and answers must make on the average
constexpr std::chrono::seconds kGrace(10);  // before that counts
// For the client to read an answer behind which the connection closes; and bytes that are read and dropped
// meanwhile.
constexpr std::chrono::seconds kLinger(2);
constexpr size_t kMostLingered = 16 << 20;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// Elements of JSON take up to eight bytes for two of text; with the text itself and its copy of data that
// come before their type.
constexpr uint64_t kJsonFactor = 10;

template <typename T = void>
using Task = asio::awaitable<T, SessionExecutor>;
constexpr asio::use_awaitable_t<SessionExecutor> use_task;

// For asio::async_write: everything, in as few system calls as the system allows. Asio's own condition asks
// for 64 KiB a call.
size_t all_at_once(const error_code& error, size_t) { return error ? 0 : size_t{1} << 30; }

Clock::duration time_for(uint64_t bytes) {
  return kGrace + std::chrono::milliseconds(bytes * 1000 / kLeastRate);
}

std::optional<uint64_t> as_size(std::string_view text) {
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return size;
}

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

class Connection final : public Session, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, SessionSocket socket)
      : server_(server), socket_(std::move(socket)), timer_(server.runtime.io) {
    buffer_.reserve(kFirstRead);
  }
  ~Connection() override {
    if (is_listed_) server_.remove(this);
  }

  bool list() { return is_listed_ = server_.add(this, weak_from_this()); }

  void drain() override {
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] { self->close_if_idle(); });
  }
  void close() override {
    if (const auto job = waited_for()) server_.scheduler.abandon(job, {HALYARD_CANCELLED, "the server ends"});
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] { self->close_socket(); });
  }

  // Whether the client has closed the connection, or only its side: then it may still read the answer. TCP
  // shows the difference when something is sent, which a closed socket refuses; an interim response is
  // something that every HTTP/1.1 client must take.
  void look() override {
    std::shared_ptr<Job> abandoned;
    {
      const std::lock_guard lock(mutex_);
      // The first look at a call only counts: quick calls are over by the second.
      if (!job_ || looks_++ == 0) return;
      const int socket = socket_.native_handle();
      pollfd state = {.fd = socket, .events = POLLRDHUP, .revents = 0};
      if (::poll(&state, 1, 0) <= 0) return;
      if (state.revents & (POLLERR | POLLHUP)) {
        is_gone_ = true;
        abandoned = job_;
      } else if (!is_probed_ && is_http11_) {
        int unsent = 0;  // bytes that the client has not acknowledged: with none, all of a few are taken
        if (::ioctl(socket, SIOCOUTQ, &unsent) != 0 || unsent != 0) return;
        is_probed_ = ::send(socket, kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
      }
    }
    if (abandoned)
      server_.scheduler.abandon(abandoned, {HALYARD_CANCELLED, "the client has closed the connection"});
  }

  Task<> run() {
    for (;;) {
      parser_.emplace();
      parser_->header_limit(kMostHeader);
      parser_->body_limit(server_.limits.body);
      is_idle_ = true;
      if (server_.is_draining()) close_if_idle();
      expire_after(server_.limits.idle);
      co_await http::async_read_header(socket_, buffer_, *parser_, asio::redirect_error(use_task, error_));
      is_idle_ = false;
      begin_ = Clock::now();
      if (error_) {
        if (const unsigned status = status_of_header()) {
          Response response =
              error_response(status, "the header is no HTTP/1.1 that this server takes: " + error_.message());
          response.closes = true;
          co_await write(response, false);
          co_await linger();
        }
        break;
      }
      if (!co_await serve()) break;
    }
    {
      const std::lock_guard lock(mutex_);
      timer_.cancel();
    }
    close_socket();
  }

 private:
  // ---- Time limits: one timer, which is set again only where a deadline is nearer than the one it waits
  // for. It runs beside the strand, which a call may keep.

  void expire_after(Clock::duration time) { expire_at(Clock::now() + time); }
  void expire_at(Clock::time_point deadline) {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
    if (deadline_ < armed_) arm();
  }
  void arm() {  // with the mutex
    armed_ = deadline_;
    timer_.expires_at(armed_);
    timer_.async_wait([weak = weak_from_this()](const error_code& error) {
      if (error) return;
      if (const auto self = weak.lock()) self->expire();
    });
  }
  void expire() {
    std::shared_ptr<Job> job;
    {
      const std::lock_guard lock(mutex_);
      armed_ = Clock::time_point::max();
      if (Clock::now() < deadline_) return arm();
      job = job_;
    }
    if (job)
      return server_.scheduler.abandon(job,
                                       {HALYARD_DEADLINE_EXCEEDED, "the model has not answered in time"});
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
      if (self->has_expired()) self->close_socket();
    });
  }
  bool has_expired() {
    const std::lock_guard lock(mutex_);
    return !job_ && Clock::now() >= deadline_;
  }

  std::shared_ptr<Job> waited_for() {
    const std::lock_guard lock(mutex_);
    return job_;
  }
  void wait_for(std::shared_ptr<Job> job) {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    is_probed_ = false;
    looks_ = 0;
  }

  void close_socket() {
    const std::lock_guard lock(mutex_);
    error_code ignored;
    (void)socket_.close(ignored);  // returns what it stores
  }
  // A request that has arrived, but was not yet read, is still answered.
  void close_if_idle() {
    error_code ignored;
    if (is_idle_ && buffer_.size() == 0 && socket_.available(ignored) == 0) close_socket();
  }

  // The answer to a header that Beast refuses; 0: none, because the client is gone.
  unsigned status_of_header() const {
    if (error_ == http::error::header_limit || error_ == http::error::buffer_overflow) return 431;
    if (error_ == http::error::body_limit) return 413;
    if (error_ == http::error::bad_version) return 505;
    if (error_ == http::error::end_of_stream || error_ == http::error::partial_message) return 0;
    return error_.category() == http::make_error_code(http::error::bad_method).category() ? 400 : 0;
  }

  // ---- One request. False: the connection ends.

  Task<bool> serve() {
    auto& message = parser_->get();
    const bool is_chunked = parser_->chunked();
    remaining_ = parser_->content_length().value_or(0);
    const std::string method(view_of(message.method_string()));
    const std::string target(view_of(message.target()));
    const Route route = route_of(method, target);
    keep_alive_ = message.keep_alive();
    const unsigned version = message.version();
    is_http11_ = version >= 11;
    awaits_continue_ =
        message.version() >= 11 && beast::iequals(message[http::field::expect], "100-continue");

    Response response;
    if (is_chunked && message.count(http::field::content_length) > 0) {
      response = error_response(
          400, "the header has both Content-Length and Transfer-Encoding; expected one of them");
      response.closes = true;
    } else if (message.version() >= 11 && message.count(http::field::host) != 1) {
      response = error_response(400, "the header has no Host, or several; HTTP/1.1 needs one");
      response.closes = true;
    } else if (route.status != 200) {
      response = refusal(route);
    } else if (route.endpoint != Endpoint::infer) {
      response = answer(server_, route);
    } else {
      response = co_await infer(route);
    }
    if (is_gone_) {
      answered(method, target, response);
      co_return false;
    }

    // What is left of a body stands before the next request.
    bool has_rest = false;
    if (!response.closes && keep_alive_ && (remaining_ > 0 || is_chunked || awaits_continue_)) {
      has_rest = !co_await skip_body();
      if (error_) co_return false;
    }
    response.closes |= !keep_alive_ || has_rest || server_.is_draining();
    // What HTTP/1.1 does unasked.
    if (version == 10 && !response.closes) response.headers += "Connection: keep-alive\r\n";
    const bool is_written = co_await write(response, route.is_head);
    answered(method, target, response);
    if (!is_written) co_return false;
    if (!response.closes) co_return true;
    co_await linger();
    co_return false;
  }

  void answered(std::string_view method, std::string_view target, const Response& response) {
    server_.metrics.count_response(response.status);
    if (traced_) {
      traced_->end = Clock::now();
      server_.runtime.traces.add(*std::exchange(traced_, std::nullopt));
    }
    if (!server_.logs_requests && response.status < 500) return;
    const Clock::duration time = Clock::now() - begin_;
    constexpr size_t kMostTarget = 256;
    Json error;
    if (response.status >= 400) error = response.body.substr(0, 512);
    server_.log.info("request", {{"method", method.substr(0, 16)},
                                 {"target", target.substr(0, kMostTarget)},
                                 {"status", response.status},
                                 {"bytes", response.content_length()},
                                 {"milliseconds", std::chrono::duration<double, std::milli>(time).count()},
                                 {"answer", std::move(error)}});
  }

  // ---- Inference

  Task<Response> infer(const Route& route) {
    auto found = server_.repository.find(route.model, route.version);
    if (!found) co_return error_response(status_of_request(found.error().code), found.error().text);
    const std::shared_ptr<Model> model = *std::move(found);
    if (model->has_lost_device()) {
      model->metrics().failed.fetch_add(1, std::memory_order_relaxed);
      co_return error_response(
          503, fmt::format("the device of model '{}' is lost; a reload (SIGHUP) opens it again",
                           model->spec().name));
    }
    // Nobody needs to send a body for a queue that is full.
    if (server_.scheduler.is_full(*model)) co_return full(*model);

    auto job = std::make_shared<Job>();
    job->model = model;
    job->reservation = Reservation(server_.budget);
    if (server_.runtime.traces.is_on()) choose_trace(*job);
    JsonText json;
    std::optional<Response> wrong = co_await read_json(*job, json);
    if (wrong) co_return std::move(*wrong);
    auto request = parse_infer_request(json.copy.empty() ? json.view : json.copy, model->spec());
    buffer_.consume(json.view.size());
    json = {};
    if (!request) {
      model->metrics().failed.fetch_add(1, std::memory_order_relaxed);
      co_return error_response(status_of_request(request.error().code), request.error().text);
    }
    if (has_tensors_ || request->binary_size() > 0 || remaining_ > 0) {
      wrong = co_await read_tensors(*request, *job);
      if (wrong) co_return std::move(*wrong);
    }
    std::ranges::sort(request->inputs, {}, &RequestInput::index);
    job->inputs = std::move(request->inputs);

    const bool is_accepted = co_await call(job);
    if (!is_accepted) co_return full(*model);
    if (job->is_traced) {
      traced_->queued = job->queued_at;
      traced_->called = job->queued_at + job->queue_time;
      traced_->returned = traced_->called + job->call_time;
    }
    co_return respond(*model, *request, *job);
  }

  void choose_trace(Job& job) {
    const auto header = parser_->get()["traceparent"];
    const auto parent = parse_trace_parent(view_of(header));
    job.is_traced = server_.runtime.traces.samples(parent);
    if (!job.is_traced) return;
    const ModelSpec& model = job.model->spec();
    traced_.emplace(RequestTimes{.name = fmt::format("{}/{}", model.name, model.version), .begin = begin_});
    if (parent) traced_->name += fmt::format(" {}", parent->trace_id);
    // Until it is known better: a request that is refused while it is read.
    traced_->queued = traced_->called = traced_->returned = begin_;
  }

  static Response full(const Model& model) {
    model.metrics().rejected.fetch_add(1, std::memory_order_relaxed);
    return error_response(503, fmt::format("the queue of model '{}' is full; try again", model.spec().name));
  }

  Response no_room() const {
    return error_response(503, "the server holds as many bytes of requests as it may; try again");
  }

  // Where the text lies: in the connection's buffer if all of it has come with the header.
  struct JsonText {
    std::string_view view;
    std::string copy;
  };

  // The JSON object of the request: all of the body, or as much as Inference-Header-Content-Length says.
  Task<std::optional<Response>> read_json(Job& job, JsonText& text) {
    auto& message = parser_->get();
    constexpr const char* kHeaderSize = "Inference-Header-Content-Length";
    const auto encoding = message[http::field::content_encoding];
    if (!encoding.empty() && !beast::iequals(encoding, "identity"))
      co_return error_response(415, "the body is compressed; expected it as it is");
    const bool is_chunked = parser_->chunked();
    std::optional<uint64_t> size;
    if (const size_t count = message.count(kHeaderSize); count > 0) {
      size = as_size(view_of(message[kHeaderSize]));
      if (!size || count > 1 || (!is_chunked && *size > remaining_) || *size > server_.limits.body)
        co_return error_response(
            400, fmt::format("{} is '{}'; expected the bytes of the JSON object, at most those of the "
                             "body",
                             kHeaderSize, view_of(message[kHeaderSize]).substr(0, 64)));
      has_tensors_ = true;
    } else {
      has_tensors_ = false;
      if (!is_chunked) size = remaining_;
    }
    if (size && !job.reservation.add(*size * kJsonFactor)) co_return no_room();
    if (!is_chunked && has_tensors_ && !job.reservation.add(remaining_ - *size)) co_return no_room();
    if (!is_chunked && *size > 0 && *size <= buffer_.size()) {
      awaits_continue_ = false;
      text.view = {static_cast<const char*>(buffer_.data().data()), *size};
      remaining_ -= *size;
      if (remaining_ > 0) expire_after(time_for(remaining_));
      co_return std::nullopt;
    }
    co_await send_continue();
    if (error_) co_return error_response(400, "");
    expire_after(time_for(is_chunked ? server_.limits.body : remaining_));
    std::string& json = text.copy;
    if (size) {
      json.resize(*size);
      if (!co_await read_exactly(json.data(), json.size())) co_return cut_short();
      co_return std::nullopt;
    }
    size_t reserved = 0;  // bytes of text, in pieces, however small the chunks are
    while (!parser_->is_done()) {
      const size_t before = json.size();
      if (before == reserved && !job.reservation.add(kPiece * kJsonFactor)) co_return no_room();
      if (before == reserved) reserved += kPiece;
      json.resize(reserved);
      const size_t read = co_await read_some(json.data() + before, reserved - before);
      json.resize(before + read);
      if (error_) co_return cut_short();
    }
    co_return std::nullopt;
  }

  // The binary tensors. Their sizes are checked before memory is allocated for them.
  Task<std::optional<Response>> read_tensors(InferRequest& request, Job& job) {
    const uint64_t size = request.binary_size();
    const bool is_chunked = parser_->chunked();
    if (!has_tensors_ && size > 0)
      co_return error_response(
          400, "an input has binary_data_size, but the header has no Inference-Header-Content-Length");
    if (!is_chunked && size != remaining_)
      co_return error_response(
          400, fmt::format("{} bytes follow the JSON object; the inputs' binary_data_size add up to {}",
                           remaining_, size));
    if (is_chunked && size > server_.limits.body)
      co_return error_response(
          413, fmt::format("the inputs have {} bytes; the server takes {}", size, server_.limits.body));
    if (is_chunked && !job.reservation.add(size)) co_return no_room();
    for (RequestInput& input : request.inputs) {
      if (!input.is_binary) continue;
      if (!input.data.resize(input.byte_size)) co_return error_response(503, "out of memory for the tensors");
      if (!co_await read_exactly(reinterpret_cast<char*>(input.data.data()), input.byte_size))
        co_return cut_short();
      if (job.model->spec().inputs[input.index].type->kind == NumberKind::boolean)
        for (std::byte& byte : input.data.span())
          if (byte != std::byte{0}) byte = std::byte{1};
    }
    if (is_chunked && has_tensors_) {
      char further = 0;
      const size_t read = parser_->is_done() ? 0 : co_await read_some(&further, 1);
      if (read > 0)
        co_return error_response(400,
                                 "more bytes follow the JSON object than the inputs' binary_data_size say");
      if (error_) co_return cut_short();
    }
    co_return std::nullopt;
  }

  Response cut_short() const {
    Response response =
        error_ == http::error::body_limit
            ? error_response(413, fmt::format("the body is larger than {} bytes", server_.limits.body))
            : error_response(400, "the body is shorter than its header says, or malformed");
    response.closes = true;
    return response;
  }

  // False: the queue is full.
  Task<bool> call(const std::shared_ptr<Job>& job) {
    wait_for(job);
    expire_at(begin_ + server_.limits.request);
    const bool is_accepted = server_.scheduler.submit(job);
    if (is_accepted && !job->has_outcome()) {
      const SessionExecutor executor = socket_.get_executor();
      co_await asio::async_initiate<const asio::use_awaitable_t<SessionExecutor>, void()>(
          [&](auto handler) {
            auto shared = std::make_shared<decltype(handler)>(std::move(handler));
            const auto go_on = [shared, executor] {
              // The coroutine must not go on in the function that suspends it.
              if (executor.running_in_this_thread()) return asio::post(executor, std::move(*shared));
              asio::dispatch(executor, std::move(*shared));
            };
            if (!job->await(go_on)) go_on();
          },
          use_task);
    }
    wait_for(nullptr);
    co_return is_accepted;
  }

  Response respond(const Model& model, const InferRequest& request, Job& job) {
    ModelMetrics& metrics = model.metrics();
    if (!job.failure) {
      auto response = response_of(model.spec(), request, job);
      if (response) {
        metrics.succeeded.fetch_add(1, std::memory_order_relaxed);
        metrics.request_seconds.add(Clock::now() - begin_);
        return *std::move(response);
      }
      job.failure = std::move(response).error();
    }
    const unsigned status = is_gone_ ? kClientGone : status_of_call(job.failure->code);
    (is_gone_        ? metrics.cancelled
     : status == 504 ? metrics.timed_out
                     : metrics.failed)
        .fetch_add(1, std::memory_order_relaxed);
    metrics.request_seconds.add(Clock::now() - begin_);
    return error_response(status, job.failure->line());
  }

  static Result<Response> response_of(const ModelSpec& model, const InferRequest& request, Job& job) {
    Response response;
    std::vector<OutputTensor> tensors;
    response.outputs.reserve(request.outputs.size());
    bool has_binary = false;
    for (const RequestOutput& wanted : request.outputs) {
      const TensorSpec& spec = model.outputs[wanted.index];
      response.outputs.push_back(TOOL_TRY(Output::of(spec, job.results[wanted.index])));
      tensors.push_back(response.outputs.back().tensor(spec, wanted.is_binary));
      has_binary |= wanted.is_binary;
      if (wanted.is_binary) response.tail.push_back(tensors.back().bytes);
    }
    response.body = infer_document(model, request.id, tensors);
    response.results = std::move(job.results);
    if (has_binary) {
      response.content_type = kBinary;
      response.headers = fmt::format("Inference-Header-Content-Length: {}\r\n", response.body.size());
    }
    return response;
  }

  // ---- Bytes

  Task<> send_continue() {
    error_ = {};
    if (!std::exchange(awaits_continue_, false)) co_return;
    expire_after(kGrace);
    co_await asio::async_write(socket_, asio::buffer(kContinue), asio::redirect_error(use_task, error_));
  }

  // So many bytes of the body, of either form. False: there are fewer, or the connection has failed.
  Task<bool> read_exactly(char* target, size_t size) {
    error_ = {};
    if (parser_->chunked()) {
      while (size > 0 && !error_ && !parser_->is_done()) {
        const size_t read = co_await read_some(target, size);
        target += read;
        size -= read;
      }
      co_return size == 0 && !error_;
    }
    if (size > remaining_) co_return false;
    remaining_ -= size;
    const size_t buffered = std::min(size, buffer_.size());
    if (buffered > 0) {
      std::memcpy(target, buffer_.data().data(), buffered);
      buffer_.consume(buffered);
    }
    co_await receive(target + buffered, size - buffered);
    co_return !error_;
  }

  // Of a large body, the socket is ready only when kReadyBytes have come, or its end: each time it is ready,
  // a thread wakes up.
  Task<> receive(char* target, size_t size) {
    const bool is_large = size >= kReadyBytes;
    while (size > 0 && !error_) {
      if (is_large) set_ready_bytes(std::min(size, kReadyBytes));
      const size_t read = co_await socket_.async_read_some(asio::buffer(target, size),
                                                           asio::redirect_error(use_task, error_));
      target += read;
      size -= read;
    }
    if (is_large) set_ready_bytes(1);
  }
  void set_ready_bytes(size_t bytes) {
    error_code ignored;  // a socket that cannot do so is ready at each byte
    (void)socket_.set_option(asio::socket_base::receive_low_watermark(static_cast<int>(bytes)), ignored);
  }

  // Up to so many bytes of a body in chunks; 0 at its end and at errors.
  Task<size_t> read_some(char* target, size_t size) {
    auto& body = parser_->get().body();
    body.data = target;
    body.size = size;
    body.more = true;
    error_ = {};
    while (body.size == size && !parser_->is_done() && !error_) {
      co_await http::async_read_some(socket_, buffer_, *parser_, asio::redirect_error(use_task, error_));
      if (error_ == http::error::need_buffer) error_ = {};
    }
    co_return size - body.size;
  }

  // Reads what is left of a small body. False: there is more, or the client waits to be told to send it.
  Task<bool> skip_body() {
    error_ = {};
    if (awaits_continue_) co_return false;
    const bool is_chunked = parser_->chunked();
    if (!is_chunked && remaining_ == 0) co_return true;
    if (!is_chunked && remaining_ > kMostSkipped) co_return false;
    expire_after(kGrace);
    std::vector<char> piece(kPiece);
    size_t skipped = 0;
    while (is_chunked ? !parser_->is_done() : remaining_ > 0) {
      if (skipped >= kMostSkipped) co_return false;
      if (is_chunked) {
        skipped += co_await read_some(piece.data(), piece.size());
      } else {
        co_await read_exactly(piece.data(), std::min<uint64_t>(piece.size(), remaining_));
      }
      if (error_ == http::error::body_limit) {
        error_ = {};
        co_return false;
      }
      if (error_) co_return false;
    }
    co_return true;
  }

  Task<bool> write(const Response& response, bool is_head) {
    const std::string head = response.head(std::chrono::system_clock::now());
    std::vector<asio::const_buffer> buffers = {asio::buffer(head)};
    if (!is_head) {
      buffers.push_back(asio::buffer(response.body));
      for (const auto& part : response.tail) buffers.push_back(asio::buffer(part.data(), part.size()));
    }
    expire_after(time_for(response.content_length()));
    error_code error;
    co_await asio::async_write(socket_, buffers, all_at_once, asio::redirect_error(use_task, error));
    co_return !error;
  }

  // Closes in one direction and reads on for a while: a connection that is closed with bytes unread loses the
  // answer.
  Task<> linger() {
    error_code error;
    (void)socket_.shutdown(asio::socket_base::shutdown_send, error);
    expire_after(kLinger);
    std::vector<char> piece(kPiece);
    for (size_t skipped = 0; !error && skipped < kMostLingered;)
      skipped += co_await socket_.async_read_some(asio::buffer(piece), asio::redirect_error(use_task, error));
  }

  Server& server_;
  SessionSocket socket_;
  beast::flat_buffer buffer_{kPiece};
  std::optional<http::request_parser<http::buffer_body>> parser_;
  error_code error_;
  Clock::time_point begin_;
  uint64_t remaining_ = 0;  // bytes of a body with a length
  bool has_tensors_ = false;
  bool keep_alive_ = false;
  bool awaits_continue_ = false;
  bool is_idle_ = true;
  bool is_listed_ = false;
  std::optional<RequestTimes> traced_;  // of a request that is recorded

  std::mutex mutex_;  // of what follows, of closing the socket, and of using it outside of the strand
  asio::basic_waitable_timer<Clock> timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point armed_ = Clock::time_point::max();
  std::shared_ptr<Job> job_;  // that is waited for
  int looks_ = 0;             // since then
  bool is_probed_ = false;    // by an interim response
  bool is_http11_ = false;
  std::atomic<bool> is_gone_ = false;  // the client has closed the connection during its call
};

}  // namespace

void Session::start(Server& server, SessionSocket socket) {
  const auto executor = socket.get_executor();
  const auto connection = std::make_shared<Connection>(server, std::move(socket));
  if (!connection->list()) {
    server.metrics.refused_connections.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  server.metrics.accepted.fetch_add(1, std::memory_order_relaxed);
  asio::co_spawn(executor, [connection] { return connection->run(); }, asio::detached);
}

}  // namespace halyard::tools::serve
