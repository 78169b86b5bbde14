// The steps of an inference request that do not depend on how it has arrived, over HTTP or gRPC.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "job.h"
#include "request_trace.h"
#include "server.h"

namespace halyard::tools::serve {

// Why a request is not answered with results: a status of HTTP, and a text for the client.
struct Refused {
  unsigned status;
  std::string text;
};

// The model of a request. 404: there is none. 503: it could not be loaded, or its device is lost.
std::expected<std::shared_ptr<Model>, Refused> model_for(Server& server, const std::string& name,
                                                         const std::string& version);
// Counts the request as rejected.
Refused queue_is_full(const Model& model);
// Counts the request as failed.
Refused bad_request(const Model& model, const Failure& failure);

// Counts the outcome and the time of a request whose job has ended. `is_gone`: the client no longer waits.
// Returns the refusal if the job, or its response, has failed.
std::optional<Refused> outcome_of(const Job& job, bool is_gone, Clock::duration time);

// The times of the request if it is to be recorded; marks the job. `trace_parent` "": none.
std::optional<RequestTimes> choose_trace(Server& server, Job& job, std::string_view trace_parent,
                                         Clock::time_point begin);
// Adds the times of the job.
void add_times(RequestTimes& times, const Job& job);

}  // namespace halyard::tools::serve
