// Reads captures: verifies each record as a FlatBuffer, then checks its numbers against earlier records.
#include "hal/capture/capture_file.h"

#include <capture_generated.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace halyard::hal {

namespace {

namespace schema = halyard::schema::capture;

constexpr size_t kRecordAlignment = 8;

// Reports a failed check; the reader adds the place.
template <typename... Args>
std::unexpected<Status> damaged(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::INVALID_ARGUMENT, "the capture is damaged: {}; capture again",
              fmt::format(format, std::forward<Args>(args)...));
}

std::string_view view(const flatbuffers::String* text) {
  return text ? std::string_view(text->c_str(), text->size()) : std::string_view();
}
template <typename T>
std::span<const T> view(const flatbuffers::Vector<T>* elements) {
  if (!elements) return {};
  return {reinterpret_cast<const T*>(elements->Data()), elements->size()};
}
// The verifier checks the alignment of a vector's length, not of its elements.
template <typename T>
Result<std::span<const T>> structs(const flatbuffers::Vector<const T*>* elements) {
  if (!elements || elements->size() == 0)
    return std::span<const T>();  // an empty vector may have any address
  if (reinterpret_cast<uintptr_t>(elements->Data()) % alignof(T) != 0)
    return damaged("the alignment of a vector is wrong");
  return std::span(reinterpret_cast<const T*>(elements->Data()), elements->size());
}
template <typename Vector>
uint32_t count(const Vector* elements) {
  return elements ? elements->size() : 0;
}

class Reader {
 public:
  explicit Reader(Ref<Bytes> bytes) { file_.bytes = std::move(bytes); }

  Result<CaptureFile> read(Incomplete incomplete) {
    const std::span<const uint8_t> all = file_.bytes->span();
    if (all.empty()) return not_a_capture(all);
    elements_left_ = all.size();
    size_t at = 0;
    size_t record = 0;
    for (; at < all.size() && !file_.is_complete; ++record) {
      const Result<size_t> size = size_at(all.subspan(at), record);
      if (!size) return std::unexpected(size.error());
      if (*size == 0) break;
      if (Result<> read = read_record(all.subspan(at, *size), record); !read)
        return std::unexpected(std::move(read.error()).note(fmt::format("record {} at byte {}", record, at)));
      at += padded(*size);
    }
    if (file_.is_complete && at != all.size())
      return damaged("{} bytes follow its last record, which ends at byte {}", all.size() - at, at);
    if (!file_.is_complete && incomplete == Incomplete::refuse)
      return fail(
          Code::DATA_LOSS,
          "the capture is cut short at byte {}, after {} whole records with {} executions: the program "
          "that wrote it did not end, or the file was not copied in full; capture again, or ask for "
          "what is there",
          all.size(), record, file_.executions.size());
    return std::move(file_);
  }

