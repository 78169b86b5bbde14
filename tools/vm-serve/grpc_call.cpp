// The methods, their time limits, and their answers.
#include "grpc_call.h"

#include <algorithm>
#include <array>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include "body.h"
#include "endpoints.h"
#include "grpc_control.h"
#include "grpc_documents.h"
#include "grpc_status.h"
#include "request_log.h"

namespace halyard::tools::serve {

namespace asio = boost::asio;

struct GrpcMethod {
  std::string_view name;
  void (GrpcCall::*serve)(GrpcMessage message);
};

namespace {

constexpr std::string_view kService = "/inference.GRPCInferenceService/";
constexpr GrpcMethod kMethods[] = {{"ServerLive", &GrpcCall::server_live},
                                   {"ServerReady", &GrpcCall::server_ready},
                                   {"ModelReady", &GrpcCall::model_ready},
                                   {"ServerMetadata", &GrpcCall::server_metadata},
                                   {"ModelConfig", &GrpcCall::model_config},
                                   {"ModelStatistics", &GrpcCall::model_statistics},
                                   {"RepositoryIndex", &GrpcCall::repository_index},
                                   {"RepositoryModelLoad", &GrpcCall::repository_load},
                                   {"RepositoryModelUnload", &GrpcCall::repository_unload},
                                   {"ModelMetadata", &GrpcCall::model_metadata},
                                   {"ModelInfer", &GrpcCall::model_infer}};

constexpr uint64_t kMaxAnswer = (uint64_t{1} << 31) - 1;  // bytes of a message

Clock::time_point after(Clock::time_point begin, int64_t nanoseconds) {
  const std::chrono::nanoseconds time(nanoseconds);
  return time > Clock::time_point::max() - begin ? Clock::time_point::max() : begin + time;
}

std::string_view view_of(const vm_serve_grpc_text_t& text) { return {text.data, text.size}; }
vm_serve_grpc_text_t text_of(std::string_view text) { return {text.data(), text.size()}; }

Refused refused_of(const Failure& failure) { return {status_of_request(failure.code), failure.text}; }

}  // namespace

GrpcMessage::GrpcMessage(const vm_serve_grpc_message_t& message) : message_(message) {
  pieces_.reserve(message.count);
  for (size_t i = 0; i < message.count; ++i)
    pieces_.emplace_back(static_cast<const std::byte*>(message.pieces[i].data), message.pieces[i].size);
}

const GrpcMethod* grpc_method_of(std::string_view path) {
  if (!path.starts_with(kService)) return nullptr;
  const auto* const method = std::ranges::find(kMethods, path.substr(kService.size()), &GrpcMethod::name);
  return method == std::end(kMethods) ? nullptr : method;
}

GrpcCall::GrpcCall(Server& server, const vm_serve_grpc_library_t& library, vm_serve_grpc_call_t* handle,
                   const GrpcMethod& method, const vm_serve_grpc_begin_t& begin, std::string client)
    : server_(server),
      library_(library),
      handle_(handle),
      method_(method),
      client_(std::move(client)),
      trace_parent_(view_of(begin.trace_parent)),
      begin_(Clock::now()),
      deadline_(std::min(begin_ + server.limits.request, after(begin_, begin.nanoseconds))),
      client_deadline_(after(begin_, begin.nanoseconds)),
      timer_(server.runtime.io) {}

// ---- Time limits: of the message, then of the model, then of the answer

void GrpcCall::begin() { expire_at(begin_ + time_for(server_.limits.body)); }

void GrpcCall::expire_at(Clock::time_point deadline) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  timer_.expires_at(deadline);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (error) return;
    if (const auto self = weak.lock()) self->expire();
  });
}

void GrpcCall::expire() {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard lock(mutex_);
    job = job_;
  }
  if (job)
    return server_.scheduler.abandon(job, {HALYARD_DEADLINE_EXCEEDED, "the model did not answer in time"});
  library_.cancel(handle_);
}

void GrpcCall::cancelled() {
  std::shared_ptr<Job> job;
  const bool is_late = Clock::now() >= client_deadline_;
  bool is_loading = false;
  {
    const std::lock_guard lock(mutex_);
    is_gone_ = !is_late;
    job = job_;
    is_loading = is_loading_;
  }
  if (is_loading)
    return refuse(
        {is_late ? 504 : kClientGone, "the client no longer waits; the model is loaded nevertheless"});
  if (!job) return;
  server_.scheduler.abandon(job, is_late ? Failure{HALYARD_DEADLINE_EXCEEDED,
                                                   "the model did not answer before the client's deadline"}
                                         : Failure{HALYARD_CANCELLED, "the client has cancelled the call"});
}

void GrpcCall::end() {
  if (traced_) {
    traced_->end = Clock::now();
    server_.runtime.traces.add(*traced_);
  }
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  timer_.cancel();
}

// ---- Answers

bool GrpcCall::begin_answer() {
  const std::lock_guard lock(mutex_);
  job_ = nullptr;
  return !std::exchange(is_answered_, true);
}

