// Writes captures with CaptureWriter, and one with a kernel record by record, because CaptureWriter needs an
// executable of a device.
#include <capture_generated.h>

#include <cstdlib>
#include <string_view>

#include "hal/capture/capture_writer.h"
#include "seeds.h"

namespace halyard::fuzz {

namespace {

using namespace halyard::hal;
namespace schema = halyard::schema::capture;
using flatbuffers::FlatBufferBuilder;

constexpr uint32_t kUsage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_INDIRECT_PARAMETERS;
constexpr uint32_t kAccess = 7;  // read, write, discard

template <typename T>
T need(Result<T> result) {
  if (!result) std::abort();
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// Every command that needs no executable, through buffers and through slots.
void write_transfers(const std::filesystem::path& path) {
  static const std::vector<uint8_t> bytes(64, 7);
  const std::span<const uint8_t> all = bytes;
  CapturedExecution execution;
  execution.device = "null";
  execution.affinity = 1;
  execution.buffers = {
      {.device = "null",
       .size = 64,
       .memory_type = HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_LOCAL,
       .usage = kUsage,
       .access = kAccess,
       .ranges = {{0, 16, {all.first(16)}, {}}, {32, 16, {all.first(4), all.first(12)}, {}}}},
      {.device = "null",
       .size = 128,
       .memory_type = HALYARD_MEMORY_DEVICE_LOCAL,
       .usage = kUsage,
       .access = kAccess,
       .ranges = {{8, 24, {all.first(24)}, {}}}}};
  execution.entries = {{1, 8, 100}, {}, {0, 0, 64}};
  const CommandRange source = {.buffer = 0, .offset = 0, .length = 16};
  const CommandRange slot = {.slot = 0, .offset = 4, .length = 16};
  execution.commands = {BeginGroupCommand{"outer"},
                        FillCommand{{.buffer = 0, .offset = 32, .length = 16}, 0x01020304, 4},
                        BarrierCommand{28, 13},
                        BeginGroupCommand{""},
                        CopyCommand{source, slot},
                        EndGroupCommand{},
                        UpdateCommand{{.slot = 2, .offset = 8, .length = 8}, all.first(8)},
                        EndGroupCommand{}};
  const auto writer = need(CaptureWriter::create(path));
  const uint32_t first = need(writer->begin(execution, {}));
  for (CapturedBuffer& buffer : execution.buffers)
    for (CapturedRange& range : buffer.ranges) range.after = {all.first(range.length)};
  need(writer->end(first, execution.buffers, {}));
  execution.entries.clear();
  execution.commands = {FillCommand{{.buffer = 1, .offset = 8, .length = 8}, 0xAB, 1}};
  const uint32_t second = need(writer->begin(execution, {}));
  need(writer->end(second, execution.buffers, Status(Code::ABORTED, "the device is lost")));
  need(writer->begin(execution, {}));
}

class Records {
 public:
  template <typename Make>
  void add(schema::Content kind, Make make) {
    FlatBufferBuilder builder;
    const auto content = make(builder).Union();
    schema::FinishSizePrefixedRecordBuffer(builder, schema::CreateRecord(builder, kind, content));
    file_.insert(file_.end(), builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
    file_.resize((file_.size() + 7) / 8 * 8);
  }
  const std::vector<uint8_t>& file() const { return file_; }

 private:
  std::vector<uint8_t> file_;
};

std::vector<uint8_t> with_a_kernel() {
  Records records;
  records.add(schema::Content::Start, [](FlatBufferBuilder& to) {
    return schema::CreateStart(to, kCaptureVersion, to.CreateString("0.1"));
  });
  for (const std::vector<uint8_t>& bytes : {std::vector<uint8_t>(12, 1), std::vector<uint8_t>(16, 2)})
    records.add(schema::Content::Blob,
                [&](FlatBufferBuilder& to) { return schema::CreateBlob(to, to.CreateVector(bytes)); });
  records.add(schema::Content::Executable, [](FlatBufferBuilder& to) {
    const auto format = to.CreateString("vmvx-bytecode-fb");
    return schema::CreateExecutable(to, format, 0, to.CreateVector(std::vector<uint32_t>{3, 4}));
  });
  records.add(schema::Content::Execution, [](FlatBufferBuilder& to) {
    const schema::Workgroups workgroups(2, 3, 1);
    const schema::Range counts(0, 0, 4, 12);
    std::vector<flatbuffers::Offset<schema::RecordedCommand>> commands;
    for (const schema::Range* indirect : {static_cast<const schema::Range*>(nullptr), &counts}) {
      const auto name = to.CreateString("kernel");
      const auto constants = to.CreateVector(std::vector<uint32_t>{1, 2});
      const auto bindings =
          to.CreateVectorOfStructs(std::vector<schema::Range>{{0, 0, 0, 16}, {kNoBuffer, 0, 4, 8}});
      commands.push_back(schema::CreateRecordedCommand(
          to, schema::Command::Dispatch,
          schema::CreateDispatch(to, 0, 1, name, &workgroups, indirect, constants, bindings).Union()));
    }
    const auto before = to.CreateVector(std::vector<uint32_t>{1});
    const auto ranges = to.CreateVector(std::vector{schema::CreateTouchedRange(to, 0, 16, before)});
    const auto name = to.CreateString("local-sync");
    const auto buffers = to.CreateVector(std::vector{
        schema::CreateBuffer(to, name, 16, HALYARD_MEMORY_DEVICE_LOCAL, kUsage, kAccess, ranges)});
    const auto entries = to.CreateVectorOfStructs(std::vector<schema::Entry>{{0, 0, 0, 16}});
    const auto list = to.CreateVector(commands);
    return schema::CreateExecution(to, name, 1, 1, list, entries, buffers);
  });
  records.add(schema::Content::Outcome, [](FlatBufferBuilder& to) {
    const auto contents = to.CreateVector(std::vector<uint32_t>{1});
    const auto ranges = to.CreateVector(std::vector{schema::CreateAfter(to, contents)});
    return schema::CreateOutcome(to, 0, 0, 0, ranges);
  });
  records.add(schema::Content::End, [](FlatBufferBuilder& to) { return schema::CreateEnd(to, 1, 1); });
  return records.file();
}

}  // namespace

void write_captures(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  need(CaptureWriter::create(folder / "empty"));
  write_transfers(folder / "transfers");
  std::vector<uint8_t> kernel = with_a_kernel();
  write_seed(folder / "kernel", kernel);
  kernel.resize(kernel.size() - 40);
  write_seed(folder / "cut", kernel);
}

}  // namespace halyard::fuzz
