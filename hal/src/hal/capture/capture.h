// Capture: executes command buffers like queue_execute, and writes to a file what was executed, with all
// bytes that the commands touch as they are before and after. For who hunts a wrong result:
// hal/capture/replay.h.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/object.h"
#include "base/status.h"
#include "hal/capture/capture_writer.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

// Thread-safe. The file is closed when the last reference goes.
class Capture final : public ObjectOf<Capture> {
 public:
  static const ObjectType kType;

  // Replaces the file. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE.
  static Result<Ref<Capture>> create(const std::string& path);

  // As queue_execute, but for the time that it takes: the signals are made when the bytes are written. Holds
  // no thread meanwhile. Bytes that cannot be read, or a file that cannot be written, fail the work.
  Result<> execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table);

  CaptureWriter& writer() { return *writer_; }

  explicit Capture(std::unique_ptr<CaptureWriter> writer) : writer_(std::move(writer)) {}

 private:
  std::unique_ptr<CaptureWriter> writer_;
};

}  // namespace halyard::hal