void GrpcCall::refuse(const Refused& refused) {
  if (!begin_answer()) return;
  const int code = grpc_code_of(refused.status);
  // Clients limit the size of trailers.
  const std::string_view text = std::string_view(refused.text).substr(0, kMaxErrorText);
  count(code, 0, text);
  expire_at(Clock::now() + kGrace);
  const vm_serve_grpc_answer_t answer = {.code = code, .text = text_of(text), .message = {}};
  library_.answer(handle_, &answer);
}

void GrpcCall::send(std::string message) {
  auto sent = std::make_unique<Sent>();
  sent->answer.parts.push_back({.text = std::move(message), .bytes = {}});
  send(std::move(sent));
}

void GrpcCall::send(std::unique_ptr<Sent> sent) {
  if (!begin_answer()) return;
  const uint64_t size = sent->answer.size();
  count(0, size, "");
  for (const auto& [text, bytes] : sent->answer.parts) {
    if (!text.empty()) sent->pieces.push_back({text.data(), text.size()});
    if (!bytes.empty()) sent->pieces.push_back({bytes.data(), bytes.size()});
  }
  expire_at(Clock::now() + time_for(size));
  Sent* const owner = sent.release();
  const vm_serve_grpc_answer_t answer = {
      .code = 0, .text = {}, .message = {owner->pieces.data(), owner->pieces.size(), owner, [](void* object) {
                                           delete static_cast<Sent*>(object);
                                         }}};
  library_.answer(handle_, &answer);
}

void GrpcCall::count(int code, uint64_t bytes, std::string_view text) {
  server_.metrics.count_grpc_response(code);
  const bool is_servers_fault =
      code == grpc_code_of(500) || code == grpc_code_of(503) || code == grpc_code_of(504);
  if (!server_.logs_requests && !is_servers_fault) return;
  constexpr size_t kMaxName = 256;
  RequestLine line{.method = "gRPC",
                   .target = method_.name,
                   .client = client_,
                   .model = std::string_view(head_.model).substr(0, kMaxName),
                   .version = std::string_view(head_.version).substr(0, kMaxName),
                   .trace_id = "",
                   .status = grpc_code_name(code),
                   .bytes = bytes,
                   .time = Clock::now() - begin_,
                   .error = text};
  if (const auto parent = parse_trace_parent(trace_parent_)) line.trace_id = parent->trace_id;
  log_request(server_.log, line);
}

// ---- Methods

void GrpcCall::message(std::optional<GrpcMessage> message) {
  if (!message) return refuse({400, "the call has no message; expected one"});
  asio::post(server_.runtime.io, [self = shared_from_this(), held = std::move(*message)]() mutable {
    (*self.*self->method_.serve)(std::move(held));
  });
}

void GrpcCall::server_live(GrpcMessage) { send(state_message(true)); }

void GrpcCall::server_ready(GrpcMessage) { send(state_message(is_ready(server_))); }

void GrpcCall::server_metadata(GrpcMessage) { send(server_message(halyard_version())); }

void GrpcCall::model_ready(GrpcMessage message) {
  const auto name = read_model_name(message.reader());
  if (!name) return refuse(refused_of(name.error()));
  const auto is_model_ready = is_ready(server_, name->name, name->version);
  if (!is_model_ready) return refuse(refused_of(is_model_ready.error()));
  send(state_message(*is_model_ready));
}

void GrpcCall::model_metadata(GrpcMessage message) {
  const auto name = read_model_name(message.reader());
  if (!name) return refuse(refused_of(name.error()));
  const auto model = server_.repository.find(name->name, name->version);
  if (!model) return refuse(refused_of(model.error()));
  send(model_message((*model)->spec(), loaded_versions(server_, name->name)));
}

void GrpcCall::model_config(GrpcMessage message) {
  const auto name = read_model_name(message.reader());
  if (!name) return refuse(refused_of(name.error()));
  const auto model = server_.repository.find(name->name, name->version);
  if (!model) return refuse(refused_of(model.error()));
  send(config_message((*model)->spec(), serve::model_config(server_, **model)));
}

void GrpcCall::model_statistics(GrpcMessage message) {
  const auto name = read_model_name(message.reader());
  if (!name) return refuse(refused_of(name.error()));
  const auto statistics = serve::model_statistics(server_, name->name, name->version);
  if (!statistics) return refuse(refused_of(statistics.error()));
  send(statistics_message(*statistics));
}

void GrpcCall::repository_index(GrpcMessage message) {
  const auto only_ready = read_index_message(message.reader());
  if (!only_ready) return refuse(refused_of(only_ready.error()));
  send(index_message(server_.repository.index(), *only_ready));
}

void GrpcCall::repository_load(GrpcMessage message) { control(message, &ModelControl::load); }
void GrpcCall::repository_unload(GrpcMessage message) { control(message, &ModelControl::unload); }

