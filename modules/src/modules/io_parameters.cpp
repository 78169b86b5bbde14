// The native module `io_parameters`. A call has three steps: it reads its tables, resolves and checks every
// span, then submits. Nothing is submitted before everything has been checked. Specified by
// parameters-and-files.md, section 4.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <set>

#include "hal/device/external_memory.h"
#include "hal/queue/fence.h"
#include "hal/queue/file.h"
#include "hal/queue/queue.h"
#include "modules/parameter_pages.h"
#include "modules/parameters.h"
#include "text/suggest.h"
#include "vm/native/bind.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"

namespace halyard::modules {
namespace {

using OptionalFence = vm::Lenient<hal::Fence>;

constexpr size_t kKeyEntrySize = 8;    // u32 offset, u32 length
constexpr size_t kSpanEntrySize = 24;  // u64 parameter offset, u64 buffer offset, u64 length

// One span of a call: resolved, and within its parameter. Nothing in it refers to bytes of the program, which
// work of a device may change during the call.
struct Operation {
  std::string_view key;
  const Parameter* parameter = nullptr;
  std::string_view path;  // of the parameter's file
  uint64_t parameter_offset = 0;
  uint64_t buffer_offset = 0;
  uint64_t length = 0;
};

// The state of the module in a context.
struct State {
  ParameterScopes scopes;
  Ref<Budget> memory;
  ParameterPages pages;
  ParameterWarning warn;  // may be empty
  // The parameters with a warning, so that each is reported once. Calls may run concurrently.
  std::mutex warned_mutex;
  std::set<const Parameter*> warned;
};

std::string_view text(const vm::Buffer* buffer) {
  return buffer ? std::string_view(reinterpret_cast<const char*>(buffer->data()), buffer->length())
                : std::string_view();
}

template <typename T>
T field(const vm::Buffer& buffer, uint64_t offset) {
  T value;
  std::memcpy(&value, buffer.data() + offset, sizeof value);
  return value;
}

Result<const ParameterScope*> find_scope(const ParameterScopes& scopes, std::string_view name) {
  const auto found = scopes.find(name);
  if (found != scopes.end()) return found->second.get();
  std::string known;
  for (const auto& [scope, parameters] : scopes)
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", scope);
  return fail(Code::NOT_FOUND, "no parameters for scope '{}'{}{}; give a file for this scope in `parameters`",
              name, known.empty() ? "" : ", only for ", known);
}

std::unexpected<Status> unknown_parameter(std::string_view scope_name, const ParameterScope& scope,
                                          const std::string& key) {
  return fail(Code::NOT_FOUND, "scope '{}' has no parameter '{}'{}", scope_name, key,
              did_you_mean(key, scope.keys()));
}

// The operations of a call, and the memory charged for them.
struct Operations {
  Charge charge;
  std::vector<Operation> list;
};

Result<Operations> read_operations(const State& state, std::string_view scope_name,
                                   const ParameterScope& scope, const vm::Buffer& key_table,
                                   const vm::Buffer& key_data, const vm::Buffer& spans) {
  if (spans.length() % kSpanEntrySize != 0)
    return fail(Code::INVALID_ARGUMENT, "expected spans of {} bytes each, found {} bytes in all",
                kSpanEntrySize, spans.length());
  const uint64_t count = spans.length() / kSpanEntrySize;
  if (key_table.length() / kKeyEntrySize < count)
    return fail(Code::INVALID_ARGUMENT,
                "expected a key of {} bytes for each of {} spans, found a table of {} bytes", kKeyEntrySize,
                count, key_table.length());
  Operations operations;
  HALYARD_TRY(
      operations.charge.start(state.memory.get(), block_bytes(count * sizeof(Operation)), "a call's spans"));
  operations.list.resize(count);
  for (uint64_t i = 0; i < count; ++i) {
    Operation& operation = operations.list[i];
    const auto key_offset = field<uint32_t>(key_table, i * kKeyEntrySize);
    const auto key_length = field<uint32_t>(key_table, i * kKeyEntrySize + 4);
    if (key_offset > key_data.length() || key_length > key_data.length() - key_offset)
      return fail(Code::OUT_OF_RANGE,
                  "key {} (offset {}, length {}) lies outside of the {} bytes of key data", i, key_offset,
                  key_length, key_data.length());
    const std::string_view key = text(&key_data).substr(key_offset, key_length);
    const ParameterScope::Found found = scope.find(key);
    if (!found.parameter) return unknown_parameter(scope_name, scope, std::string(key));
    operation.key = found.key;
    operation.parameter = found.parameter;
    operation.path = found.path;
    if (!operation.parameter->trouble.empty())
      return fail(Code::UNIMPLEMENTED, "parameter '{}' cannot be read: {}", operation.key,
                  operation.parameter->trouble);
    operation.parameter_offset = field<uint64_t>(spans, i * kSpanEntrySize);
    operation.buffer_offset = field<uint64_t>(spans, i * kSpanEntrySize + 8);
    operation.length = field<uint64_t>(spans, i * kSpanEntrySize + 16);
    const uint64_t size = operation.parameter->length;
    if (operation.parameter_offset > size || operation.length > size - operation.parameter_offset)
      return fail(Code::OUT_OF_RANGE,
                  "expected a range within the {} bytes of parameter '{}'{}{}, found {} bytes at offset {}",
                  size, operation.key, operation.parameter->type.empty() ? "" : " of type ",
                  operation.parameter->type, operation.length, operation.parameter_offset);
  }
  return operations;
}

bool is_first_part(const Operation& operation) {
  return operation.parameter_offset == 0 && operation.length != 0 &&
         operation.length < operation.parameter->length;
}

// Warns about reads that are valid but probably give wrong numbers: a program that expects another type or
// shape reads only the first part of a parameter. No warning if the same call also reads a later part,
// because such a program intends to read parts.
void warn_of_doubts(State& state, const std::vector<Operation>& operations) {
  if (!state.warn) return;
  std::set<const Parameter*> in_parts;
  if (std::ranges::any_of(operations, is_first_part))
    for (const Operation& operation : operations)
      if (operation.parameter_offset != 0) in_parts.insert(operation.parameter);
  for (const Operation& operation : operations) {
    const Parameter& parameter = *operation.parameter;
    const bool is_part = is_first_part(operation) && !in_parts.contains(&parameter);
    if (!is_part && parameter.other.empty()) continue;
    if (const std::scoped_lock lock(state.warned_mutex); !state.warned.insert(&parameter).second) continue;
    if (!parameter.other.empty())
      state.warn(fmt::format("there is more than one parameter '{}': {}", operation.key, parameter.other),
                 operation.path);
    if (is_part)
      state.warn(
          fmt::format(
              "parameter '{}' has {} bytes{}{}, but the program reads only the first {}; if it expects "
              "another type or shape, its numbers are wrong",
              operation.key, parameter.length, parameter.type.empty() ? "" : " of type ", parameter.type,
              operation.length),
          operation.path);
  }
}

// Submits a group of operations between the fences of a call. The operations are distributed over a few
// lanes. A lane is a chain on one semaphore; lanes run in parallel. The signal fence is reached when all
// lanes are complete, and fails if a lane fails.
class Batch {
 public:
  Batch(hal::Device& device, uint64_t affinity, OptionalFence wait, OptionalFence signal, Budget* memory)
      : device_(device), affinity_(affinity), wait_(wait), signal_(signal), memory_(memory) {}

