// Capture: executes command buffers like queue_execute, and writes them to a file with the bytes that the
// commands touch, before and after. For debugging wrong results with hal/capture/replay.h.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/object.h"
#include "base/status.h"
#include "hal/capture/capture_writer.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

// Thread-safe. The file is closed when the last reference is dropped.
class Capture final : public ObjectOf<Capture> {
 public:
  static const ObjectType kType;

  // Replaces an existing file. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE.
  static Result<Ref<Capture>> create(const std::string& path, uint64_t blob_bytes = kBlobBytes);

  // Like queue_execute, but slower, because it signals after the bytes are written. No thread is blocked
  // meanwhile. The work fails if bytes cannot be read or the file cannot be written.
  Result<> execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table);

  CaptureWriter& writer() { return *writer_; }

  explicit Capture(std::unique_ptr<CaptureWriter> writer) : writer_(std::move(writer)) {}

 private:
  std::unique_ptr<CaptureWriter> writer_;
};

}  // namespace halyard::hal