void GrpcCall::control(const GrpcMessage& message,
                       Result<> (ModelControl::*change)(std::string, ModelControl::Done)) {
  if (!server_.control) return refuse({403, std::string(kNoControl)});
  auto name = read_control_message(message.reader(), change == &ModelControl::load);
  if (!name) return refuse(refused_of(name.error()));
  head_.model = *name;
  {
    const std::lock_guard lock(mutex_);
    is_loading_ = true;
  }
  expire_at(Clock::time_point::max());  // initializers have a time limit of their own
  const Result<> waits =
      (server_.control->*change)(*std::move(name), [self = shared_from_this()](Result<> done) {
        if (done) return self->send(std::string());
        self->refuse({status_of_request(done.error().code), without_folders(done.error().text)});
      });
  if (!waits) refuse(refused_of(waits.error()));
}

void GrpcCall::model_infer(GrpcMessage message) {
  if (const auto refused = call_model(std::move(message))) refuse(*refused);
}

// Gives the request to the scheduler, whose outcome continues with respond().
std::optional<Refused> GrpcCall::call_model(GrpcMessage message) {
  auto job = std::make_shared<Job>();
  job->reservation = Reservation(server_.budget);
  const uint64_t size = message.reader().size();
  if (!job->reservation.add(size)) return Refused{503, std::string(kNoRoom)};
  auto head = read_infer_head(message.reader());
  if (!head) return refused_of(head.error());
  head_ = *std::move(head);
  auto model = model_for(server_, head_.model, head_.version);
  if (!model) return std::move(model).error();
  if (server_.scheduler.is_full(**model)) return queue_is_full(**model);
  job->model = *model;
  head_.version = (*model)->spec().version;
  traced_ = choose_trace(server_, *job, trace_parent_, begin_);
  auto request = parse_infer_message(message.reader(), (*model)->spec(),
                                     [&](uint64_t bytes) { return job->reservation.add(bytes); });
  if (!request) return bad_request(**model, request.error());
  {
    const GrpcMessage freed = std::move(message);
  }
  job->reservation.give_back(size);
  request_ = *std::move(request);
  std::ranges::sort(request_.inputs, {}, &RequestInput::index);
  job->inputs = std::move(request_.inputs);

  bool is_gone = false;
  {
    const std::lock_guard lock(mutex_);
    is_gone = is_gone_;
    job_ = job;
  }
  if (is_gone) return Refused{kClientGone, "the client has cancelled the call"};
  expire_at(deadline_);
  if (!server_.scheduler.submit(job)) return queue_is_full(**model);
  const auto executor = server_.runtime.io.get_executor();
  if (!job->await([self = shared_from_this(), executor, job] {
        asio::dispatch(executor, [self, job] { self->respond(*job); });
      }))
    respond(*job);
  return std::nullopt;
}

void GrpcCall::respond(Job& job) {
  if (job.is_traced) add_times(*traced_, job);
  std::unique_ptr<Sent> sent;
  if (!job.failure) {
    auto made = sent_of(job);
    if (made) {
      sent = *std::move(made);
    } else {
      job.failure = std::move(made).error();
    }
  }
  bool is_gone = false;
  {
    const std::lock_guard lock(mutex_);
    is_gone = is_gone_;
  }
  if (const auto refused = outcome_of(job, is_gone, Clock::now() - begin_)) return refuse(*refused);
  send(std::move(sent));
}

// The memory of the results and their messages stays reserved until the answer has been sent.
Result<std::unique_ptr<GrpcCall::Sent>> GrpcCall::sent_of(Job& job) const {
  auto sent = std::make_unique<Sent>();
  sent->reservation = std::move(job.reservation);
  sent->reservation.give_back(sent->reservation.size());  // the arguments have been freed
  const ModelSpec& model = job.model->spec();
  const auto reserve = [&](uint64_t bytes) -> Result<> {
    if (sent->reservation.add(bytes)) return {};
    return fail(HALYARD_UNAVAILABLE, "{}", kNoRoom);
  };
  std::vector<OutputTensor> tensors;
  sent->outputs.reserve(request_.outputs.size());
  for (const RequestOutput& wanted : request_.outputs) {
    const TensorSpec& spec = model.outputs[wanted.index];
    sent->outputs.push_back(TOOL_TRY(Output::of(spec, job.results[wanted.index])));
    tensors.push_back(sent->outputs.back().tensor(spec, head_.has_raw));
    TOOL_TRY(reserve(tensors.back().bytes.size()));
  }
  const uint64_t most = infer_answer_bound(model, head_.id, tensors);
  TOOL_TRY(reserve(most));
  sent->answer = infer_answer(model, head_.id, tensors, head_.has_raw);
  sent->results = std::move(job.results);
  if (const uint64_t size = sent->answer.size(); size > kMaxAnswer)
    return fail(HALYARD_OUT_OF_RANGE,
                "the response has {} bytes; a message of gRPC has at most {}; request fewer outputs", size,
                kMaxAnswer);
  return sent;
}

}  // namespace halyard::tools::serve
