// Spans: what the device of one client did, from a tracer of this client's own, for the client's trace.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/tracer.h"
#include "remote/message.h"

namespace halyard::device_server {

class Spans {
 public:
  // UNAVAILABLE, RESOURCE_EXHAUSTED: from the tracer.
  static Result<std::shared_ptr<Spans>> create();
  ~Spans();
  const Ref<Tracer>& tracer() const { return tracer_; }

  // Called before a submission reaches the device. Returns where its number in traces is written
  // (hal::QueuePoint::execution); valid until take() or forget().
  std::atomic<uint64_t>* begin(uint64_t submission);
  // The submission was refused.
  void forget(uint64_t submission);
  // Called when the submission has ended. Appends the message with its spans. False: there are none.
  bool take(uint64_t submission, remote::Message& message, flatbuffers::Offset<schema::remote::Spans>& body);

 private:
  struct Span {
    uint32_t track;
    std::string name;
    uint64_t begin, end;
    TracedDispatch facts;
  };
  void observe(const TracedSlice& slice);

  Ref<Tracer> tracer_;
  std::mutex mutex_;                                      // guards the members below
  std::vector<Span> spans_;                               // of submissions that have not ended
  std::map<uint64_t, std::atomic<uint64_t>> executions_;  // by submission: the number in traces
  std::map<uint64_t, uint32_t> tracks_;
};

}  // namespace halyard::device_server
