// Writes captures: values become records, bytes become blobs.
#include "hal/capture/capture_writer.h"

#include <capture_generated.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/system_error.h"

namespace halyard::hal {

namespace {

namespace schema = halyard::schema::capture;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr size_t kRecordAlignment = 8;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;  // of a record: FlatBuffers are limited to 2 GiB
constexpr const char* kMadeBy = HALYARD_VERSION;

template <typename T>
auto vector(FlatBufferBuilder& builder, std::span<const T> elements) {
  return elements.empty() ? 0 : builder.CreateVector(elements.data(), elements.size());
}

schema::Range range(const CommandRange& from) { return {from.buffer, from.slot, from.offset, from.length}; }

Result<> check_size(const char* what, uint64_t size) {
  if (size <= kMaxBytes) return {};
  return fail(Code::UNIMPLEMENTED, "{} of {} bytes cannot be captured; at most {} can", what, size,
              kMaxBytes);
}

// Adds up the sizes of variable-length fields.
struct Sizes {
  uint64_t& size;
  void operator()(command_field::Text, std::string_view, std::string_view text) const { size += text.size(); }
  void operator()(command_field::Name, std::string_view, std::string_view text) const { size += text.size(); }
  void operator()(command_field::Constants, std::string_view, std::span<const uint32_t> constants) const {
    size += constants.size_bytes();
  }
  void operator()(command_field::Bindings, std::string_view,
                  const std::vector<CommandRange>& bindings) const {
    size += bindings.size() * sizeof(schema::Range);
  }
  template <typename Kind, typename Value>
  void operator()(Kind, std::string_view, const Value&) const {}
};

// Collects the bytes in a command.
struct Carried {
  std::vector<std::span<const uint8_t>>& all;
  void operator()(command_field::Data, std::string_view, std::span<const uint8_t> bytes) const {
    all.push_back(bytes);
  }
  template <typename Kind, typename Value>
  void operator()(Kind, std::string_view, const Value&) const {}
};

// An upper bound for the execution's record, without the contents.
uint64_t record_size(const CapturedExecution& execution) {
  constexpr uint64_t kCommand = 160;
  uint64_t size = execution.entries.size() * sizeof(schema::Entry);
  for (const Command& command : execution.commands) {
    size += kCommand;
    std::visit([&](const auto& known) { for_each_field(known, Sizes{size}); }, command);
  }
  return size;
}

}  // namespace

// The implementation of the public functions. Called under the lock.
struct CaptureWriter::Records {
  CaptureWriter& self;

  std::unexpected<Status> file_error(int number, const char* action) const {
    return fail(Code::UNAVAILABLE, "cannot {} capture '{}': {}; check the disk and the path", action,
                self.path_, std::strerror(number));
  }

  Result<> flush() const {
    if (std::fflush(self.file_) == 0) return {};
    self.is_broken_ = true;
    return file_error(errno, "write");
  }

  Result<> write(const void* bytes, size_t size) const {
    if (self.is_broken_)
      return fail(Code::FAILED_PRECONDITION,
                  "capture '{}' is cut short, because an earlier write has failed; capture again",
                  self.path_);
    if (std::fwrite(bytes, 1, size, self.file_) != size) {
      self.is_broken_ = true;
      return file_error(errno, "write");
    }
    self.size_ += size;
    return {};
  }

  template <typename T>
  Result<> write_record(FlatBufferBuilder& builder, schema::Content kind, Offset<T> content) const {
    constexpr uint8_t kPadding[kRecordAlignment] = {};
    schema::FinishSizePrefixedRecordBuffer(builder, schema::CreateRecord(builder, kind, content.Union()));
    HALYARD_TRY(write(builder.GetBufferPointer(), builder.GetSize()));
    return write(kPadding, (kRecordAlignment - self.size_ % kRecordAlignment) % kRecordAlignment);
  }

  Result<> write_start() const {
    FlatBufferBuilder builder;
    const auto made_by = builder.CreateString(kMadeBy);
    HALYARD_TRY(write_record(builder, schema::Content::Start,
                             schema::CreateStart(builder, kCaptureVersion, made_by)));
    return flush();
  }

  Result<> write_end() const {
    FlatBufferBuilder builder;
    HALYARD_TRY(write_record(builder, schema::Content::End,
                             schema::CreateEnd(builder, self.executions_, self.outcomes_)));
    return flush();
  }

  // Whether the file has these bytes at the blob's place. False if the file cannot be read.
  bool holds(const Blob& blob, std::span<const uint8_t> bytes) const {
    constexpr size_t kStep = 1 << 16;
    uint8_t read[kStep];
    if (std::fflush(self.file_) != 0) return false;
    for (uint64_t at = 0; at < bytes.size();) {
      const size_t wanted = std::min<uint64_t>(kStep, bytes.size() - at);
      const ssize_t count = ::pread(::fileno(self.file_), read, wanted, static_cast<off_t>(blob.place + at));
      if (count <= 0 || std::memcmp(read, bytes.data() + at, static_cast<size_t>(count)) != 0) return false;
      at += static_cast<uint64_t>(count);
    }
    return true;
  }

