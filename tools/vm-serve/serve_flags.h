// The flags that only vm-serve has.
#pragma once

#include "common/flags.h"

namespace halyard::tools::flag {

// ---- Models

inline constexpr List served_model = {"model", "NAME[/VERSION][:FUNCTION]=FILE",
                                      "Serves a function of a module (.vmfb, .vmasm) under this name. "
                                      "Default: VERSION 1, and the only function of "
                                      "the module. May be repeated.",
                                      "--model=mul=simple_mul.vmfb"};
inline constexpr Text models = {
    "models", "FOLDER",
    "Serves every folder FOLDER/NAME/VERSION/ that has a module. A parameter file beside the module belongs "
    "to the scope with the name of the file; model.json can override this (docs/serving.md).",
    "--models=/srv/models"};
inline constexpr List batch = {
    "batch", "[NAME=]N",
    "Joins waiting requests to calls of up to N rows, if the first dimension of every argument and result is "
    "dynamic. Only for models whose rows do not depend on each other. May be repeated, with the names of "
    "models.",
    "--batch=bert=64"};
inline constexpr Duration batch_delay = {
    "batch_delay", "TIME",
    "The time that a request may wait for a full batch. Default: an eighth of the time of a call, and only "
    "until the even share of the contexts has come.",
    "--batch_delay=2ms"};
inline constexpr Duration watch = {
    "watch", "TIME",
    "The interval of searches for changed models. Loads models whose files have "
    "not changed since the last search. Default: only SIGHUP starts a search.",
    "--watch=10s"};

inline constexpr Text ready = {
    "ready", "MODELS",
    "The models that /v2/health/ready needs: `all` (the default), `any`, or names. With "
    "another value, a model that cannot be loaded does not take the server out of service.",
    "--ready=bert,resnet", "all"};
inline constexpr Toggle model_control = {"model_control",
                                         "Lets clients load and unload models of the flags and the folder: "
                                         "POST /v2/repository/models/NAME/load and "
                                         "/unload. Without this flag they get 403.",
                                         "--model_control"};

// ---- Connections

inline constexpr Text host = {"host", "ADDRESS",
                              "The address to listen on. Everybody who can reach it may use the models, so "
                              "use addresses other than the "
                              "default, 127.0.0.1, only in trusted networks or behind a proxy.",
                              "--host=0.0.0.0", "127.0.0.1"};
inline constexpr Number port = {"port", "N", "The TCP port (8080); 0: any free port, which is printed.",
                                "--port=9000", 8080};
inline constexpr Text unix_socket = {"unix_socket", "PATH",
                                     "Listens on a Unix socket; on a TCP port only if --port is also given.",
                                     "--unix_socket=/run/halyard/serve.sock"};
inline constexpr Text grpc = {
    "grpc", "ADDRESS",
    "Also serves the protocol over gRPC (inference.GRPCInferenceService), at HOST:PORT or unix:PATH. Port 0: "
    "any "
    "free port, which is printed. Needs vm-serve-grpc.so, which is opened only with this flag.",
    "--grpc=127.0.0.1:8081"};
inline constexpr List allow_host = {
    "allow_host", "NAME",
    "A listener on a loopback address accepts only requests for localhost and loopback addresses, so that no "
    "page can reach it under its own name (DNS rebinding). This flag accepts another name in the header "
    "Host, for example from a proxy on this machine; *: any name. May be repeated.",
    "--allow_host=models.example.com"};
inline constexpr List allow_origin = {
    "allow_origin", "ORIGIN",
    "Lets pages of this origin send requests and read the responses (CORS); *: pages of any origin. Other "
    "requests from pages of other origins than the server's own get 403. May be repeated.",
    "--allow_origin=https://example.com"};
inline constexpr Number max_connections = {
    "max_connections", "N", "The maximum number of connections (10000). Further ones are closed.",
    "--max_connections=500", 10000};
inline constexpr Duration idle_timeout = {
    "idle_timeout", "TIME",
    "The time after which a connection without a complete request header is closed (75s).",
    "--idle_timeout=30s"};

// ---- Limits

inline constexpr Number threads = {
    "threads", "N", "The maximum number of concurrent calls of models. Default: the number of processors.",
    "--threads=8"};
inline constexpr Number contexts = {"contexts", "N",
                                    "The maximum number of contexts of one model. They are created when "
                                    "requests wait. Each has its own copy of "
                                    "the model's state, including constants. Default: the number of "
                                    "--threads. Use 1 if requests share state.",
                                    "--contexts=1"};
inline constexpr Number queue = {
    "queue", "N", "The maximum number of waiting requests of one model (256). Further ones get 503.",
    "--queue=1000", 256};
inline constexpr Duration request_timeout = {"request_timeout", "TIME",
                                             "The maximum time from the header of a request to the model's "
                                             "answer (60s). Then the response is 504, and "
                                             "the call is cancelled.",
                                             "--request_timeout=500ms"};
inline constexpr Duration load_timeout = {
    "load_timeout", "TIME",
    "The maximum time of an initializer of a model when the model is loaded (10min, or 60s with "
    "--untrusted, but at least --request_timeout). Then the model is not loaded, and the log has the reason.",
    "--load_timeout=1min"};
inline constexpr Size max_body = {
    "max_body", "SIZE", "The maximum body of a request (64MiB). Larger ones get 413.", "--max_body=1GiB"};
inline constexpr Size max_request_memory = {
    "max_request_memory", "SIZE",
    "The maximum memory for the bodies of all requests that are being read, wait or run, including tensors "
    "from JSON, and for responses until they are written (1GiB). Requests beyond it get 503.",
    "--max_request_memory=8GiB"};
inline constexpr Duration drain_timeout = {
    "drain_timeout", "TIME",
    "The time for which requests may continue after SIGTERM or Ctrl-C (30s). Then "
    "they are cancelled. A second signal ends the server at once.",
    "--drain_timeout=10s"};

// ---- Traces and logs

inline constexpr Number trace_rate = {"trace_rate", "N",
                                      "With --trace: records one of N requests without the header "
                                      "`traceparent` (0: none), and requests with it "
                                      "if its sampled flag is set. Default: records every request.",
                                      "--trace_rate=1000"};

inline constexpr Toggle log_requests = {
    "log_requests",
    "Writes a line to standard error for every request, not only for those with a "
    "response of 500 or more.",
    "--log_requests"};

}  // namespace halyard::tools::flag
