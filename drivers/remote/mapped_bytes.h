// MappedBytes: the bytes of a memory in this process while the host has mapped it. Device and host may write
// to different bytes of it at the same time, so each side gets only what the other one has changed. That is
// found by a comparison with the bytes that both sides have last agreed on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "remote/stream.h"

namespace halyard::remote {

class MappedBytes {
 public:
  // `bytes`: where the host sees them. `send` sends bytes at an offset to the server.
  MappedBytes(uint8_t* bytes, uint64_t size, std::function<void(uint64_t offset, Bytes bytes)> send)
      : bytes_(bytes), size_(size), send_(std::move(send)) {}

  // A range that the host may write to. `is_new`: the server does not have the bytes, all of which the host
  // writes; otherwise both sides agree on them now.
  void open(uint64_t offset, uint64_t length, bool is_new);
  // Sends what the host has written.
  void send_changes();
  // The last mapping is closed, after send_changes().
  void close_all();
  // Takes bytes of the server.
  void merge(uint64_t offset, Bytes bytes);

 private:
  struct Range {
    uint64_t offset;
    uint64_t length;
    bool is_new;
  };
  enum class Kind : uint8_t { unmapped, agreed, fresh };
  // Calls visit(kind, begin, end) for each part of [begin, end).
  template <typename Visit>
  void for_each_part(uint64_t begin, uint64_t end, Visit visit) const;
  void agree(uint64_t begin, uint64_t end);
  void send_differences(const Range& range);

  uint8_t* const bytes_;
  const uint64_t size_;
  const std::function<void(uint64_t, Bytes)> send_;
  std::mutex mutex_;  // guards the members below
  std::vector<Range> ranges_;
  std::unique_ptr<uint8_t[]> agreed_;  // what both sides have; only in ranges that are not new
};

}  // namespace halyard::remote
