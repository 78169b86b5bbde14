// The flags that only vm-serve has.
#pragma once

#include "common/flags.h"

namespace halyard::tools::flag {

// ---- Models

inline constexpr List served_model = {
    "model", "NAME[/VERSION][:FUNCTION]=FILE",
    "Serves a function of a module (.vmfb, .vmasm) under this name; VERSION is 1 without it, FUNCTION may be "
    "left out if there is only one. May be repeated.",
    "--model=mul=simple_mul.vmfb"};
inline constexpr Text models = {
    "models", "FOLDER",
    "Serves every FOLDER/NAME/VERSION/ with a module in it. Parameter files beside the module are of the "
    "scope that is their name; model.json may say otherwise (docs/serving.md).",
    "--models=/srv/models"};
inline constexpr List batch = {
    "batch", "[NAME=]N",
    "Requests that wait are joined to calls of up to N rows, if the first dimension of every argument and "
    "result is dynamic. Only for models whose rows do not depend on each other. May be repeated, for models "
    "by their names.",
    "--batch=bert=64"};
inline constexpr Duration batch_delay = {"batch_delay", "TIME",
                                         "How long a request may wait for others of its batch. Without it "
                                         "none does: batches are made of what has queued up.",
                                         "--batch_delay=2ms"};
inline constexpr Duration watch = {"watch", "TIME",
                                   "Looks for changed models this often, and loads those whose files have "
                                   "not changed since the look before. Without it only SIGHUP does that.",
                                   "--watch=10s"};

// ---- Connections

inline constexpr Text host = {
    "host", "ADDRESS",
    "The address to listen on. Anybody who reaches it may use the models: other addresses than the default, "
    "127.0.0.1, are for networks that are trusted, or behind a proxy.",
    "--host=0.0.0.0", "127.0.0.1"};
inline constexpr Number port = {"port", "N", "The TCP port (8080); 0: any that is free, which is printed.",
                                "--port=9000", 8080};
inline constexpr Text unix_socket = {
    "unix_socket", "PATH", "Listens on a Unix socket, and on a TCP port only if --port is given, too.",
    "--unix_socket=/run/halyard/serve.sock"};
inline constexpr List allow_host = {
    "allow_host", "NAME",
    "A listener on a loopback address takes requests for localhost and loopback addresses alone, so that no "
    "page can reach it under a name of its own (DNS rebinding). This takes another name in the header Host, "
    "as a proxy on this machine may send it; *: any. May be repeated.",
    "--allow_host=models.example.com"};
inline constexpr List allow_origin = {
    "allow_origin", "ORIGIN",
    "Lets pages of this origin send requests and read the answers (CORS); *: of any. Requests that browsers "
    "send for pages of other origins than the server's own are answered with 403. May be repeated.",
    "--allow_origin=https://example.com"};
inline constexpr Number max_connections = {"max_connections", "N",
                                           "Connections at once (10000). Further ones are closed.",
                                           "--max_connections=500", 10000};
inline constexpr Duration idle_timeout = {
    "idle_timeout", "TIME", "Connections without a whole request header for so long are closed (75s).",
    "--idle_timeout=30s"};

// ---- Limits

inline constexpr Number threads = {
    "threads", "N", "Calls of models that run at once. Without it: as many as there are processors.",
    "--threads=8"};
inline constexpr Number contexts = {
    "contexts", "N",
    "Contexts of one model at most; they are made when requests wait. Each has the model's state, with its "
    "constants. Without it: as many as --threads. A model with state that requests share needs 1.",
    "--contexts=1"};
inline constexpr Number queue = {
    "queue", "N", "Requests of one model that may wait (256). Further ones are answered with 503.",
    "--queue=1000", 256};
inline constexpr Duration request_timeout = {
    "request_timeout", "TIME",
    "The longest time from the header of a request until the model has answered (60s); then the answer is "
    "504, and the call is cancelled.",
    "--request_timeout=500ms"};
inline constexpr Duration load_timeout = {
    "load_timeout", "TIME",
    "The longest time that an initializer of a model may take when it is loaded (10min, and at least "
    "--request_timeout); then the model is not loaded, and the log says so.",
    "--load_timeout=1min"};
inline constexpr Size max_body = {"max_body", "SIZE",
                                  "The largest body of a request (64MiB). Larger ones are answered with 413.",
                                  "--max_body=1GiB"};
inline constexpr Size max_request_memory = {
    "max_request_memory", "SIZE",
    "Bytes for the bodies of all requests that are read, wait or run, with the tensors of JSON, and for "
    "answers until they are written (1GiB). What is beyond is answered with 503.",
    "--max_request_memory=8GiB"};
inline constexpr Duration drain_timeout = {"drain_timeout", "TIME",
                                           "How long requests may go on after SIGTERM or Ctrl-C (30s). Then "
                                           "they are cancelled. A second signal ends the server at once.",
                                           "--drain_timeout=10s"};

// ---- Traces and logs

inline constexpr Number trace_rate = {
    "trace_rate", "N",
    "With --trace: records one of N requests, 0 none, and with any N those whose header `traceparent` is "
    "marked as sampled (not those that it marks as not sampled). Without it every request is recorded.",
    "--trace_rate=1000"};

inline constexpr Toggle log_requests = {"log_requests",
                                        "Writes a line for every request to standard error, not only for "
                                        "those that were answered with 500 or more.",
                                        "--log_requests"};

}  // namespace halyard::tools::flag