  Budget* memory() const { return memory_; }

  // Selects the lane of the next group of operations that depend on each other.
  void next_lane() { lane_ = group_++ % kLanes; }

  // Calls submit(point) to append one operation to the lane, optionally with another affinity.
  template <typename Submit>
  auto step(uint64_t affinity, Submit&& submit) -> decltype(submit(std::declval<hal::QueuePoint>())) {
    Lane& lane = lanes_[lane_];
    if (!lane.semaphore)
      lane.semaphore = HALYARD_TRY(hal::Semaphore::create(Ref<hal::Device>::share(&device_), 0, memory_));
    const Ref<hal::Fence> wait = lane.end;
    hal::Timepoints end;
    end.push_back({lane.semaphore, ++lane.value});
    lane.end = HALYARD_TRY(hal::Fence::of(std::move(end), memory_));
    return submit(
        hal::QueuePoint{device_, affinity, wait ? wait.get() : wait_.get(), lane.end.get(), memory_});
  }
  template <typename Submit>
  auto step(Submit&& submit) {
    return step(affinity_, std::forward<Submit>(submit));
  }

  Result<> finish() {
    std::vector<hal::Fence*> ends;
    for (const Lane& lane : lanes_) ends.push_back(lane.end.get());
    const Ref<hal::Fence> done = HALYARD_TRY(hal::Fence::join(ends, memory_));
    return hal::queue_barrier({device_, affinity_, done ? done.get() : wait_.get(), signal_.get(), memory_});
  }

