// One coroutine for each connection, on its own strand. Boost.Beast reads headers; a body is read directly
// into the memory of its tensors if possible.
#include "connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <mutex>

#include "accept_encoding.h"
#include "access.h"
#include "body.h"
#include "compression.h"
#include "control_request.h"
#include "endpoints.h"
#include "infer_json.h"
#include "inference.h"
#include "job.h"
#include "request_head.h"
#include "request_log.h"
#include "sending.h"

namespace halyard::tools::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr uint32_t kMaxHeader = 16 << 10;     // bytes
constexpr size_t kFirstRead = 8 << 10;        // Beast reads into the existing capacity
constexpr size_t kPieceOfTensor = 256 << 10;  // bytes of a body, reserved when they have arrived
constexpr size_t kMaxSkipped = 256 << 10;     // bytes of a refused body that are read to keep the connection
// The time, and the number of dropped bytes, for which the server waits for the client to read a response
// before it closes the connection.
constexpr std::chrono::seconds kLinger(2);
constexpr size_t kMaxLingered = 16 << 20;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr size_t kFreeAnswer = 64 << 10;  // bytes of metadata and metrics that need no reservation

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

class HttpConnection final : public Connection, public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(Server& server, ClientSocket socket, bool is_loopback)
      : server_(server), socket_(std::move(socket)), is_loopback_(is_loopback), timer_(server.runtime.io) {
    buffer_.reserve(kFirstRead);
    error_code ignored;  // a client that has gone already has no address
    client_ = socket_.remote_endpoint(ignored);
  }
  ~HttpConnection() override {
    if (is_listed_) server_.remove(this);
  }

  bool list() { return is_listed_ = server_.add(shared_from_this()); }

  void drain() override {
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] { self->close_if_idle(); });
  }
  void close() override {
    if (const auto job = waited_for()) server_.scheduler.abandon(job, {HALYARD_CANCELLED, "the server ends"});
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
      if (self->loading_) self->loading_->ended.cancel();
      self->close_socket();
    });
  }

  // Whether the client has closed the connection, or only its sending side: then it may still read the
  // response. With TCP only a send shows the difference, because a closed socket refuses it. An interim
  // response is sent, because every HTTP/1.1 client must accept one.
  void look() override {
    std::shared_ptr<Job> abandoned;
    {
      const std::lock_guard lock(mutex_);
      // The first look at a call only counts, because quick calls have ended by the second look.
      if (!job_ || looks_++ == 0) return;
      const int socket = socket_.native_handle();
      pollfd state = {.fd = socket, .events = POLLRDHUP, .revents = 0};
      if (::poll(&state, 1, 0) <= 0) return;
      if (state.revents & (POLLERR | POLLHUP)) {
        is_gone_ = true;
        abandoned = job_;
      } else if (!is_probed_ && is_http11_) {
        int unsent = 0;  // unacknowledged bytes; if 0, the socket accepts a few bytes at once
        if (::ioctl(socket, SIOCOUTQ, &unsent) != 0 || unsent != 0) return;
        is_probed_ = ::send(socket, kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
      }
    }
    if (abandoned)
      server_.scheduler.abandon(abandoned, {HALYARD_CANCELLED, "the client has closed the connection"});
  }

  Task<> run() {
    for (;;) {
      body_.reset();
      parser_.emplace();
      parser_->header_limit(kMaxHeader);
      parser_->body_limit(server_.limits.body);
      is_idle_ = true;
      if (server_.is_draining() && !has_arrived()) break;
      expire_after(server_.limits.idle);
      co_await http::async_read_header(socket_, buffer_, *parser_, asio::redirect_error(use_task, error_));
      is_idle_ = false;
      begin_ = Clock::now();
      if (error_ == asio::error::operation_aborted && server_.is_draining() && has_arrived()) continue;
      if (error_) {
        if (const unsigned status = status_of_header()) {
          Response response = error_response(status, "the header is not valid HTTP/1.1: " + error_.message());
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
  // ---- Time limits
  // One timer, which is set again only if a deadline is before the time that it is set to. It runs outside of
  // the strand, because a call may occupy the strand.

  void expire_after(Clock::duration time) { expire_at(Clock::now() + time); }
  void expire_at(Clock::time_point deadline) {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
    if (deadline_ < armed_) arm();
  }
  void arm() {  // under the mutex
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
      return server_.scheduler.abandon(job, {HALYARD_DEADLINE_EXCEEDED, "the model did not answer in time"});
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
      if (self->has_expired() && !self->puts_off()) self->close_socket();
    });
  }
  // Whether the client has sent or received bytes that extend the deadline.
  bool puts_off() { return sending_ ? sending_->puts_off() : body_ && body_->puts_off(); }
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
    (void)socket_.close(ignored);  // the error is in `ignored`
  }
  // Ends the wait for a request, unless one has arrived. What the socket has handed over already is kept: the
  // read that has it is not cancelled.
  void close_if_idle() {
    error_code ignored;
    if (is_idle_ && !has_arrived()) (void)socket_.cancel(ignored);
  }
  // Whether bytes of the next request are there.
  bool has_arrived() {
    error_code ignored;
    return parser_->got_some() || buffer_.size() > 0 || socket_.available(ignored) > 0;
  }

  // The status of the response to a header that Beast refuses; 0: none, because the client has disconnected.
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
    const std::string method(view_of(message.method_string()));
    const std::string target(view_of(message.target()));
    const Route route = route_of(method, target);
    keep_alive_ = message.keep_alive();
    const unsigned version = message.version();
    is_http11_ = version >= 11;
    version_.clear();

    Response response;
    if (const auto head = read_head(message)) {
      body_.emplace(socket_, buffer_, *parser_, head->is_chunked, head->length,
                    [this](Clock::time_point deadline) { expire_at(deadline); });
      awaits_continue_ = head->awaits_continue;
      if (const auto refused = refusal_of(server_.access, is_loopback_, *head, route.authority)) {
        response = response_of(*refused);
      } else {
        const bool has_shared_answer = is_shared(server_.access, *head);
        if (has_shared_answer && message.method() == http::verb::options) {
          response = preflight_answer();
        } else {
          response = co_await respond_to(route, *head);
        }
        if (has_shared_answer) response.headers += sharing_headers(*head->origin);
      }
    } else {
      response = response_of(head.error());
    }
    if (is_gone_) {
      answered(method, target, route, response);
      co_return false;
    }
    if (!route.is_head) co_await compress_for_client(response);

    // The rest of the body precedes the next request.
    bool has_rest = false;
    if (body_ && !response.closes && keep_alive_ && (!body_->is_at_end() || awaits_continue_))
      has_rest = !co_await skip_body();
    response.closes |= !keep_alive_ || has_rest || server_.is_draining();
    // HTTP/1.1 keeps the connection by default.
    if (version == 10 && !response.closes) response.headers += "Connection: keep-alive\r\n";
    const bool is_written = co_await write(response, route.is_head);
    answered(method, target, route, response);
    if (!is_written) co_return false;
    if (!response.closes) co_return true;
    response = {};  // frees its memory before lingering
    co_await linger();
    co_return false;
  }

  // Errors are not compressed, because the log quotes them.
  Task<> compress_for_client(Response& response) {
    if (response.status != 200 || response.content_length() < kMinCompressed) co_return;
    response.headers += "Vary: Accept-Encoding\r\n";  // for caches
    std::string accepted;
    const auto fields = parser_->get().equal_range(http::field::accept_encoding);
    for (auto field = fields.first; field != fields.second; ++field)
      accepted.append(accepted.empty() ? "" : ",").append(view_of(field->value()));
    if (accepted.empty()) co_return;
    expire_at(Clock::time_point::max());  // the client is not late
    co_await compress(response, chosen_coding(accepted), server_.budget);
  }

  Task<Response> respond_to(const Route& route, const RequestHead& head) {
    if (route.status != 200) co_return refusal(route);
    if (route.endpoint == Endpoint::infer) co_return co_await infer(route, head);
    if (route.endpoint == Endpoint::repository_index || route.endpoint == Endpoint::repository_load ||
        route.endpoint == Endpoint::repository_unload)
      co_return co_await control(route, head);
    Response response = answer(server_, route);
    response.reservation = Reservation(server_.budget);
    if (response.body.size() > kFreeAnswer && !response.reservation.add(response.body.size()))
      co_return no_room();
    co_return response;
  }

  void answered(std::string_view method, std::string_view target, const Route& route,
                const Response& response) {
    server_.metrics.count_response(response.status);
    if (traced_) {
      traced_->end = Clock::now();
      server_.runtime.traces.add(*std::exchange(traced_, std::nullopt));
    }
    if (!server_.logs_requests && response.status < 500) return;
    const Clock::duration time = Clock::now() - begin_;
    constexpr size_t kMaxTarget = 256;
    RequestLine line{.method = method.substr(0, 16),
                     .target = target.substr(0, kMaxTarget),
                     .client = address_text(client_),
                     .model = route.model,
                     .version = route.version.empty() ? version_ : route.version,
                     .trace_id = "",
                     .status = response.status,
                     .bytes = response.content_length(),
                     .time = time,
                     .error = ""};
    if (const auto parent = parse_trace_parent(view_of(parser_->get()["traceparent"])))
      line.trace_id = parent->trace_id;
    if (response.status >= 400) line.error = std::string_view(response.body).substr(0, 512);
    log_request(server_.log, line);
  }

  // ---- The repository

  Task<Response> control(const Route& route, const RequestHead& head) {
    if (route.endpoint != Endpoint::repository_index && !server_.control)
      co_return error_response(403, kNoControl);
    auto form = body_form(parser_->get(), head, kMaxControlBody);
    if (!form) co_return response_of(form.error());
    form->json_size.reset();  // nothing follows the JSON object
    const auto too_large = [] {
      return error_response(413, fmt::format("the body is larger than {} bytes", kMaxControlBody));
    };
    if (head.length > kMaxControlBody) co_return too_large();
    body_->decode(form->coding, kMaxControlBody);
    Reservation reservation(server_.budget);
    JsonText json;
    if (auto wrong = co_await read_json(reservation, *form, json)) co_return std::move(*wrong);
    if (json.view.size() > kMaxControlBody) co_return too_large();
    const auto request = parse_control_request(route.endpoint, json.view);
    if (json.copy.size() == 0) body_->skip_buffered(json.view.size());
    if (!request) co_return error_response(status_of_request(request.error().code), request.error().text);
    if (route.endpoint == Endpoint::repository_index) co_return index_answer(server_, *request);
    const Result<> done = co_await load_or_unload(route);
    if (done) co_return Response{};
    co_return error_response(status_of_request(done.error().code), without_folders(done.error().text));
  }

  // What a connection waits for while the loader works. Both have it, because either may end first.
  struct Loading {
    using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, SocketExecutor>;

    explicit Loading(const SocketExecutor& executor) : ended(executor, Clock::time_point::max()) {}
    Timer ended;  // cancelled at the end
    std::optional<Result<>> result;
  };

  Task<Result<>> load_or_unload(const Route& route) {
    expire_at(Clock::time_point::max());  // initializers have a time limit of their own
    const SocketExecutor executor = socket_.get_executor();
    loading_ = std::make_shared<Loading>(executor);
    auto go_on = [executor, loading = loading_](Result<> done) {
      asio::post(executor, [loading, done = std::move(done)] {
        loading->result = done;
        loading->ended.cancel();
      });
    };
    const Result<> waits = route.endpoint == Endpoint::repository_load
                               ? server_.control->load(route.model, std::move(go_on))
                               : server_.control->unload(route.model, std::move(go_on));
    if (!waits) {
      loading_ = nullptr;
      co_return waits;
    }
    error_code cancelled;
    co_await loading_->ended.async_wait(asio::redirect_error(use_task, cancelled));
    const std::shared_ptr<Loading> ended = std::exchange(loading_, nullptr);
    if (ended->result) co_return *std::move(ended->result);
    co_return fail(HALYARD_UNAVAILABLE, "the server ends");
  }

  // ---- Inference

  Task<Response> infer(const Route& route, const RequestHead& head) {
    const auto found = model_for(server_, route.model, route.version);
    if (!found) co_return response_of(found.error());
    const std::shared_ptr<Model>& model = *found;
    const auto form = body_form(parser_->get(), head, server_.limits.body);
    if (!form) co_return response_of(form.error());
    version_ = model->spec().version;
    body_->decode(form->coding, server_.limits.body);
    // Refused before reading the body, because the queue is full.
    if (server_.scheduler.is_full(*model)) co_return response_of(queue_is_full(*model));

    auto job = std::make_shared<Job>();
    job->model = model;
    job->reservation = Reservation(server_.budget);
    traced_ = choose_trace(server_, *job, view_of(parser_->get()["traceparent"]), begin_);
    JsonText json;
    std::optional<Response> wrong = co_await read_json(job->reservation, *form, json);
    if (wrong) co_return std::move(*wrong);
    auto request = parse_infer_request(json.view, model->spec(),
                                       [&](uint64_t bytes) { return job->reservation.add(bytes); });
    if (json.copy.size() == 0) body_->skip_buffered(json.view.size());
    json.copy = {};
    job->reservation.give_back(json.reserved);
    if (!request) co_return response_of(bad_request(*model, request.error()));
    if (form->json_size || request->binary_size() > 0) {
      wrong = co_await read_tensors(*request, *form, *job);
      if (wrong) co_return std::move(*wrong);
    }
    std::ranges::sort(request->inputs, {}, &RequestInput::index);
    job->inputs = std::move(request->inputs);

    const bool is_accepted = co_await call(job);
    if (!is_accepted) co_return response_of(queue_is_full(*model));
    if (job->is_traced) add_times(*traced_, *job);
    co_return respond(*request, *job);
  }

  static Response no_room() { return error_response(503, kNoRoom); }

  static Response response_of(const Refused& refused) { return error_response(refused.status, refused.text); }
  static Response response_of(const Refusal& refusal) {
    Response response = error_response(refusal.status, refusal.text);
    response.headers += refusal.headers;
    response.closes = refusal.closes;
    return response;
  }

  // The response to the request that a browser sends before a request from a page of another origin.
  static Response preflight_answer() {
    return {.content_type = "text/plain",
            .headers =
                "Access-Control-Allow-Methods: GET, HEAD, POST\r\n"
                "Access-Control-Allow-Headers: Content-Type, Content-Encoding, "
                "Inference-Header-Content-Length, traceparent\r\n"
                "Access-Control-Max-Age: 600\r\n"};
  }
  static std::string sharing_headers(std::string_view origin) {
    return fmt::format(
        "Access-Control-Allow-Origin: {}\r\nAccess-Control-Expose-Headers: "
        "Inference-Header-Content-Length\r\n"
        "Vary: Origin\r\n",
        origin);
  }

  // The JSON text: in the connection's buffer if all of it has arrived with the header.
  struct JsonText {
    std::string_view view;
    AlignedBuffer copy;
    uint64_t reserved = 0;  // reserved bytes for the copy
  };

  // Reads the JSON object of the request: the whole body, or the number of bytes in
  // Inference-Header-Content-Length. Reserves memory only for bytes that have arrived, not for the announced
  // size.
  Task<std::optional<Response>> read_json(Reservation& reservation, const BodyForm& form, JsonText& text) {
    const bool has_length = !body_->is_chunked() && !body_->is_coded();
    std::optional<uint64_t> size = form.json_size;
    if (!size && has_length) size = body_->remaining();
    const auto reserve = [&](uint64_t bytes) {
      if (!reservation.add(bytes)) return false;
      text.reserved += bytes;
      return true;
    };
    if (has_length && *size <= buffer_.size()) {
      // A client that has sent a part of the body does not wait.
      if (body_->remaining() > 0 && buffer_.size() > 0) awaits_continue_ = false;
      text.view = {static_cast<const char*>(buffer_.data().data()), *size};
      if (!reserve(*size)) co_return no_room();
      if (body_->remaining() > *size) body_->begin();
      co_return std::nullopt;
    }
    if (!co_await begin_body()) co_return error_response(400, "");
    uint64_t capacity = 0;
    while (!size || text.copy.size() < *size) {
      const size_t before = text.copy.size();
      if (before == capacity) {
        const uint64_t larger = size ? *size : std::max<uint64_t>(2 * capacity, kPiece);
        // Without a size the buffer grows, and both copies exist for a while.
        if (!size && !reserve(larger)) co_return no_room();
        if (!text.copy.reserve(larger)) co_return error_response(503, "out of memory for the request");
        if (!size) {
          reservation.give_back(capacity);
          text.reserved -= capacity;
        }
        capacity = larger;
      }
      const size_t most = std::min<uint64_t>(capacity - before, kPieceOfTensor);
      if (!text.copy.resize(before + most)) co_return error_response(503, "out of memory for the request");
      const size_t read = co_await body_->read_some(reinterpret_cast<char*>(text.copy.data()) + before, most);
      (void)text.copy.resize(before + read);  // shrinks
      if (is_cut_short()) co_return cut_short();
      if (read == 0 && size) co_return cut_short();
      if (read == 0) break;
      if (size && !reserve(read)) co_return no_room();
    }
    text.view = {reinterpret_cast<const char*>(text.copy.data()), text.copy.size()};
    co_return std::nullopt;
  }

  // Reads the binary tensors. Checks their sizes before allocating memory for them, and reserves memory as
  // their bytes arrive, because unwritten pages take no memory.
  Task<std::optional<Response>> read_tensors(InferRequest& request, const BodyForm& form, Job& job) {
    const uint64_t size = request.binary_size();
    const bool has_length = !body_->is_chunked() && !body_->is_coded();
    if (!form.json_size)
      co_return error_response(
          400, "an input has binary_data_size, but the header has no Inference-Header-Content-Length");
    if (has_length && size != body_->remaining())
      co_return error_response(
          400, fmt::format("{} bytes follow the JSON object, but the inputs' binary_data_size add up to {}",
                           body_->remaining(), size));
    if (size > server_.limits.body)
      co_return error_response(413, fmt::format("the inputs have {} bytes; the server accepts at most {}",
                                                size, server_.limits.body));
    for (RequestInput& input : request.inputs) {
      if (!input.is_binary) continue;
      if (!input.data.resize(input.byte_size)) co_return error_response(503, "out of memory for the tensors");
      for (uint64_t done = 0; done < input.byte_size;) {
        const size_t most = std::min<uint64_t>(input.byte_size - done, kPieceOfTensor);
        const size_t read =
            co_await body_->read_some(reinterpret_cast<char*>(input.data.data()) + done, most);
        if (read == 0 || is_cut_short()) co_return cut_short();
        if (!job.reservation.add(read)) co_return no_room();
        done += read;
      }
      make_truth_values(input.data.span(), *job.model->spec().inputs[input.index].type);
    }
    if (!has_length) {
      char further = 0;
      const size_t read = co_await body_->read_some(&further, 1);
      if (read > 0)
        co_return error_response(400,
                                 "more bytes follow the JSON object than the inputs' binary_data_size state");
      if (is_cut_short()) co_return cut_short();
    }
    co_return std::nullopt;
  }

  bool is_cut_short() const { return body_->error() || body_->is_malformed() || body_->is_too_large(); }

  Response cut_short() const {
    Response response =
        body_->is_too_large()
            ? error_response(413, fmt::format("the body is larger than {} bytes",
                                              body_->most_decoded().value_or(server_.limits.body)))
        : body_->is_malformed()
            ? error_response(400, "the body cannot be decoded according to its Content-Encoding")
            : error_response(400, "the body is malformed, or shorter than its header states");
    response.closes = true;
    return response;
  }

  // False: the queue is full.
  Task<bool> call(const std::shared_ptr<Job>& job) {
    wait_for(job);
    expire_at(begin_ + server_.limits.request);
    const bool is_accepted = server_.scheduler.submit(job);
    if (is_accepted && !job->has_outcome()) {
      const SocketExecutor executor = socket_.get_executor();
      co_await asio::async_initiate<const asio::use_awaitable_t<SocketExecutor>, void()>(
          [&](auto handler) {
            auto shared = std::make_shared<decltype(handler)>(std::move(handler));
            const auto go_on = [shared, executor] {
              // The coroutine must not be resumed within the function that suspends it.
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

  Response respond(const InferRequest& request, Job& job) {
    Result<Response> response;
    if (!job.failure) {
      response = response_of(job.model->spec(), request, job);
      if (!response) job.failure = response.error();
    }
    if (const auto refused = outcome_of(job, is_gone_, Clock::now() - begin_)) return response_of(*refused);
    return *std::move(response);
  }

  // The memory of the results and their text stays reserved until the response has been written.
  static Result<Response> response_of(const ModelSpec& model, const InferRequest& request, Job& job) {
    Response response;
    std::vector<OutputTensor> tensors;
    response.outputs.reserve(request.outputs.size());
    bool has_binary = false;
    response.reservation = std::move(job.reservation);
    response.reservation.give_back(response.reservation.size());  // the arguments have been freed
    const auto reserve = [&](uint64_t bytes) -> Result<> {
      if (response.reservation.add(bytes)) return {};
      return fail(HALYARD_UNAVAILABLE, "{}", kNoRoom);
    };
    for (const RequestOutput& wanted : request.outputs) {
      const TensorSpec& spec = model.outputs[wanted.index];
      response.outputs.push_back(TOOL_TRY(Output::of(spec, job.results[wanted.index])));
      tensors.push_back(response.outputs.back().tensor(spec, wanted.is_binary));
      TOOL_TRY(reserve(tensors.back().bytes.size()));
      has_binary |= wanted.is_binary;
      if (wanted.is_binary) response.tail.push_back(tensors.back().bytes);
    }
    const uint64_t most = infer_document_bound(model, request.id, tensors);
    TOOL_TRY(reserve(most));
    response.body = infer_document(model, request.id, tensors);
    response.reservation.give_back(most - response.body.size());
    response.results = std::move(job.results);
    if (has_binary) {
      response.content_type = kBinary;
      response.headers = fmt::format("Inference-Header-Content-Length: {}\r\n", response.body.size());
    } else {
      response.outputs.clear();
      response.results.clear();
      response.reservation.give_back(response.reservation.size() - response.body.size());
    }
    return response;
  }

  // ---- Bytes

  // Sends 100 Continue if the client waits for it. False: the connection has failed.
  Task<bool> begin_body() {
    if (std::exchange(awaits_continue_, false)) {
      error_ = {};
      expire_after(kGrace);
      co_await asio::async_write(socket_, asio::buffer(kContinue), asio::redirect_error(use_task, error_));
      if (error_) co_return false;
    }
    body_->begin();
    co_return true;
  }

  // Reads the rest of a small body. False: the body is larger, malformed or cut off, or the client waits for
  // 100 Continue.
  Task<bool> skip_body() {
    body_->forget_error();
    if (awaits_continue_) co_return false;
    if (!body_->is_chunked() && body_->remaining() > kMaxSkipped) co_return false;
    body_->begin();
    std::vector<char> piece(kPiece);
    size_t skipped = 0;
    while (!body_->is_at_end()) {
      if (skipped >= kMaxSkipped) co_return false;
      skipped += co_await body_->read_sent(piece.data(), piece.size());
      if (body_->error()) co_return false;
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
    sending_.emplace(socket_, asio::buffer_size(buffers),
                     [this](Clock::time_point deadline) { expire_at(deadline); });
    // Writes everything, in as few system calls as possible; Asio's own condition writes 64 KiB a call.
    const auto all_at_once = [this](const error_code& failed, size_t written) {
      sending_->count(written);
      return failed ? 0 : size_t{1} << 30;
    };
    error_code error;
    co_await asio::async_write(socket_, buffers, all_at_once, asio::redirect_error(use_task, error));
    sending_.reset();
    co_return !error;
  }

  // Closes the sending side and reads on for a while, because a client loses the response if its connection
  // is closed with unread bytes.
  Task<> linger() {
    error_code error;
    (void)socket_.shutdown(asio::socket_base::shutdown_send, error);
    expire_after(kLinger);
    std::vector<char> piece(kPiece);
    for (size_t skipped = 0; !error && skipped < kMaxLingered;)
      skipped += co_await socket_.async_read_some(asio::buffer(piece), asio::redirect_error(use_task, error));
  }

  Server& server_;
  ClientSocket socket_;
  const bool is_loopback_;
  ClientSocket::endpoint_type client_;
  beast::flat_buffer buffer_{kPiece};
  std::optional<RequestParser> parser_;
  std::optional<Body> body_;        // of the request whose header has been read
  std::optional<Sending> sending_;  // of the response that is being written
  error_code error_;
  Clock::time_point begin_;
  bool keep_alive_ = false;
  bool awaits_continue_ = false;
  bool is_idle_ = true;
  bool is_listed_ = false;
  std::shared_ptr<Loading> loading_;    // while a request waits for the loader; on the strand
  std::string version_;                 // of the model that the request uses, for the log
  std::optional<RequestTimes> traced_;  // of a recorded request

  std::mutex mutex_;  // guards the members below, closing the socket, and its use outside of the strand
  asio::basic_waitable_timer<Clock> timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point armed_ = Clock::time_point::max();
  std::shared_ptr<Job> job_;  // the job that the request waits for
  int looks_ = 0;             // since the job was set
  bool is_probed_ = false;    // with an interim response
  bool is_http11_ = false;
  std::atomic<bool> is_gone_ = false;  // the client has closed the connection during its call
};

}  // namespace

void start_connection(Server& server, ClientSocket socket, bool is_loopback) {
  const auto executor = socket.get_executor();
  const auto connection = std::make_shared<HttpConnection>(server, std::move(socket), is_loopback);
  if (!connection->list()) {
    server.metrics.refused_connections.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  server.metrics.accepted.fetch_add(1, std::memory_order_relaxed);
  asio::co_spawn(executor, [connection] { return connection->run(); }, asio::detached);
}

}  // namespace halyard::tools::serve
