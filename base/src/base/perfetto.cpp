// Encodes the few required fields of the protocol buffers by hand.
#include "base/perfetto.h"

#include <unistd.h>

#include <utility>

namespace halyard {

namespace {

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
enum Event : uint32_t {
  kCategory = 3,
  kArgument = 4,
  kType = 9,
  kName = 10,
  kTrack = 11,
  kNameText = 23,
  kCounterValue = 30,
  kFlows = 47
};
enum Argument : uint32_t { kArgumentNumber = 3, kArgumentText = 6, kArgumentName = 10 };
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

constexpr size_t kMaxVarint = 10;  // bytes

// Writes the value at `out`, which has room for kMaxVarint bytes; returns the end.
char* write_varint(char* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<char>(value | 0x80);
  *out++ = static_cast<char>(value);
  return out;
}
// Appends two varints. They are written in place, because copying bytes that have just been written one by
// one makes the processor wait for its store buffer.
void put_varints(std::string& out, uint64_t first, uint64_t second) {
  const size_t size = out.size();
  out.resize_and_overwrite(size + 2 * kMaxVarint, [&](char* bytes, size_t) {
    return static_cast<size_t>(write_varint(write_varint(bytes + size, first), second) - bytes);
  });
}
constexpr uint32_t key_of(uint32_t field, WireType type) { return field << 3 | type; }
void put_number(std::string& out, uint32_t field, uint64_t value) {
  put_varints(out, key_of(field, kVarint), value);
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varints(out, key_of(field, kLengthDelimited), bytes.size());
  out += bytes;
}
void put_fixed(std::string& out, uint32_t field, uint64_t value) {
  char bytes[kMaxVarint + sizeof(value)];
  char* end = write_varint(bytes, key_of(field, kFixed64));
  for (size_t i = 0; i < sizeof(value); ++i) *end++ = static_cast<char>(value >> 8 * i);  // little endian
  out.append(bytes, static_cast<size_t>(end - bytes));
}

}  // namespace

PerfettoWriter::PerfettoWriter() : process_(static_cast<uint32_t>(::getpid())) {}

uint64_t PerfettoWriter::unique(uint64_t number) const {
  return number == 0 ? 0 : (static_cast<uint64_t>(process_) << 32) + number;
}

void PerfettoWriter::packet(uint64_t time) {
  packet_.clear();
  put_number(packet_, kTimestamp, time);
  put_number(packet_, kSequenceId, process_);
  if (!begun_) put_number(packet_, kFirstOnSequence, 1);
  put_number(packet_, kSequenceFlags,
             std::exchange(begun_, true) ? kNeedsState : kStateCleared | kNeedsState);
  if (!interned_.empty()) put_bytes(packet_, kInternedData, interned_);
  interned_.clear();
  put_bytes(packet_, kTrackEvent, event_);
  put_bytes(bytes_, kPacket, packet_);
}

void PerfettoWriter::descriptor(uint64_t track, uint64_t parent, std::string_view name, uint32_t kind,
                                std::string_view inner) {
  std::string fields;
  put_number(fields, kUuid, unique(track));
  if (parent != 0) put_number(fields, kParent, unique(parent));
  if (!name.empty()) put_bytes(fields, kTrackName, name);
  if (kind != 0) put_bytes(fields, kind, inner);
  std::string packet;
  put_number(packet, kSequenceId, process_);
  put_bytes(packet, kTrackDescriptor, fields);
  put_bytes(bytes_, kPacket, packet);
}

void PerfettoWriter::process_track(uint64_t track, uint32_t process, std::string_view name) {
  std::string inner;
  put_number(inner, kProcessId, process);
  put_bytes(inner, kProcessName, name);
  descriptor(track, 0, {}, kProcess, inner);
}

void PerfettoWriter::thread_track(uint64_t track, uint32_t process, uint32_t thread, std::string_view name) {
  std::string inner;
  put_number(inner, kThreadsProcess, process);
  put_number(inner, kThreadId, thread);
  put_bytes(inner, kThreadName, name);
  descriptor(track, 0, {}, kThread, inner);
}

void PerfettoWriter::track(uint64_t track, uint64_t parent, std::string_view name) {
  descriptor(track, parent, name, 0, {});
}

void PerfettoWriter::counter_track(uint64_t track, uint64_t parent, std::string_view name) {
  std::string inner;
  put_number(inner, kUnit, kBytesUnit);
  descriptor(track, parent, name, kCounterDescriptor, inner);
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

void PerfettoWriter::start_event(uint32_t type, uint64_t track) {
  event_.clear();
  put_number(event_, kType, type);
  put_number(event_, kTrack, unique(track));
}

void PerfettoWriter::named_event(uint32_t type, uint64_t track, uint64_t time, std::string_view category,
                                 std::string_view name, std::span<const uint64_t> flows,
                                 std::span<const TraceArgument> arguments) {
  start_event(type, track);
  put_number(event_, kCategory, number(categories_, kCategoryNames, category));
  if (names_.size() < kMaxNames || names_.contains(name)) {
    put_number(event_, kName, number(names_, kEventNames, name));
  } else {
    put_bytes(event_, kNameText, name);
  }
  for (const uint64_t flow : flows) put_fixed(event_, kFlows, unique(flow));
  for (const TraceArgument& argument : arguments) {
    std::string fields;
    put_bytes(fields, kArgumentName, argument.name);
    if (argument.text) {
      put_bytes(fields, kArgumentText, argument.text);
    } else {
      put_number(fields, kArgumentNumber, argument.number);
    }
    put_bytes(event_, kArgument, fields);
  }
  packet(time);
}

void PerfettoWriter::begin(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
                           std::span<const uint64_t> flows, std::span<const TraceArgument> arguments) {
  named_event(kBegin, track, time, category, name, flows, arguments);
}

void PerfettoWriter::end(uint64_t track, uint64_t time) {
  start_event(kEnd, track);
  packet(time);
}

void PerfettoWriter::instant(uint64_t track, uint64_t time, std::string_view category, std::string_view name,
                             std::span<const uint64_t> flows, std::span<const TraceArgument> arguments) {
  named_event(kInstant, track, time, category, name, flows, arguments);
}

void PerfettoWriter::count(uint64_t track, uint64_t time, int64_t value) {
  start_event(kCounter, track);
  put_number(event_, kCounterValue, static_cast<uint64_t>(value));
  packet(time);
}

std::string PerfettoWriter::take() { return std::exchange(bytes_, {}); }

}  // namespace halyard
