// One table for the page.
#include "server/numbers.h"

#include <fmt/format.h>

namespace halyard::device_server {

namespace {

struct Row {
  const char* name;
  const char* kind;
  const char* help;
  uint64_t Numbers::* value;
};

constexpr Row kRows[] = {
    {"connections", "gauge", "Connections of clients now.", &Numbers::connections},
    {"connections_accepted_total", "counter", "Connections that were accepted.", &Numbers::accepted},
    {"connections_refused_total", "counter", "Connections that were refused.", &Numbers::refused},
    {"protocol_errors_total", "counter", "Connections that ended because the client broke the protocol.",
     &Numbers::broken},
    {"submissions_total", "counter", "Submissions of clients.", &Numbers::submissions},
    {"submission_failures_total", "counter", "Submissions that failed.", &Numbers::failures},
    {"received_bytes_total", "counter", "Bytes of messages of clients.", &Numbers::received_bytes},
    {"sent_bytes_total", "counter", "Bytes of messages to clients.", &Numbers::sent_bytes},
    {"file_bytes_total", "counter", "Bytes of files that clients did not have to send.",
     &Numbers::file_bytes},
    {"processes", "gauge", "Processes that serve a connection each, or wait for one.", &Numbers::processes},
    {"process_crashes_total", "counter",
     "Processes of connections that were ended by a signal, or by a driver.", &Numbers::crashes},
    {"threads", "gauge", "Threads that handle messages.", &Numbers::threads},
    {"open_devices", "gauge", "Devices that are open.", &Numbers::open_devices},
    {"memory_bytes", "gauge", "Bytes that clients use.", &Numbers::memory_bytes},
    {"cached_bytes", "gauge", "Bytes of constants and code that are kept for clients.",
     &Numbers::cached_bytes},
};

}  // namespace

void Numbers::add_totals(const Counts& counts) {
  accepted += counts.accepted;
  refused += counts.refused;
  broken += counts.broken;
  submissions += counts.submissions;
  failures += counts.failures;
  received_bytes += counts.received_bytes;
  sent_bytes += counts.sent_bytes;
  file_bytes += counts.file_bytes;
}

void Numbers::add_current(const Counts& counts) {
  threads += counts.threads;
  open_devices += counts.open_devices;
}

std::string Numbers::page() const {
  std::string text;
  for (const Row& row : kRows)
    text +=
        fmt::format("# HELP halyard_device_{0} {2}\n# TYPE halyard_device_{0} {1}\nhalyard_device_{0} {3}\n",
                    row.name, row.kind, row.help, this->*row.value);
  return text;
}

}  // namespace halyard::device_server
