// Protocol buffers by hand: the few fields that are needed.
#include "base/perfetto.h"

#include <utility>

namespace halyard {

namespace {

constexpr uint64_t kSequence = 1;

// Field numbers of trace.proto and the files that it includes.
enum Trace : uint32_t { kPacket = 1 };
enum Packet : uint32_t {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
  kFirstOnSequence = 87
};
enum SequenceFlags : uint32_t { kStateCleared = 1, kNeedsState = 2 };
enum Interned : uint32_t { kCategoryNames = 1, kEventNames = 2 };
enum Name : uint32_t { kNumber = 1, kText = 2 };
enum Event : uint32_t { kCategory = 3, kType = 9, kName = 10, kTrack = 11, kCounterValue = 30, kFlows = 47 };
enum EventType : uint32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
enum Descriptor : uint32_t {
  kUuid = 1,
  kTrackName = 2,
  kProcess = 3,
  kThread = 4,
  kParent = 5,
  kCounterDescriptor = 8
};
enum Process : uint32_t { kProcessId = 1, kProcessName = 6 };
enum Thread : uint32_t { kThreadsProcess = 1, kThreadId = 2, kThreadName = 5 };
enum Counter : uint32_t { kUnit = 3 };
constexpr uint64_t kBytesUnit = 3;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_key(std::string& out, uint32_t field, WireType type) { put_varint(out, field << 3 | type); }
void put_number(std::string& out, uint32_t field, uint64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, value);
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, kLengthDelimited);
  put_varint(out, bytes.size());
  out += bytes;
}
void put_fixed(std::string& out, uint32_t field, uint64_t value) {
  put_key(out, field, kFixed64);
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

}  // namespace

void PerfettoWriter::packet(uint64_t time, const std::string& event) {
  std::string packet;
  packet.reserve(event.size() + interned_.size() + 32);
  put_number(packet, kTimestamp, time);
  put_number(packet, kSequenceId, kSequence);
  if (!begun_) put_number(packet, kFirstOnSequence, 1);
  put_number(packet, kSequenceFlags, std::exchange(begun_, true) ? kNeedsState : kStateCleared | kNeedsState);
  if (!interned_.empty()) put_bytes(packet, kInternedData, interned_);
  interned_.clear();
  put_bytes(packet, kTrackEvent, event);
  put_bytes(bytes_, kPacket, packet);
}

void PerfettoWriter::descriptor(const std::string& fields) {
  std::string packet;
  put_number(packet, kSequenceId, kSequence);
  put_bytes(packet, kTrackDescriptor, fields);
  put_bytes(bytes_, kPacket, packet);
}

void PerfettoWriter::process_track(uint64_t track, uint32_t process, std::string_view name) {
  std::string inner;
  put_number(inner, kProcessId, process);
  put_bytes(inner, kProcessName, name);
  std::string fields;
  put_number(fields, kUuid, track);
  put_bytes(fields, kProcess, inner);
  descriptor(fields);
}

void PerfettoWriter::thread_track(uint64_t track, uint32_t process, uint32_t thread, std::string_view name) {
  std::string inner;
  put_number(inner, kThreadsProcess, process);
  put_number(inner, kThreadId, thread);
  put_bytes(inner, kThreadName, name);
  std::string fields;
  put_number(fields, kUuid, track);
  put_bytes(fields, kThread, inner);
  descriptor(fields);
}

void PerfettoWriter::track(uint64_t track, uint64_t parent, std::string_view name) {
  std::string fields;
  put_number(fields, kUuid, track);
  put_number(fields, kParent, parent);
  put_bytes(fields, kTrackName, name);
  descriptor(fields);
}

void PerfettoWriter::counter_track(uint64_t track, uint64_t parent, std::string_view name) {
  std::string counter;
  put_number(counter, kUnit, kBytesUnit);
  std::string fields;
  put_number(fields, kUuid, track);
  put_number(fields, kParent, parent);
  put_bytes(fields, kTrackName, name);
  put_bytes(fields, kCounterDescriptor, counter);
  descriptor(fields);
}

uint64_t PerfettoWriter::number(Numbers& numbers, uint32_t field, std::string_view name) {
  if (const auto known = numbers.find(name); known != numbers.end()) return known->second;
  const uint64_t number = numbers.size() + 1;
  numbers.emplace(name, number);
  std::string entry;
  put_number(entry, kNumber, number);
  put_bytes(entry, kText, name);
  put_bytes(interned_, field, entry);
  return number;
}

void PerfettoWriter::name_event(std::string& event, std::string_view category, std::string_view name) {
  put_number(event, kCategory, number(categories_, kCategoryNames, category));
  put_number(event, kName, number(names_, kEventNames, name));
}

void PerfettoWriter::begin(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
                           std::span<const uint64_t> flows) {
  event_.clear();
  put_number(event_, kType, kBegin);
  put_number(event_, kTrack, track);
  name_event(event_, category, name);
  for (const uint64_t flow : flows) put_fixed(event_, kFlows, flow);
  packet(time, event_);
}

void PerfettoWriter::end(uint64_t track, uint64_t time) {
  event_.clear();
  put_number(event_, kType, kEnd);
  put_number(event_, kTrack, track);
  packet(time, event_);
}

void PerfettoWriter::instant(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
                             std::span<const uint64_t> flows) {
  event_.clear();
  put_number(event_, kType, kInstant);
  put_number(event_, kTrack, track);
  name_event(event_, category, name);
  for (const uint64_t flow : flows) put_fixed(event_, kFlows, flow);
  packet(time, event_);
}

void PerfettoWriter::count(uint64_t track, uint64_t time, int64_t value) {
  event_.clear();
  put_number(event_, kType, kCounter);
  put_number(event_, kTrack, track);
  put_number(event_, kCounterValue, static_cast<uint64_t>(value));
  packet(time, event_);
}

std::string PerfettoWriter::take() { return std::exchange(bytes_, {}); }

}  // namespace halyard
