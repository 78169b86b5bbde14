// Structured log lines on standard error, one JSON object each. A thread of its own writes them, so that a
// terminal, pipe or disk that is slow or full holds up nothing else: lines that find the buffer full are
// dropped and counted.
#pragma once

#include <condition_variable>
#include <initializer_list>
#include <mutex>
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
  // Writes what is buffered, but waits for a slow reader at most a second.
  ~Log();

  // Waits until what is buffered is written, but for a slow reader at most a second.
  void flush();

  // {"time":"2026-01-01T00:00:00.000Z","level":"info","event":"listening",...}
  void info(std::string_view event, std::initializer_list<Field> fields = {}) { add("info", event, fields); }
  void warning(std::string_view event, std::initializer_list<Field> fields = {}) {
    add("warning", event, fields);
  }
  void error(std::string_view event, std::initializer_list<Field> fields = {}) {
    add("error", event, fields);
  }

 private:
  struct State;
  void add(std::string_view level, std::string_view event, std::initializer_list<Field> fields);

  Metrics& metrics_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace halyard::tools::serve