 private:
  static constexpr size_t kLanes = 8;
  struct Lane {
    Ref<hal::Semaphore> semaphore;
    uint64_t value = 0;
    Ref<hal::Fence> end;
  };

  hal::Device& device_;
  uint64_t affinity_;
  OptionalFence wait_;
  OptionalFence signal_;
  Budget* memory_;
  std::array<Lane, kLanes> lanes_;
  size_t group_ = 0;
  size_t lane_ = 0;
};

// The pattern of a splat at `offset`, in its shortest form: 1, 2, 4, 8 or 16 bytes.
std::vector<uint8_t> pattern_at(const Parameter& splat, uint64_t offset) {
  std::vector<uint8_t> pattern = splat.pattern;
  std::ranges::rotate(pattern, pattern.begin() + static_cast<ptrdiff_t>(offset % pattern.size()));
  while (pattern.size() > 1 && std::equal(pattern.begin() + static_cast<ptrdiff_t>(pattern.size() / 2),
                                          pattern.end(), pattern.begin()))
    pattern.resize(pattern.size() / 2);
  return pattern;
}

// Fills target[offset, length) with a splat. If a queue fill does not support the pattern (long or partial)
// or the place (not aligned in the allocation), the bytes are read repeatedly from a block of host memory.
Result<> submit_splat(Batch& batch, const Operation& operation, hal::Buffer& target, uint64_t offset) {
  constexpr uint64_t kBlock = 1 << 20;  // bytes; a multiple of every pattern
  const std::vector<uint8_t> pattern = pattern_at(*operation.parameter, operation.parameter_offset);
  const uint64_t size = pattern.size();
  if (size <= sizeof(uint32_t) && (target.offset() + offset) % size == 0 && operation.length % size == 0) {
    uint32_t value = 0;
    std::memcpy(&value, pattern.data(), size);
    return batch.step([&](const hal::QueuePoint& point) {
      return hal::queue_fill(point, target, offset, operation.length, value, static_cast<uint32_t>(size));
    });
  }
  std::vector<uint8_t> block(std::min(operation.length, kBlock));
  for (size_t i = 0; i < block.size(); ++i) block[i] = pattern[i % size];
  const Ref<Bytes> bytes = Bytes::own(std::move(block));
  const Ref<hal::File> file =
      HALYARD_TRY(hal::File::from_memory({const_cast<uint8_t*>(bytes->data()), bytes->size()}, hal::kRead,
                                         bytes, batch.memory(), bytes->size()));
  for (uint64_t done = 0; done < operation.length;) {
    const uint64_t length = std::min(operation.length - done, kBlock);
    HALYARD_TRY(batch.step([&](const hal::QueuePoint& point) {
      return hal::queue_read(point, *file, 0, target, offset + done, length);
    }));
    done += length;
  }
  return {};
}

// Transfers the range of the parameter to target[offset, length).
Result<> submit_contents(Batch& batch, const Operation& operation, hal::Buffer& target, uint64_t offset) {
  const Parameter& parameter = *operation.parameter;
  if (!parameter.pattern.empty()) return submit_splat(batch, operation, target, offset);
  // The mapped file as a read-only hal.file.
  const Ref<hal::File> file = HALYARD_TRY(
      hal::File::from_memory({const_cast<uint8_t*>(parameter.bytes.data()), parameter.bytes.size()},
                             hal::kRead, parameter.keep, batch.memory()));
  return batch.step([&](const hal::QueuePoint& point) {
    return hal::queue_read(point, *file, operation.parameter_offset, target, offset, operation.length);
  });
}

// Uses the mapped file itself as the buffer, if the program promises not to write to it and the device can
// import it.
Ref<hal::Buffer> import_in_place(hal::Device& device, uint64_t affinity, uint32_t memory_types,
                                 uint32_t usage, const Operation& operation, Budget* memory) {
  const Parameter& parameter = *operation.parameter;
  if (!(usage & HALYARD_USAGE_SHARING_IMMUTABLE) || !parameter.pattern.empty() || operation.length == 0)
    return nullptr;
  auto* bytes = const_cast<uint8_t*>(parameter.bytes.data()) + operation.parameter_offset;
  uint32_t access = hal::kRead;
  if (parameter.keep->is_private()) access |= HALYARD_MAP_PRIVATE;
  return hal::import_host(device, affinity, memory_types, usage, access, bytes, operation.length,
                          parameter.keep, memory, parameter.keep.get())
      .value_or(nullptr);
}

// The target of one context.
struct Target {
  uint64_t affinity;
  uint32_t memory_types;
  uint32_t usage;
};

Result<Ref<vm::List>> load_all(State& state, hal::Device& device, Batch& batch, const vm::Buffer* scope,
                               Target target, const vm::Buffer& key_table, const vm::Buffer& key_data,
                               const vm::Buffer& spans) {
  const ParameterScope* source = HALYARD_TRY(find_scope(state.scopes, text(scope)));
  const Operations call =
      HALYARD_TRY(read_operations(state, text(scope), *source, key_table, key_data, spans));
  const std::vector<Operation>& operations = call.list;
  for (const Operation& operation : operations) {
    if (operation.buffer_offset != 0)
      return fail(Code::OUT_OF_RANGE,
                  "parameter '{}': buffer offset {} given for a buffer that load allocates; expected 0",
                  operation.key, operation.buffer_offset);
  }
  if (operations.size() > UINT32_MAX)
    return fail(Code::RESOURCE_EXHAUSTED, "{} spans in one call; a list has at most {} elements",
                operations.size(), UINT32_MAX);
  warn_of_doubts(state, operations);
  const auto count = static_cast<uint32_t>(operations.size());
  auto list = HALYARD_TRY(
      vm::List::allocate({vm::ValueType::none, &hal::Buffer::kType}, count, count, state.memory.get()));
  HALYARD_TRY(list->resize(count, count));
  std::vector<ParameterPages::Range> in_place;
  for (uint32_t i = 0; i < count; ++i) {
    const Operation& operation = operations[i];
    Ref<hal::Buffer> buffer = import_in_place(device, target.affinity, target.memory_types, target.usage,
                                              operation, state.memory.get());
    if (buffer) {
      const Parameter& parameter = *operation.parameter;
      ParameterPages::add(
          in_place, {parameter.bytes.subspan(operation.parameter_offset, operation.length), parameter.keep});
    } else {
      batch.next_lane();
      const std::string maker =
          device.memory_log() ? fmt::format("parameter '{}'", operation.key) : std::string();
      const hal::MakerScope scope_of_maker(maker);
      buffer = HALYARD_TRY(batch.step(target.affinity, [&](const hal::QueuePoint& point) {
        return hal::queue_alloca(point, 0, target.memory_types, target.usage, operation.length, 0);
      }));
      HALYARD_TRY(submit_contents(batch, operation, *buffer, 0));
    }
    HALYARD_TRY(list->set_ref(i, std::move(buffer)));
  }
  HALYARD_TRY(batch.finish());
  state.pages.prepare(std::move(in_place));
  return list;
}

Result<> gather_all(State& state, Batch& batch, const vm::Buffer* scope, hal::Buffer& target,
                    const vm::Buffer& key_table, const vm::Buffer& key_data, const vm::Buffer& spans) {
  const ParameterScope* source = HALYARD_TRY(find_scope(state.scopes, text(scope)));
  const Operations operations =
      HALYARD_TRY(read_operations(state, text(scope), *source, key_table, key_data, spans));
  for (const Operation& operation : operations.list)
    HALYARD_TRY(with_note(target.check_range(operation.buffer_offset, operation.length),
                          fmt::format("gathering parameter '{}'", operation.key)));
  warn_of_doubts(state, operations.list);
  for (const Operation& operation : operations.list) {
    batch.next_lane();
    HALYARD_TRY(submit_contents(batch, operation, target, operation.buffer_offset));
  }
  return batch.finish();
}

// Files are read-only, so a scatter only reports the parameter that cannot be written.
Result<> scatter_all(const State& state, Batch& batch, hal::Buffer& source, const vm::Buffer* scope,
                     const vm::Buffer& key_table, const vm::Buffer& key_data, const vm::Buffer& spans) {
  const ParameterScope* target = HALYARD_TRY(find_scope(state.scopes, text(scope)));
  const Operations operations =
      HALYARD_TRY(read_operations(state, text(scope), *target, key_table, key_data, spans));
  for (const Operation& operation : operations.list) {
    HALYARD_TRY(with_note(source.check_range(operation.buffer_offset, operation.length),
                          fmt::format("scattering parameter '{}'", operation.key)));
    return fail(Code::PERMISSION_DENIED, "parameter '{}' cannot be written: {}", operation.key,
                operation.parameter->pattern.empty() ? "its file was opened for reading only"
                                                     : "it is a splat, a pattern without storage of its own");
  }
  return batch.finish();
}

// Fails the signal fence with an error, and returns it.
template <typename T>
Result<T> signalled(Result<T> result, OptionalFence signal) {
  if (!result && signal) signal->fail(result.error());
  return result;
}

Result<Ref<vm::List>> load(State& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                           OptionalFence signal, vm::Buffer* scope, uint64_t target_affinity,
                           uint32_t memory_types, uint32_t usage, vm::Buffer& key_table, vm::Buffer& key_data,
                           vm::Buffer& spans) {
  Batch batch(device, affinity, wait, signal, state.memory.get());
  // Transfers write the contents, so this usage is always needed.
  const Target target = {target_affinity, memory_types,
                         (usage ? usage : uint32_t{HALYARD_USAGE_DEFAULT}) | HALYARD_USAGE_TRANSFER_TARGET};
  return signalled(load_all(state, device, batch, scope, target, key_table, key_data, spans), signal);
}

Result<> gather(State& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                OptionalFence signal, vm::Buffer* scope, hal::Buffer& target, vm::Buffer& key_table,
                vm::Buffer& key_data, vm::Buffer& spans) {
  Batch batch(device, affinity, wait, signal, state.memory.get());
  return signalled(gather_all(state, batch, scope, target, key_table, key_data, spans), signal);
}

Result<> scatter(State& state, hal::Device& device, uint64_t affinity, OptionalFence wait,
                 OptionalFence signal, hal::Buffer& source, vm::Buffer* scope, vm::Buffer& key_table,
                 vm::Buffer& key_data, vm::Buffer& spans) {
  Batch batch(device, affinity, wait, signal, state.memory.get());
  return signalled(scatter_all(state, batch, source, scope, key_table, key_data, spans), signal);
}

constexpr vm::NativeExport kExports[] = {
    {"load", "0rIrrrIiirrr_r", vm::bind<&load>},
    {"gather", "0rIrrrrrrr_v", vm::bind<&gather>},
    {"scatter", "0rIrrrrrrr_v", vm::bind<&scatter>},
};
static_assert(std::string_view(vm::convention_of<&load>) == kExports[0].convention);
static_assert(std::string_view(vm::convention_of<&gather>) == kExports[1].convention);
static_assert(std::string_view(vm::convention_of<&scatter>) == kExports[2].convention);

}  // namespace

Ref<vm::NativeModule> create_io_parameters_module(ParameterScopes scopes, Ref<Budget> memory, Ref<Loop> loop,
                                                  ParameterWarning warn) {
  vm::NativeModule::Definition definition;
  definition.name = "io_parameters";
  definition.version = 0;
  definition.exports.assign(std::begin(kExports), std::end(kExports));
  definition.create_state = [scopes = std::move(scopes), memory = std::move(memory), loop = std::move(loop),
                             warn = std::move(warn)]() -> Result<vm::NativeState> {
    return vm::NativeState{new State{.scopes = scopes,
                                     .memory = memory,
                                     .pages = ParameterPages(loop),
                                     .warn = warn,
                                     .warned_mutex = {},
                                     .warned = {}},
                           [](void* state) { delete static_cast<State*>(state); }};
  };
  return vm::NativeModule::create(std::move(definition));
}

}  // namespace halyard::modules