 private:
  static size_t padded(size_t size) {
    return (size + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
  }

  // Replay files of IREE begin with "IRRP", two numbers of 16 bits, and the length of their header.
  static std::unexpected<Status> not_a_capture(std::span<const uint8_t> bytes) {
    constexpr std::array<uint8_t, 4> kForeign = {'I', 'R', 'R', 'P'};
    if (bytes.size() >= 8 && std::ranges::equal(bytes.first(4), kForeign))
      return fail(Code::INVALID_ARGUMENT,
                  "not a capture of Halyard, but a replay file of IREE (.ireereplay), version {}.{}, which "
                  "only IREE's own tools read; run the module with 'vm-run --capture=FILE' to make a capture",
                  flatbuffers::ReadScalar<uint16_t>(&bytes[4]), flatbuffers::ReadScalar<uint16_t>(&bytes[6]));
    return fail(Code::INVALID_ARGUMENT,
                "not a capture: expected a file that begins with a record 'HYCP'; make one with a capture "
                "path in the context's options, or with 'vm-run --capture=FILE'");
  }

  // The bytes of the record that starts here, including its size prefix; 0 if the file ends within the
  // record.
  static Result<size_t> size_at(std::span<const uint8_t> rest, size_t record) {
    constexpr size_t kIdentifierEnd = 12;  // size, root, identifier
    const bool has_start = rest.size() >= kIdentifierEnd;
    if (record == 0 &&
        (!has_start || !flatbuffers::BufferHasIdentifier(rest.data(), schema::RecordIdentifier(), true)))
      return not_a_capture(rest);
    if (!has_start) return 0;
    const size_t size = sizeof(uint32_t) + size_t{flatbuffers::ReadScalar<uint32_t>(rest.data())};
    if (size < kIdentifierEnd || size >= FLATBUFFERS_MAX_BUFFER_SIZE)
      return damaged("record {} has {} bytes", record, size);
    return padded(size) <= rest.size() ? size : 0;
  }

  Result<> read_record(std::span<const uint8_t> bytes, size_t number) {
    flatbuffers::Verifier::Options options;
    constexpr uint32_t kMaxTables = 1000;  // more in large records: one for each few bytes
    constexpr uint32_t kMinTableBytes = 8;
    options.max_tables = std::max(kMaxTables, static_cast<uint32_t>(bytes.size() / kMinTableBytes));
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), options);
    if (!schema::VerifySizePrefixedRecordBuffer(verifier))
      return damaged("an offset, a size or an alignment is wrong");
    const schema::Record& record = *schema::GetSizePrefixedRecord(bytes.data());
    if ((number == 0) != (record.content_type() == schema::Content::Start))
      return damaged("it does not begin with one record 'Start'");
    switch (record.content_type()) {
      case schema::Content::Start:
        return read_start(*record.content_as_Start());
      case schema::Content::Blob:
        blobs_.push_back(view(record.content_as_Blob()->bytes()));
        return {};
      case schema::Content::Executable:
        return read_executable(*record.content_as_Executable());
      case schema::Content::Execution:
        return read_execution(*record.content_as_Execution());
      case schema::Content::Outcome:
        return read_outcome(*record.content_as_Outcome());
      case schema::Content::End:
        return read_end(*record.content_as_End());
      default:
        return damaged("a record of kind {} is unknown", static_cast<int>(record.content_type()));
    }
  }

  Result<> read_start(const schema::Start& start) {
    file_.made_by = view(start.made_by());
    if (start.version() == kCaptureVersion) return {};
    return fail(
        Code::INVALID_ARGUMENT,
        "the capture has version {}, made by Halyard {}; this one reads version {}: use a Halyard that "
        "is as new",
        start.version(), file_.made_by.substr(0, 32), kCaptureVersion);
  }

  // Limits the total contents to the size of the file, because many tables may refer to the same vector.
  Result<> take(uint64_t elements) {
    if (elements > elements_left_) return damaged("it holds more than its {} bytes", file_.bytes->size());
    elements_left_ -= elements;
    return {};
  }

  Result<std::span<const uint8_t>> blob(uint32_t number) const {
    if (number < blobs_.size()) return blobs_[number];
    return damaged("it names blob {}, but has {}", number, blobs_.size());
  }

  // The bytes of the blobs, which must fill the range exactly.
  Result<CapturedBytes> contents(const flatbuffers::Vector<uint32_t>* numbers, uint64_t length) {
    HALYARD_TRY(take(count(numbers)));
    CapturedBytes pieces;
    uint64_t size = 0;
    for (const uint32_t number : view(numbers)) {
      pieces.push_back(HALYARD_TRY(blob(number)));
      size += pieces.back().size();
    }
    if (size != length) return damaged("a range of {} bytes comes with {} bytes", length, size);
    return pieces;
  }

  Result<> read_executable(const schema::Executable& from) {
    HALYARD_TRY(take(uint64_t{count(from.constants())} + count(from.subgroup_sizes())));
    CapturedExecutable& to = file_.executables.emplace_back();
    to.format = view(from.format());
    to.data = HALYARD_TRY(blob(from.data()));
    const std::span<const uint32_t> constants = view(from.constants());
    to.constants.assign(constants.begin(), constants.end());
    const std::span<const uint32_t> sizes = view(from.subgroup_sizes());
    to.subgroup_sizes.assign(sizes.begin(), sizes.end());
    return {};
  }

  Result<> read_execution(const schema::Execution& from) {
    CapturedExecution& to = file_.executions.emplace_back();
    to.device = view(from.device());
    to.affinity = from.affinity();
    to.mode = from.mode();
    HALYARD_TRY(take(uint64_t{count(from.buffers())} + count(from.entries()) + count(from.commands())));
    for (uint32_t i = 0; i < count(from.buffers()); ++i)
      to.buffers.push_back(
          HALYARD_TRY(with_note(buffer(*from.buffers()->Get(i)), fmt::format("buffer {}", i))));
    for (const schema::Entry& item : HALYARD_TRY(structs(from.entries())))
      to.entries.push_back(HALYARD_TRY(
          with_note(entry(item, to.buffers), fmt::format("binding table entry {}", to.entries.size()))));
    for (uint32_t i = 0; i < count(from.commands()); ++i)
      to.commands.push_back(
          HALYARD_TRY(with_note(command(*from.commands()->Get(i), to), fmt::format("command {}", i))));
    return {};
  }

  Result<CapturedBuffer> buffer(const schema::Buffer& from) {
    CapturedBuffer to;
    to.device = view(from.device());
    to.size = from.size();
    to.memory_type = from.memory_type();
    to.usage = from.usage();
    to.access = from.access();
    HALYARD_TRY(take(count(from.ranges())));
    uint64_t end = 0;
    for (uint32_t i = 0; i < count(from.ranges()); ++i) {
      const schema::TouchedRange& range = *from.ranges()->Get(i);
      HALYARD_TRY(lies_within(range.offset(), range.length(), to.size));
      if (range.length() == 0 || range.offset() < end || (i > 0 && range.offset() == end))
        return damaged("range [{}, +{}) is out of order", range.offset(), range.length());
      end = range.offset() + range.length();
      to.ranges.push_back(
          {range.offset(), range.length(), HALYARD_TRY(contents(range.before(), range.length())), {}});
    }
    return to;
  }

  static Result<> lies_within(uint64_t offset, uint64_t length, uint64_t size) {
    if (offset <= size && length <= size - offset) return {};
    return damaged("range [{}, +{}) lies outside of {} bytes", offset, length, size);
  }

  static Result<CapturedEntry> entry(const schema::Entry& from, std::span<const CapturedBuffer> buffers) {
    if (from.buffer() == kNoBuffer) return CapturedEntry{};
    if (from.buffer() >= buffers.size())
      return damaged("it names buffer {}, but has {}", from.buffer(), buffers.size());
    HALYARD_TRY(lies_within(from.offset(), from.length(), buffers[from.buffer()].size));
    return CapturedEntry{from.buffer(), from.offset(), from.length()};
  }

  static Result<CommandRange> range(const schema::Range& from, const CapturedExecution& execution) {
    const CommandRange to = {from.buffer(), from.slot(), from.offset(), from.length()};
    if (to.buffer != kNoBuffer) {
      if (to.buffer >= execution.buffers.size())
        return damaged("it names buffer {}, but has {}", to.buffer, execution.buffers.size());
      HALYARD_TRY(lies_within(to.offset, to.length, execution.buffers[to.buffer].size));
      return to;
    }
    if (to.slot >= execution.entries.size() || execution.entries[to.slot].buffer == kNoBuffer)
      return damaged("it uses slot {}, which has no entry", to.slot);
    HALYARD_TRY(lies_within(to.offset, to.length, execution.entries[to.slot].length));
    return to;
  }

  // A direction that a collective does not use has no range.
  static Result<CommandRange> range_or_none(const schema::Range& from, const CapturedExecution& execution) {
    if (from.length() == 0 && from.buffer() == kNoBuffer) return CommandRange{};
    return range(from, execution);
  }

  // ---- The fields of commands

  Result<uint32_t> field(command_field::Number, uint32_t from, const CapturedExecution&) { return from; }
  Result<uint32_t> field(command_field::ChannelNumber, uint32_t from, const CapturedExecution&) {
    return from;
  }
  Result<uint64_t> field(command_field::Elements, uint64_t from, const CapturedExecution&) { return from; }
  Result<std::string_view> field(command_field::Text, const flatbuffers::Vector<uint8_t>* from,
                                 const CapturedExecution&) {
    const std::span<const uint8_t> bytes = view(from);
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  Result<CommandRange> field(command_field::Source, const schema::Range* from,
                             const CapturedExecution& execution) {
    return range_or_none(*from, execution);
  }
  Result<CommandRange> field(command_field::Target, const schema::Range* from,
                             const CapturedExecution& execution) {
    return range_or_none(*from, execution);
  }
  Result<std::span<const uint8_t>> field(command_field::Data, uint32_t from, const CapturedExecution&) {
    return blob(from);
  }
  Result<uint32_t> field(command_field::ExecutableNumber, uint32_t from, const CapturedExecution&) {
    if (from < file_.executables.size()) return from;
    return damaged("it names executable {}, but has {}", from, file_.executables.size());
  }
  Result<std::string_view> field(command_field::Name, const flatbuffers::String* from,
                                 const CapturedExecution&) {
    return view(from);
  }
  Result<std::array<uint32_t, 3>> field(command_field::Workgroups, const schema::Workgroups* from,
                                        const CapturedExecution&) {
    if (!from) return std::array<uint32_t, 3>{};
    return std::array{from->x(), from->y(), from->z()};
  }
  Result<std::optional<CommandRange>> field(command_field::Counts, const schema::Range* from,
                                            const CapturedExecution& execution) {
    if (!from) return std::nullopt;
    return range(*from, execution);
  }
  Result<std::span<const uint32_t>> field(command_field::Constants, const flatbuffers::Vector<uint32_t>* from,
                                          const CapturedExecution&) {
    return view(from);
  }
  Result<std::vector<CommandRange>> field(command_field::Bindings,
                                          const flatbuffers::Vector<const schema::Range*>* from,
                                          const CapturedExecution& execution) {
    HALYARD_TRY(take(count(from)));
    std::vector<CommandRange> bindings;
    for (const schema::Range& binding : HALYARD_TRY(structs(from)))
      bindings.push_back(HALYARD_TRY(range(binding, execution)));
    return bindings;
  }

  // Consistency checks between fields.
  static Result<> check(const auto&) { return {}; }
  static Result<> check(const FillCommand& fill) {
    if (const uint32_t size = fill.pattern_size; size != 1 && size != 2 && size != 4)
      return damaged("a fill has a pattern of {} bytes, expected 1, 2 or 4", size);
    return {};
  }
  static Result<> check(const UpdateCommand& update) {
    if (update.bytes.size() != update.target.length)
      return damaged("an update of {} bytes comes with {} bytes", update.target.length, update.bytes.size());
    return {};
  }

  Result<Command> command(const schema::RecordedCommand& recorded,
                          [[maybe_unused]] const CapturedExecution& execution) {
    switch (recorded.command() ? recorded.command_type() : schema::Command::NONE) {
#define FIELD(Kind, name) to.name = HALYARD_TRY(field(command_field::Kind(), from.name(), execution));
#define HALYARD_COMMAND(Name, name, KIND, word, record, fields)        \
  case schema::Command::Name: {                                        \
    [[maybe_unused]] const auto& from = *recorded.command_as_##Name(); \
    Name##Command to;                                                  \
    fields HALYARD_TRY(check(to));                                     \
    return to;                                                         \
  }
#include "hal/command/commands.inc"
      default:
        return damaged("its kind {} is unknown", static_cast<int>(recorded.command_type()));
    }
  }

  Result<> read_outcome(const schema::Outcome& from) {
    if (from.execution() >= file_.executions.size() ||
        file_.executions[from.execution()].outcome != CapturedExecution::Outcome::unknown)
      return damaged("an outcome belongs to execution {}, which does not exist or already has one",
                     from.execution());
    CapturedExecution& execution = file_.executions[from.execution()];
    if (from.code() != 0) {
      execution.outcome = CapturedExecution::Outcome::failed;
      execution.code = failure_code(static_cast<uint32_t>(from.code()));
      execution.message = view(from.message());
      return {};
    }
    execution.outcome = CapturedExecution::Outcome::done;
    uint32_t next = 0;
    for (CapturedBuffer& buffer : execution.buffers) {
      for (CapturedRange& range : buffer.ranges) {
        if (next == count(from.ranges())) return damaged("the outcome has {} ranges, expected more", next);
        range.after = HALYARD_TRY(contents(from.ranges()->Get(next++)->contents(), range.length));
      }
    }
    if (next != count(from.ranges()))
      return damaged("the outcome has {} ranges, expected {}", count(from.ranges()), next);
    return {};
  }

  Result<> read_end(const schema::End& end) {
    file_.is_complete = true;
    if (end.executions() == file_.executions.size()) return {};
    return damaged("it has {} executions, but its last record counts {}", file_.executions.size(),
                   end.executions());
  }

  CaptureFile file_;
  std::vector<std::span<const uint8_t>> blobs_;
  uint64_t elements_left_ = 0;
};

}  // namespace

Result<CaptureFile> read_capture(Ref<Bytes> bytes, Incomplete incomplete) {
  return Reader(std::move(bytes)).read(incomplete);
}

}  // namespace halyard::hal
