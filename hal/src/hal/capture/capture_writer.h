// CaptureWriter: writes a capture file. Each call returns after its record is in the file, so a later crash
// of the program loses no record. Thread-safe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "hal/capture/capture_file.h"

namespace halyard::hal {

// The contents of ranges are split into blobs of this size, and equal blobs are written once. Small blobs
// make a small file if most bytes of large ranges are zero, or do not change.
inline constexpr uint64_t kBlobBytes = uint64_t{64} << 20;
inline constexpr uint64_t kSmallBlobBytes = uint64_t{1} << 12;

class CaptureWriter {
 public:
  // Replaces an existing file. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE, with the path and the system's
  // reason.
  static Result<std::unique_ptr<CaptureWriter>> create(const std::string& path,
                                                       uint64_t blob_bytes = kBlobBytes);

  // Writes an execution, with its bytes, before it starts; returns its number. `executables` are those that
  // the commands use; the writer retains them and writes each once. UNIMPLEMENTED: too large for the format.
  // UNAVAILABLE: the file cannot be written.
  Result<uint32_t> begin(const CapturedExecution& execution, std::span<Executable* const> executables);
  // Writes the outcome and, unless the execution failed, the bytes of the same ranges after the execution.
  Result<> end(uint32_t execution, std::span<const CapturedBuffer> buffers, const Status& failure);

  CaptureWriter(std::string path, std::FILE* file, uint64_t blob_bytes)
      : path_(std::move(path)), file_(file), blob_bytes_(blob_bytes) {}
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;
  ~CaptureWriter();  // closes the capture

 private:
  struct Records;  // defined in capture_writer.cpp

  struct Blob {
    uint64_t place = 0;  // file offset of the blob's bytes
    uint64_t size = 0;
    uint32_t number = 0;
  };

  std::mutex mutex_;  // guards all below
  std::string path_;
  std::FILE* file_;
  const uint64_t blob_bytes_;
  uint64_t size_ = 0;       // of the file, in bytes
  bool is_broken_ = false;  // a write has failed: nothing may follow an incomplete record
  uint32_t blob_count_ = 0;
  std::unordered_multimap<size_t, Blob> blobs_;  // by hash
  std::map<const Executable*, uint32_t> executable_numbers_;
  std::vector<Ref<Executable>> executables_;  // retained, so that no other executable gets the same address
  uint32_t executions_ = 0;
  uint32_t outcomes_ = 0;
};

}  // namespace halyard::hal
