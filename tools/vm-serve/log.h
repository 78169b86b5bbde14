// Structured log lines on standard error, one JSON object each. A separate thread writes them, so that a slow
// or full terminal, pipe or disk does not block the server. If the buffer is full, lines are dropped and
// counted.
#pragma once

#include <condition_variable>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/json.h"
#include "metrics.h"

namespace halyard::tools::serve {

// Any thread.
class Log {
 public:
  using Field = std::pair<std::string_view, Json>;

  explicit Log(Metrics& metrics);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  // Writes the buffered lines, but waits at most one second for a slow reader.
  ~Log();

  // Waits until the buffered lines are written, but at most one second for a slow reader.
  void flush();

  // {"time":"2026-01-01T00:00:00.000Z","level":"info","event":"listening",...}
  void info(std::string_view event, std::span<const Field> fields) { add("info", event, fields); }
  void info(std::string_view event, std::initializer_list<Field> fields = {}) { add("info", event, fields); }
  void warning(std::string_view event, std::initializer_list<Field> fields = {}) {
    add("warning", event, fields);
  }
  void error(std::string_view event, std::initializer_list<Field> fields = {}) {
    add("error", event, fields);
  }

 private:
  struct State;
  void add(std::string_view level, std::string_view event, std::span<const Field> fields);

  Metrics& metrics_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace halyard::tools::serve
