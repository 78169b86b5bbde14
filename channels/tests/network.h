// Network: an MPI between ranks of one process, for tests of the MPI provider's channels. The test decides
// when messages arrive, and what the time is. Each communicator is a rank. Not thread-safe.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace halyard::mpi::testing {

class Network {
 public:
  // Longer messages end when the receiver has all their bytes.
  static constexpr size_t kEager = 4096;

  Network();
  ~Network();
  Network(const Network&) = delete;

  // Messages from one rank to another arrive no more until release().
  void hold(int from, int to) { held_.insert({from, to}); }
  void release(int from, int to);
  // The bytes of messages longer than kEager do not move until move_bytes(). Their receives have matched, so
  // that MPI_Cancel has no effect on them.
  void hold_bytes() { holds_bytes_ = true; }
  void move_bytes();
  // The next MPI_Testsome of the rank fails; the requests that have ended are taken from it.
  void fail_next_test(int rank) { failing_ = rank; }

  uint64_t time = 1;
  // Called before each MPI_Testsome, with the rank.
  std::function<void(int)> before_test;

  // ---- MPI
  int send(const void* bytes, int count, int target, int tag, MPI_Comm comm, bool synchronously,
           MPI_Request* request);
  int receive(void* bytes, int count, int source, int tag, MPI_Comm comm, MPI_Request* request);
  bool test(MPI_Request& request, MPI_Status* status);
  int test_some(int count, MPI_Request requests[], int* done, int indices[]);
  void cancel(MPI_Request request);

 private:
  struct Message {
    int source;
    int tag;
    std::vector<uint8_t> bytes;
    MPI_Request sender;
  };
  struct Request {
    int rank = 0;
    uint8_t* to = nullptr;  // null: a send
    size_t size = 0;
    int source = 0;
    int tag = 0;
    bool has_matched = false;
    bool is_done = false;
  };

  MPI_Request add(Request request);
  void arrive(int to, Message message);
  bool accepts(const Request& request, int to, const Message& message) const;
  void match(Request& request, Message message);
  void finish(Request& request, const Message& message);

  std::vector<Request> requests_;
  std::map<int, std::vector<Message>> arrived_;                    // not received, by target
  std::map<std::pair<int, int>, std::vector<Message>> under_way_;  // held, by source and target
  std::set<std::pair<int, int>> held_;
  std::vector<std::pair<size_t, Message>> matched_;  // receives whose bytes do not move yet
  bool holds_bytes_ = false;
  int failing_ = -1;
};

}  // namespace halyard::mpi::testing
