// TensorTrace: executes command buffers step by step, and passes the contents of the buffers of selected
// steps, before and after, to a sink. For finding the first wrong number. Slow, because it copies whole
// buffers.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/command/direct_dispatch.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

// The bytes of one range of one step; borrowed for the call.
struct TracedTensor {
  uint64_t dispatch = 0;  // counted from 0, in execution order
  std::string_view function;
  uint32_t binding = 0;
  bool after = false;  // after the dispatch; passed to the sink only if changed
  std::span<const uint8_t> bytes;

  // Only with TracedSteps::all, which passes each range once, after the step.
  std::span<const uint8_t> before;
  uint64_t execution = 0;      // counted from 0, in the order of submission
  uint64_t command = 0;        // within the execution
  std::string_view operation;  // "dispatch", "fill", "update", "copy", "collective", "read"
  std::string_view device;     // URI; empty for programs without devices
  std::string_view place;      // of the call that recorded or submitted the step; may be empty
  std::string_view source;     // of a dispatch: where its function is in the source; may be empty
  std::array<uint32_t, 3> workgroups = {};
  uint32_t buffer = 0;  // number of the allocation within the execution
  uint64_t offset = 0;  // bytes, within the allocation
};

enum class TracedSteps : uint8_t {
  dispatches,  // each binding before the dispatch, and after it if it changed
  all,         // also commands and queue operations that write to buffers; each range once
};

// Thread-safe if the sink is. Work in flight keeps its trace, which may outlive what the sink refers to;
// end() separates the two.
class TensorTrace final : public ObjectOf<TensorTrace> {
 public:
  static const ObjectType kType;
  // Called on any thread. A failure of the sink fails the work.
  using Sink = std::function<Result<>(const TracedTensor& tensor)>;

  // `pattern`: names of functions, with wildcards (halyard/wildcards.hpp). It does not select the steps that
  // are not dispatches.
  TensorTrace(std::string pattern, Sink sink, TracedSteps steps = TracedSteps::dispatches)
      : pattern_(std::move(pattern)), sink_(std::move(sink)), steps_(steps) {}

  bool traces_all_steps() const { return steps_ == TracedSteps::all; }

  // When end() returns, the sink is not running, except on the calling thread, and is never called again;
  // work in flight goes on without it. Blocks while the sink runs on other threads. Any thread, also within
  // the sink.
  void end();

  // Like queue_execute but slower. No thread is blocked meanwhile.
  Result<> execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table);
  // Like dispatch_now, with the same tracing, for kernels of programs without devices.
  Result<> dispatch_now(Executable& executable, uint64_t function, const std::array<uint32_t, 3>& workgroups,
                        std::span<const uint32_t> constants, std::span<const HostBinding> bindings,
                        const WorkScope* scope, std::string_view place = {});

  // A queue operation that writes to a range of a buffer. `submit` submits it at the given point and retains
  // the objects and bytes that it uses; only with TracedSteps::all.
  struct Operation {
    std::string_view name;
    Buffer& target;
    uint64_t offset = 0;
    uint64_t length = 0;
    std::string place;
    std::move_only_function<Result<>(const QueuePoint& point)> submit;
  };
  Result<> operate(const QueuePoint& point, Operation operation);

 private:
  struct TracedWork;
  struct TracedOperation;
  Result<> tell(const TracedTensor& tensor);  // calls the sink, until the end

  const std::string pattern_;
  const Sink sink_;
  const TracedSteps steps_;
  std::atomic<uint64_t> dispatches_{0};
  std::atomic<uint64_t> executions_{0};
  std::mutex mutex_;  // guards what follows
  std::condition_variable left_;
  std::vector<std::thread::id> telling_;  // the threads in calls of the sink, once for each call
  bool has_ended_ = false;
};

}  // namespace halyard::hal