  // Returns the number of the blob with these bytes; writes the blob if it is new.
  Result<uint32_t> blob(std::span<const uint8_t> bytes) const {
    const size_t hash =
        std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    for (auto [it, end] = self.blobs_.equal_range(hash); it != end; ++it)
      if (it->second.size == bytes.size() && holds(it->second, bytes)) return it->second.number;

    FlatBufferBuilder builder(bytes.size() + 128);
    const auto contents = builder.CreateVector(bytes.data(), bytes.size());
    const uint64_t start = self.size_;
    HALYARD_TRY(write_record(builder, schema::Content::Blob, schema::CreateBlob(builder, contents)));
    const uint8_t* const record = builder.GetBufferPointer();
    const uint8_t* const data = schema::GetSizePrefixedRecord(record)->content_as_Blob()->bytes()->Data();
    const Blob written = {start + static_cast<uint64_t>(data - record), bytes.size(), self.blob_count_++};
    self.blobs_.emplace(hash, written);
    return written.number;
  }

  Result<std::vector<uint32_t>> contents(const CapturedBytes& pieces) const {
    std::vector<uint32_t> numbers;
    for (std::span<const uint8_t> rest : pieces) {
      for (; !rest.empty(); rest = rest.subspan(std::min<uint64_t>(self.blob_bytes_, rest.size())))
        numbers.push_back(HALYARD_TRY(blob(rest.first(std::min<uint64_t>(self.blob_bytes_, rest.size())))));
    }
    return numbers;
  }

  Result<uint32_t> executable(Executable& executable) const {
    const auto known = self.executable_numbers_.find(&executable);
    if (known != self.executable_numbers_.end()) return known->second;
    HALYARD_TRY(check_size("an executable", executable.data().size()));
    const uint32_t data = HALYARD_TRY(blob(executable.data()));
    FlatBufferBuilder builder;
    const auto format = builder.CreateString(executable.format());
    const auto constants = vector(builder, executable.constants());
    const auto sizes = vector(builder, executable.subgroup_sizes());
    HALYARD_TRY(write_record(builder, schema::Content::Executable,
                             schema::CreateExecutable(builder, format, data, constants, sizes)));
    self.executables_.push_back(Ref<Executable>::share(&executable));
    const auto number = static_cast<uint32_t>(self.executable_numbers_.size());
    self.executable_numbers_.emplace(&executable, number);
    return number;
  }

  // Numbers of blobs and executables, which are separate records before the execution that refers to them.
  struct Named {
    std::vector<uint32_t> executables;  // indexed by the execution's numbers
    std::vector<uint32_t> updates;      // blobs of the bytes in commands, in order
  };

  // Creates the record of a command, field by field.
  struct CommandMaker {
    FlatBufferBuilder& builder;
    const Named& named;
    size_t& updates;

    uint32_t field(command_field::Number, uint32_t from) const { return from; }
    uint32_t field(command_field::ChannelNumber, uint32_t from) const { return from; }
    uint64_t field(command_field::Elements, uint64_t from) const { return from; }
    auto field(command_field::Text, std::string_view from) const {
      return builder.CreateVector(reinterpret_cast<const uint8_t*>(from.data()), from.size());
    }
    schema::Range field(command_field::Source, const CommandRange& from) const { return range(from); }
    schema::Range field(command_field::Target, const CommandRange& from) const { return range(from); }
    uint32_t field(command_field::Data, std::span<const uint8_t>) const { return named.updates[updates++]; }
    uint32_t field(command_field::ExecutableNumber, uint32_t from) const { return named.executables[from]; }
    auto field(command_field::Name, std::string_view from) const { return builder.CreateString(from); }
    schema::Workgroups field(command_field::Workgroups, const std::array<uint32_t, 3>& from) const {
      return {from[0], from[1], from[2]};
    }
    std::optional<schema::Range> field(command_field::Counts, const std::optional<CommandRange>& from) const {
      return from ? std::optional(range(*from)) : std::nullopt;
    }
    auto field(command_field::Constants, std::span<const uint32_t> from) const {
      return vector(builder, from);
    }
    auto field(command_field::Bindings, std::span<const CommandRange> from) const {
      std::vector<schema::Range> ranges;
      for (const CommandRange& binding : from) ranges.push_back(range(binding));
      return builder.CreateVectorOfStructs(ranges);
    }

    // Converts a field to the parameter type of the generated functions: structs are passed by pointer.
    template <typename T>
    static T passed(const T& value) {
      return value;
    }
    static const schema::Range* passed(const schema::Range& range) { return &range; }
    static const schema::Range* passed(const std::optional<schema::Range>& range) {
      return range ? &*range : nullptr;
    }
    static const schema::Workgroups* passed(const schema::Workgroups& workgroups) { return &workgroups; }

#define FIELD(Kind, name) , field(command_field::Kind(), command.name)
#define HALYARD_COMMAND(Name, name, KIND, word, record, fields)                                     \
  Offset<schema::RecordedCommand> operator()([[maybe_unused]] const Name##Command& command) const { \
    const std::tuple made{schema::Command::Name fields}; /* in this order */                        \
    return std::apply(                                                                              \
        [&](schema::Command kind, const auto&... each) {                                            \
          const auto content = schema::Create##Name(builder, passed(each)...);                      \
          return schema::CreateRecordedCommand(builder, kind, content.Union());                     \
        },                                                                                          \
        made);                                                                                      \
  }
#include "hal/command/commands.inc"
  };

