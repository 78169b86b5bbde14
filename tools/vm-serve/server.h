// State that connections share: models, limits, metrics, and whether the server is draining.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "access.h"
#include "budget.h"
#include "log.h"
#include "metrics.h"
#include "model.h"
#include "model_control.h"
#include "model_page.h"
#include "readiness.h"
#include "repository.h"
#include "scheduler.h"

namespace halyard::tools::serve {

struct ServerLimits {
  uint64_t body = 0;          // maximum bytes of a request's body
  size_t connections = 0;     // maximum number of open connections
  Clock::duration request{};  // from the end of the header to the model's result
  Clock::duration idle{};     // between requests, including reading the header
};

// An open connection, as the server controls it. Any thread.
class Connection {
 public:
  virtual ~Connection() = default;
  // Closes the connection when it has no request.
  virtual void drain() = 0;
  virtual void close() = 0;
  // If the client has closed the connection, cancels a call that was already running at the previous look().
  virtual void look() = 0;
};

class Server {
 public:
  Server(const Runtime& runtime, Scheduler& scheduler, Repository& repository, Metrics& metrics, Log& log,
         ServerLimits limits, uint64_t request_memory, Access access = {})
      : runtime(runtime),
        scheduler(scheduler),
        repository(repository),
        metrics(metrics),
        log(log),
        limits(limits),
        access(std::move(access)),
        budget(request_memory, metrics.request_bytes) {}

  const Runtime& runtime;
  Scheduler& scheduler;
  Repository& repository;
  Metrics& metrics;
  Log& log;
  const ServerLimits limits;
  const Access access;
  Budget budget;
  bool logs_requests = false;
  ModelControl* control = nullptr;  // null: clients may not load and unload models
  Readiness readiness;
  ModelPages pages;

  // Any thread. Closes idle connections, and others after their response. Calls `drained` once when none is
  // left.
  void drain(std::function<void()> drained);
  bool is_draining() const { return is_draining_.load(std::memory_order_relaxed); }
  // Closes every connection.
  void close_all();
  // Call it periodically: cancels calls whose client has disconnected.
  void look_at_clients();

  // Called by a connection when it begins and ends. False: there are too many.
  bool add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);

 private:
  void for_each(void (Connection::*action)());

  std::atomic<bool> is_draining_ = false;
  std::mutex mutex_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  std::function<void()> drained_;
};

}  // namespace halyard::tools::serve
