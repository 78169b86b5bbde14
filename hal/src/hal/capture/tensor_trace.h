// TensorTrace: executes command buffers dispatch by dispatch, and passes the contents of the buffers of
// selected dispatches, before and after, to a sink. For finding the first wrong number. Slow, because it
// copies whole buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/object.h"
#include "base/status.h"
#include "hal/command/direct_dispatch.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

// The bytes of one binding of one dispatch; borrowed for the call.
struct TracedTensor {
  uint64_t dispatch = 0;  // counted from 0, in execution order
  std::string_view function;
  uint32_t binding = 0;
  bool after = false;  // after the dispatch; passed to the sink only if changed
  std::span<const uint8_t> bytes;
};

// Thread-safe if the sink is.
class TensorTrace final : public ObjectOf<TensorTrace> {
 public:
  static const ObjectType kType;
  // Called on any thread. A failure of the sink fails the work.
  using Sink = std::function<Result<>(const TracedTensor& tensor)>;

  // `pattern`: names of functions, with wildcards (halyard/wildcards.hpp).
  TensorTrace(std::string pattern, Sink sink) : pattern_(std::move(pattern)), sink_(std::move(sink)) {}

  // Like queue_execute but slower. No thread is blocked meanwhile.
  Result<> execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table);
  // Like dispatch_now, with the same tracing, for kernels of programs without devices.
  Result<> dispatch_now(Executable& executable, uint64_t function, const std::array<uint32_t, 3>& workgroups,
                        std::span<const uint32_t> constants, std::span<const HostBinding> bindings,
                        const WorkScope* scope);

 private:
  struct TracedWork;

  const std::string pattern_;
  const Sink sink_;
  std::atomic<uint64_t> dispatches_{0};
};

}  // namespace halyard::hal
