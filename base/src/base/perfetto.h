// Writes trace packets for the Perfetto UI and trace_processor (trace.proto: TracePacket, TrackEvent,
// TrackDescriptor). There is one packet sequence, and every event names its track, so events of different
// tracks may be in any order. The first kMaxNames names are written once and then referred to by number.
// Later names are written in full, because a server that traces for days makes a name for each request. One
// thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace halyard {

// An argument of a slice, shown with it: a text, or a number if `text` is null. Both strings must live as
// long as the tracer.
struct TraceArgument {
  const char* name = nullptr;
  const char* text = nullptr;
  uint64_t number = 0;
};

class PerfettoWriter {
 public:
  static constexpr size_t kMaxNames = 4096;  // names kept in memory

  PerfettoWriter();
  void process_track(uint64_t track, uint32_t process, std::string_view name);
  void thread_track(uint64_t track, uint32_t process, uint32_t thread, std::string_view name);
  // The UI shows tracks of one parent with the same name as lanes of one track.
  void track(uint64_t track, uint64_t parent, std::string_view name);
  void counter_track(uint64_t track, uint64_t parent, std::string_view name);  // of bytes

  // Times are in nanoseconds. A flow connects the events that name it, in the order of their times.
  void begin(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
             std::span<const uint64_t> flows, std::span<const TraceArgument> arguments = {});
  void end(uint64_t track, uint64_t time);
  void instant(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
               std::span<const uint64_t> flows, std::span<const TraceArgument> arguments = {});
  void count(uint64_t track, uint64_t time, int64_t value);

  // Returns the bytes written since the last call; their concatenation is the file.
  std::string take();

 private:
  struct HashName {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Numbers = std::unordered_map<std::string, uint64_t, HashName, std::equal_to<>>;
  // Combines a track or flow number with the number of the process (also the number of the sequence). The
  // concatenated files of several processes (the ranks of a program) are then one trace.
  uint64_t unique(uint64_t number) const;
  void packet(uint64_t time);  // writes the packet of event_
  void descriptor(uint64_t track, uint64_t parent, std::string_view name, uint32_t kind,
                  std::string_view inner);
  uint64_t number(Numbers& numbers, uint32_t field, std::string_view name);
  void start_event(uint32_t type, uint64_t track);
  void named_event(uint32_t type, uint64_t track, uint64_t time, std::string_view category,
                   std::string_view name, std::span<const uint64_t> flows,
                   std::span<const TraceArgument> arguments = {});

  const uint32_t process_;
  std::string bytes_;
  std::string packet_;    // the packet being written
  std::string interned_;  // names that the next packet defines
  std::string event_;     // the event of that packet
  Numbers names_;
  Numbers categories_;
  bool begun_ = false;
};

}  // namespace halyard
