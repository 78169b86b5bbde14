// Effects of `io_parameters`: each span of a load is a buffer, allocated or in place.
#include <cstring>

#include "analysis/program.h"
#include "vm/format/bytecode_reader.h"

namespace halyard::analysis {

namespace {

constexpr uint64_t kKeyBytes = 8;        // u32 offset, u32 length
constexpr uint64_t kSpanBytes = 24;      // u64 parameter offset, u64 buffer offset, u64 length
constexpr int64_t kImmutable = 0x80000;  // HALYARD_USAGE_SHARING_IMMUTABLE

struct Entry {
  std::string_view key;
  uint64_t buffer_offset;
  uint64_t length;
};

// The entries of the tables, if they are constants of the module.
std::vector<Entry> entries_of(const Program& program, const Call& call, size_t table) {
  const std::string_view keys = program.constant_text(call.ref(table));
  const std::string_view text = program.constant_text(call.ref(table + 1));
  const std::string_view spans = program.constant_text(call.ref(table + 2));
  std::vector<Entry> entries;
  const auto* key_bytes = reinterpret_cast<const uint8_t*>(keys.data());
  const auto* span_bytes = reinterpret_cast<const uint8_t*>(spans.data());
  for (uint64_t i = 0; (i + 1) * kSpanBytes <= spans.size() && (i + 1) * kKeyBytes <= keys.size(); ++i) {
    const auto offset = vm::load_unaligned<uint32_t>(key_bytes + i * kKeyBytes);
    const auto length = vm::load_unaligned<uint32_t>(key_bytes + i * kKeyBytes + 4);
    if (offset > text.size() || length > text.size() - offset) break;
    entries.push_back({text.substr(offset, length),
                       vm::load_unaligned<uint64_t>(span_bytes + i * kSpanBytes + 8),
                       vm::load_unaligned<uint64_t>(span_bytes + i * kSpanBytes + 16)});
  }
  for (size_t i = 0; i < 3; ++i)
    if (const auto bytes = call.object<BytesObject>(table + i); bytes && bytes->constant)
      program.analysis.constant_uses[*bytes->constant] = "parameter table";
  return entries;
}

Expression bytes_of(uint64_t length) { return static_cast<int64_t>(std::min<uint64_t>(length, INT64_MAX)); }

void remember(Program& program, std::string_view scope, const Entry& entry) {
  for (const Parameter& known : program.analysis.parameters)
    if (known.scope == scope && known.key == entry.key) return;
  program.analysis.parameters.push_back({std::string(scope), std::string(entry.key), entry.length});
}

void load(Program& program, Call& call) {
  const std::string_view scope = program.constant_text(call.ref(4));
  const auto device = call.object<DeviceObject>(0);
  const auto usage = call.number(7).constant();
  auto list = std::make_shared<ListObject>();
  Step step;
  step.kind = Step::Kind::parameters;
  step.place = call.place;
  step.submission = program.submissions++;
  std::vector<Target> targets;
  for (const Entry& entry : entries_of(program, call, 8)) {
    remember(program, scope, entry);
    Allocation allocation;
    allocation.source = Allocation::Source::parameter;
    // The file itself is the buffer, if the program does not write to it.
    allocation.in_place = usage && (*usage & kImmutable) != 0 && entry.length != 0;
    allocation.size = bytes_of(entry.length);
    allocation.name = std::string(scope) + "::" + std::string(entry.key);
    allocation.place = call.place;
    if (device) allocation.device = device->number;
    const auto buffer = program.allocate(std::move(allocation));
    list->elements.push_back({Ref(buffer)});
    Target target;
    target.buffer = buffer;
    target.length = buffer->length;
    target.reads = false;
    target.writes = true;
    targets.push_back(std::move(target));
  }
  if (list->elements.empty())
    program.notes.insert("the parameters that " + program.where(call.place) + " loads are not known");
  add_uses(program, step, targets);
  program.timeline->add(std::move(step));
  call.give(0, Ref(std::move(list)));
}

void gather(Program& program, Call& call) {
  const std::string_view scope = program.constant_text(call.ref(4));
  Step step;
  step.kind = Step::Kind::parameters;
  step.place = call.place;
  step.submission = program.submissions++;
  std::vector<Target> targets;
  for (const Entry& entry : entries_of(program, call, 6)) {
    remember(program, scope, entry);
    Target target;
    target.buffer = call.object<BufferObject>(5);
    target.offset = bytes_of(entry.buffer_offset);
    target.length = bytes_of(entry.length);
    target.reads = false;
    target.writes = true;
    targets.push_back(std::move(target));
  }
  add_uses(program, step, targets);
  program.timeline->add(std::move(step));
}

void scatter(Program&, Call&) {}

constexpr Effect kParameterEffects[] = {
    {"io_parameters.load", load},
    {"io_parameters.gather", gather},
    {"io_parameters.scatter", scatter},
};

}  // namespace

bool call_parameters(Program& program, Call& call) { return apply_effect(kParameterEffects, program, call); }

}  // namespace halyard::analysis
