// Writes trace packets as the Perfetto UI and trace_processor read them (trace.proto: TracePacket,
// TrackEvent, TrackDescriptor). One packet sequence; every event names its track, so events of different
// tracks may be in any order. A name is written once and then referred to by number, but for those after the
// first kMostNames: a server that traces for days names its requests. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace halyard {

class PerfettoWriter {
 public:
  static constexpr size_t kMostNames = 4096;  // that are kept in memory

  PerfettoWriter();
  void process_track(uint64_t track, uint32_t process, std::string_view name);
  void thread_track(uint64_t track, uint32_t process, uint32_t thread, std::string_view name);
  // Tracks of one parent with the same name are shown as lanes of one track.
  void track(uint64_t track, uint64_t parent, std::string_view name);
  void counter_track(uint64_t track, uint64_t parent, std::string_view name);  // of bytes

  // Times in nanoseconds; a flow connects the events that name it, in the order of their times.
  void begin(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
             std::span<const uint64_t> flows);
  void end(uint64_t track, uint64_t time);
  void instant(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
               std::span<const uint64_t> flows);
  void count(uint64_t track, uint64_t time, int64_t value);

  // The bytes written since the last call; their concatenation is the file.
  std::string take();

 private:
  using Numbers = std::map<std::string, uint64_t, std::less<>>;
  // Files of several processes (ranks of a program), one after another, are one trace too: numbers of tracks
  // and flows are made unique with the process's number, which is the sequence's number as well.
  uint64_t unique(uint64_t number) const;
  void packet(uint64_t time);  // of event_
  void descriptor(uint64_t track, uint64_t parent, std::string_view name, uint32_t kind,
                  std::string_view inner);
  uint64_t number(Numbers& numbers, uint32_t field, std::string_view name);
  void start_event(uint32_t type, uint64_t track);
  void named_event(uint32_t type, uint64_t track, uint64_t time, std::string_view category,
                   std::string_view name, std::span<const uint64_t> flows);

  const uint32_t process_;
  std::string bytes_;
  std::string packet_;    // the packet that is being written
  std::string interned_;  // names that the next packet sends
  std::string event_;     // of that packet
  Numbers names_;
  Numbers categories_;
  bool begun_ = false;
};

}  // namespace halyard