  Result<> execution(const CapturedExecution& from, std::span<Executable* const> executables) const {
    HALYARD_TRY(check_size("a command buffer", record_size(from)));
    Named named;
    for (Executable* used : executables) named.executables.push_back(HALYARD_TRY(executable(*used)));
    std::vector<std::span<const uint8_t>> carried;
    for (const Command& command : from.commands)
      std::visit([&](const auto& known) { for_each_field(known, Carried{carried}); }, command);
    for (const std::span<const uint8_t> bytes : carried) {
      HALYARD_TRY(check_size("an update", bytes.size()));
      named.updates.push_back(HALYARD_TRY(blob(bytes)));
    }
    FlatBufferBuilder builder;
    std::vector<Offset<schema::Buffer>> buffers;
    for (const CapturedBuffer& buffer : from.buffers) {
      std::vector<Offset<schema::TouchedRange>> ranges;
      for (const CapturedRange& range : buffer.ranges) {
        const std::vector<uint32_t> before = HALYARD_TRY(contents(range.before));
        const auto numbers = builder.CreateVector(before);
        ranges.push_back(schema::CreateTouchedRange(builder, range.offset, range.length, numbers));
      }
      const auto device = builder.CreateString(buffer.device);
      const auto touched = builder.CreateVector(ranges);
      buffers.push_back(schema::CreateBuffer(builder, device, buffer.size, buffer.memory_type, buffer.usage,
                                             buffer.access, touched));
    }
    std::vector<schema::Entry> entries;
    for (const CapturedEntry& entry : from.entries)
      entries.emplace_back(entry.buffer, 0, entry.offset, entry.length);
    std::vector<Offset<schema::RecordedCommand>> commands;
    size_t updates = 0;
    for (const Command& recorded : from.commands)
      commands.push_back(std::visit(CommandMaker{builder, named, updates}, recorded));
    const auto device = builder.CreateString(from.device);
    const auto command_vector = builder.CreateVector(commands);
    const auto entry_vector = builder.CreateVectorOfStructs(entries);
    const auto buffer_vector = builder.CreateVector(buffers);
    HALYARD_TRY(write_record(builder, schema::Content::Execution,
                             schema::CreateExecution(builder, device, from.affinity, from.mode,
                                                     command_vector, entry_vector, buffer_vector)));
    return flush();
  }

  Result<> outcome(uint32_t execution, std::span<const CapturedBuffer> buffers, const Status& failure) const {
    FlatBufferBuilder builder;
    std::vector<Offset<schema::After>> ranges;
    for (const CapturedBuffer& buffer : buffers) {
      if (!failure.ok()) break;
      for (const CapturedRange& range : buffer.ranges) {
        const std::vector<uint32_t> after = HALYARD_TRY(contents(range.after));
        const auto numbers = builder.CreateVector(after);
        ranges.push_back(schema::CreateAfter(builder, numbers));
      }
    }
    const auto message = builder.CreateString(failure.ok() ? std::string() : failure.text());
    const auto range_vector = builder.CreateVector(ranges);
    HALYARD_TRY(write_record(builder, schema::Content::Outcome,
                             schema::CreateOutcome(builder, execution, static_cast<int32_t>(failure.code()),
                                                   message, range_vector)));
    return flush();
  }
};

Result<std::unique_ptr<CaptureWriter>> CaptureWriter::create(const std::string& path, uint64_t blob_bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "w+be");
  if (!file) {
    const int number = errno;
    return fail(code_of_errno(number), "cannot create capture '{}': {}; check the path", path,
                std::strerror(number));
  }
  auto writer = std::make_unique<CaptureWriter>(path, file, blob_bytes);
  HALYARD_TRY(Records{*writer}.write_start());
  return writer;
}

Result<uint32_t> CaptureWriter::begin(const CapturedExecution& execution,
                                      std::span<Executable* const> executables) {
  const std::lock_guard lock(mutex_);
  HALYARD_TRY(Records{*this}.execution(execution, executables));
  return executions_++;
}

Result<> CaptureWriter::end(uint32_t execution, std::span<const CapturedBuffer> buffers,
                            const Status& failure) {
  const std::lock_guard lock(mutex_);
  HALYARD_TRY(Records{*this}.outcome(execution, buffers, failure));
  ++outcomes_;
  return {};
}

CaptureWriter::~CaptureWriter() {
  // If the end cannot be written, the capture is cut short; its reader detects that.
  static_cast<void>(Records{*this}.write_end());
  std::fclose(file_);
}

}  // namespace halyard::hal
