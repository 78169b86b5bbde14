// MemoryLog: a device's memory over time, and what was alive at its peak, by size and by whom it was
// allocated. Exists only while tracing or if objects are counted. Times are those of requests: a queue
// dealloca counts when it is submitted.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace halyard::hal {

// Who asks for the memory that the calling thread allocates, for the lifetime of this object: a place in a
// program, or a purpose. Scopes nest; the innermost counts. The text is borrowed.
class MakerScope {
 public:
  explicit MakerScope(std::string_view maker) noexcept;
  MakerScope(const MakerScope&) = delete;
  MakerScope& operator=(const MakerScope&) = delete;
  ~MakerScope();

 private:
  const std::string_view* const before_;
  const std::string_view maker_;
};
std::string_view current_maker() noexcept;  // "the host" without a scope

// Thread-safe. The memory that it takes is bounded by what is alive now and what was alive at the peak.
class MemoryLog {
 public:
  static constexpr size_t kMaxPoints = 16'384;
  static constexpr size_t kMaxMakers = 4'096;  // different ones

  uint64_t allocated(uint64_t bytes, std::string_view maker, uint64_t time);  // returns a number for freed()
  void freed(uint64_t number, uint64_t time);

  struct Alive {
    uint64_t bytes = 0;  // of each
    uint64_t count = 0;
    std::string made_by;
  };
  struct Point {
    uint64_t time = 0;
    uint64_t bytes = 0;
  };
  struct Report {
    uint64_t peak_bytes = 0;
    uint64_t peak_time = 0;
    std::vector<Alive> alive;   // at the peak, the largest sum first
    std::vector<Point> points;  // changes in the order of time; each holds until the next
  };
  Report report() const;

 private:
  struct Record {
    uint64_t bytes;
    uint32_t maker;
    uint64_t begin;             // number of the event
    uint64_t end = UINT64_MAX;  // the same
  };
  void add_point(uint64_t time);

  mutable std::mutex mutex_;  // guards everything
  std::map<std::string, uint32_t, std::less<>> numbers_;
  std::vector<std::string> makers_;
  std::map<uint64_t, Record> records_;  // alive, or alive at the peak
  std::vector<Point> points_;
  uint64_t stride_ = 1;   // changes that make one point
  uint64_t pending_ = 0;  // changes in the last point
  uint64_t live_ = 0;
  uint64_t events_ = 0;
  uint64_t peak_ = 0;
  uint64_t peak_event_ = 0;
  uint64_t peak_time_ = 0;
};

}  // namespace halyard::hal
