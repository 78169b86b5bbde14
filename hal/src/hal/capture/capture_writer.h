// CaptureWriter: writes a capture file. A record is in the file when the call that writes it returns, so a
// program that crashes later leaves all records up to then. Thread-safe.
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

class CaptureWriter {
 public:
  // Replaces the file. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE with the path and the system's reason.
  static Result<std::unique_ptr<CaptureWriter>> create(const std::string& path);

  // Writes an execution before it starts, with its bytes; returns its number. `executables` are those that
  // the commands name; the writer retains them and writes each once. UNIMPLEMENTED: too large for the format.
  // UNAVAILABLE: the file cannot be written.
  Result<uint32_t> begin(const CapturedExecution& execution, std::span<Executable* const> executables);
  // Writes the outcome and, unless the execution failed, the bytes of the same ranges afterwards.
  Result<> end(uint32_t execution, std::span<const CapturedBuffer> buffers, const Status& failure);

  CaptureWriter(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;
  ~CaptureWriter();  // closes the capture

 private:
  struct Records;  // of capture_writer.cpp

  struct Blob {
    uint64_t place = 0;  // of its bytes, in the file
    uint64_t size = 0;
    uint32_t number = 0;
  };

  std::mutex mutex_;  // of all below
  std::string path_;
  std::FILE* file_;
  uint64_t size_ = 0;       // of the file
  bool is_broken_ = false;  // a write has failed: nothing more is written after a torn record
  uint32_t blob_count_ = 0;
  std::unordered_multimap<size_t, Blob> blobs_;  // by hash
  std::map<const Executable*, uint32_t> executable_numbers_;
  std::vector<Ref<Executable>> executables_;  // retained, so that no other gets the address
  uint32_t executions_ = 0;
  uint32_t outcomes_ = 0;
};

}  // namespace halyard::hal
