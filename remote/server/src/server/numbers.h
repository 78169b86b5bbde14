// Numbers: what a server counts, and the page of them for Prometheus.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace halyard::device_server {

// Processes share it, so it has no pointers.
struct Counts {
  std::atomic<uint64_t> accepted{0};  // connections
  std::atomic<uint64_t> refused{0};   // connections
  std::atomic<uint64_t> broken{0};    // connections of clients that broke the protocol
  std::atomic<uint64_t> submissions{0};
  std::atomic<uint64_t> failures{0};  // of submissions
  std::atomic<uint64_t> received_bytes{0};
  std::atomic<uint64_t> sent_bytes{0};
  std::atomic<uint64_t> file_bytes{0};  // that were read in place of bytes of clients
  // Now:
  std::atomic<uint64_t> threads{0};
  std::atomic<uint64_t> open_devices{0};
  // Of the one connection of a process: a part of a frame may have been sent.
  std::atomic<uint32_t> is_within_frame{0};
};

struct Numbers {
  uint64_t connections = 0;
  uint64_t accepted = 0;
  uint64_t refused = 0;
  uint64_t broken = 0;
  uint64_t submissions = 0;
  uint64_t failures = 0;
  uint64_t received_bytes = 0;
  uint64_t sent_bytes = 0;
  uint64_t file_bytes = 0;
  uint64_t processes = 0;  // that serve connections, besides the one that listens
  uint64_t crashes = 0;    // of such processes
  uint64_t threads = 0;
  uint64_t open_devices = 0;
  uint64_t memory_bytes = 0;
  uint64_t cached_bytes = 0;

  void add_totals(const Counts& counts);
  void add_current(const Counts& counts);
  // In the format of Prometheus.
  std::string page() const;
};

}  // namespace halyard::device_server
