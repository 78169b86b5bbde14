// Admission, outcome, traces.
#include "inference.h"

#include <fmt/format.h>

#include "response.h"

namespace halyard::tools::serve {

std::expected<std::shared_ptr<Model>, Refused> model_for(Server& server, const std::string& name,
                                                         const std::string& version) {
  auto model = server.repository.find(name, version);
  if (!model)
    return std::unexpected(Refused{status_of_request(model.error().code), std::move(model.error().text)});
  if (!(*model)->has_lost_device()) return *std::move(model);
  (*model)->metrics().failed.fetch_add(1, std::memory_order_relaxed);
  return std::unexpected(
      Refused{503, fmt::format("the device of model '{}' is lost; a reload (SIGHUP) opens the device again",
                               (*model)->spec().name)});
}

Refused queue_is_full(const Model& model) {
  model.metrics().rejected.fetch_add(1, std::memory_order_relaxed);
  return {503, fmt::format("the queue of model '{}' is full; try again", model.spec().name)};
}

Refused bad_request(const Model& model, const Failure& failure) {
  model.metrics().failed.fetch_add(1, std::memory_order_relaxed);
  return {status_of_request(failure.code), failure.text};
}

std::optional<Refused> outcome_of(const Job& job, bool is_gone, Clock::duration time) {
  ModelMetrics& metrics = job.model->metrics();
  metrics.request_seconds.add(time);
  if (!job.failure) {
    metrics.succeeded.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  const unsigned status = is_gone ? kClientGone : status_of_call(job.failure->code);
  (is_gone         ? metrics.cancelled
   : status == 504 ? metrics.timed_out
                   : metrics.failed)
      .fetch_add(1, std::memory_order_relaxed);
  return Refused{status, without_folders(job.failure->line())};
}

std::optional<RequestTimes> choose_trace(Server& server, Job& job, std::string_view trace_parent,
                                         Clock::time_point begin) {
  if (!server.runtime.traces.is_on()) return std::nullopt;
  const auto parent = parse_trace_parent(trace_parent);
  job.is_traced = server.runtime.traces.samples(parent);
  if (!job.is_traced) return std::nullopt;
  const ModelSpec& model = job.model->spec();
  RequestTimes times{.name = fmt::format("{}/{}", model.name, model.version), .begin = begin};
  if (parent) times.name += fmt::format(" {}", parent->trace_id);
  // Defaults for a request that is refused while it is read.
  times.queued = times.called = times.returned = begin;
  return times;
}

void add_times(RequestTimes& times, const Job& job) {
  times.queued = job.queued_at;
  times.called = job.queued_at + job.queue_time;
  times.returned = times.called + job.call_times.infer;
}

}  // namespace halyard::tools::serve
