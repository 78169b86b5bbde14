// Recording: checks every command once, converts it to a struct of the driver ABI, and appends it to one flat
// list. The entries of the binding table are unknown before execution, so their requirements are collected
// for each slot.
#include "hal/command/command_buffer.h"

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstring>
#include <map>

#include "hal/channel/channel.h"
#include "hal/channel/operation.h"
#include "hal/device/sharing.h"
#include "hal/driver/driver_memory.h"
#include "halyard/channel/text.hpp"

namespace halyard::hal {

const ObjectType CommandBuffer::kType = object_type<CommandBuffer>("hal.command_buffer");

namespace {

// The requirements of a command on one of its ranges.
struct Needs {
  uint32_t usage;
  uint32_t access;
  uint32_t alignment = 1;
};

// The host does not know whether a kernel reads or writes a binding, so no access is required.
constexpr Needs kBindingNeeds = {HALYARD_USAGE_STORAGE, 0};
constexpr Needs kCountNeeds = {HALYARD_USAGE_INDIRECT_PARAMETERS, kRead, 4};
constexpr Needs kSourceNeeds = {HALYARD_USAGE_TRANSFER_SOURCE, kRead};
constexpr Needs kTargetNeeds = {HALYARD_USAGE_TRANSFER_TARGET, kWrite};
constexpr uint64_t kCountBytes = 12;
constexpr const char* kCharged = "a command buffer";

std::string category_text(uint32_t categories) {
  switch (categories & (kTransfer | kDispatchCategory)) {
    case kTransfer:
      return "TRANSFER";
    case kDispatchCategory:
      return "DISPATCH";
    case kTransfer | kDispatchCategory:
      return "TRANSFER|DISPATCH";
    default:
      return "NONE";
  }
}

Result<> check_pattern(uint64_t offset, uint64_t length, uint32_t pattern_length) {
  if (pattern_length != 1 && pattern_length != 2 && pattern_length != 4)
    return fail(Code::INVALID_ARGUMENT, "expected a fill pattern of 1, 2 or 4 bytes, found {}",
                pattern_length);
  if (offset % pattern_length != 0 || (length != kWholeLength && length % pattern_length != 0))
    return fail(
        Code::INVALID_ARGUMENT,
        "expected offset and length of a fill in multiples of its pattern of {} bytes, found offset {} "
        "and length {}",
        pattern_length, offset, length);
  return {};
}

bool overlaps(const halyard_range_t& a, const halyard_range_t& b) {
  if (!a.memory || a.memory != b.memory) return false;
  const halyard_range_t& low = a.offset <= b.offset ? a : b;
  const halyard_range_t& high = a.offset <= b.offset ? b : a;
  return high.offset - low.offset < low.length && high.length > 0;
}

}  // namespace

// Steps shared by the recording calls.
struct CommandBuffer::Recorder {
  static Result<> check_state(const CommandBuffer& self, uint32_t category) {
    if (self.state_ != State::recording)
      return fail(
          Code::FAILED_PRECONDITION,
          "expected a command buffer that is being recorded, found a finalized one; record all commands "
          "before finalize");
    if ((self.categories_ & category) != category)
      return fail(Code::FAILED_PRECONDITION,
                  "expected a command buffer with the categories {}, found {}; create it with them",
                  category_text(category), category_text(self.categories_));
    return {};
  }

  // A range of a command.
  struct Use {
    const BufferRange& source;
    const halyard_range_t& range;
    const Needs& needs;
  };
  // The objects and bytes that a command retains.
  struct Keeps {
    std::span<const Use> ranges = {};
    std::array<size_t, 2> stored = {};  // bytes of each array that it stores
    Object* object = nullptr;
  };
  // Records the command that `make` returns, and retains its objects. Memory is charged and allocated first;
  // after that nothing fails. If an allocation fails, nothing is recorded; what is retained or reserved by
  // then stays.
  template <typename Make>
  static Result<> record(CommandBuffer& self, uint32_t kind, const Keeps& keeps, Make&& make) {
    if (self.charge_.has_budget()) [[unlikely]]
      HALYARD_TRY(self.charge_.grow_by(bytes_to_record(self, sizeof(make()), keeps), kCharged));
    if (keeps.object) keep(self, keeps.object);
    for (const Use& each : keeps.ranges) make_room(self, each.source, each.range);
    append(self, kind, make());
    for (const Use& each : keeps.ranges) use(self, each.source, each.range, each.needs);
    return {};
  }

  // Arrays that grow by doubling take up to three times the size of their contents.
  static constexpr uint64_t kGrowing = 3;
  static uint64_t bytes_to_record(const CommandBuffer& self, size_t command_bytes, const Keeps& keeps) {
    uint64_t bytes = kGrowing * command_bytes;
    if (keeps.object) bytes += bytes_to_keep(self, keeps.object);
    for (const Use& each : keeps.ranges) bytes += bytes_to_use(self, each.source, each.range);
    for (const size_t size : keeps.stored) bytes = saturating_add(bytes, bytes_to_store(size));
    return bytes;
  }
  static uint64_t bytes_to_keep(const CommandBuffer& self, Object* object) {
    constexpr uint64_t kNode = block_bytes(2 * sizeof(void*));
    return self.known_resources_.contains(object) ? 0
                                                  : kNode + kGrowing * (sizeof(void*) + sizeof(Ref<Object>));
  }
  static uint64_t bytes_to_use(const CommandBuffer& self, const BufferRange& source,
                               const halyard_range_t& range) {
    const uint64_t kept = source.buffer ? bytes_to_keep(self, &source.buffer->allocation()) : 0;
    if (range.memory || range.slot < self.slots_.size()) return kept;
    return kept + kGrowing * sizeof(SlotNeeds) * (range.slot + size_t{1} - self.slots_.size());
  }
  static uint64_t bytes_to_store(size_t size) {
    return size ? saturating_add(block_bytes(size), kGrowing * sizeof(void*)) : 0;
  }

  static Result<halyard_range_t> resolve(CommandBuffer& self, const BufferRange& range, const Needs& needs) {
    return range.buffer ? resolve_direct(self, range, needs) : resolve_slot(self, range);
  }

  static Result<halyard_range_t> resolve_direct(CommandBuffer& self, const BufferRange& range,
                                                const Needs& needs) {
    const Buffer& buffer = *range.buffer;
    HALYARD_TRY(buffer.check_usage(needs.usage));
    HALYARD_TRY(buffer.check_access(needs.access));
    HALYARD_TRY(buffer.check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE));
    uint64_t length = range.length;
    if (length == kWholeLength && range.offset <= buffer.length()) length = buffer.length() - range.offset;
    HALYARD_TRY(buffer.check_range(range.offset, length));
    const uint64_t offset = buffer.offset() + range.offset;
    if (offset % needs.alignment != 0 || (needs.alignment > 1 && length % needs.alignment != 0))
      return fail(
          Code::INVALID_ARGUMENT,
          "expected offset and length in multiples of {} bytes, found offset {} in a buffer at byte {} of "
          "its allocation and length {}",
          needs.alignment, range.offset, buffer.offset(), length);
    if (!is_foreign(*self.device_, buffer))
      return halyard_range_t{buffer.allocation().memory, 0, 0, offset, length};
    if (sharing(buffer.device(), *self.device_) == Sharing::none)
      return fail(
          Code::INVALID_ARGUMENT,
          "buffer belongs to device '{}', which shares no memory with '{}', for which the command buffer is "
          "recorded; use a buffer of that device, or copy the bytes to one",
          buffer.device().uri(), self.device_->uri());
    const uint32_t slot = HALYARD_TRY(foreign_slot(self, buffer.allocation()));
    return halyard_range_t{nullptr, slot, 0, offset, length};
  }

  // Buffers of other drivers get slots after those of the binding table, because this driver's handle for
  // them may not exist before the list is executed. A new buffer gets its slot here, before the command's
  // other ranges are checked; if the command then fails, the slot stays unused.
  static Result<uint32_t> foreign_slot(CommandBuffer& self, Allocation& allocation) {
    const auto known = std::ranges::find(self.foreign_, &allocation);
    const size_t slot = self.first_foreign_slot() + static_cast<size_t>(known - self.foreign_.begin());
    if (slot == UINT32_MAX)
      return fail(Code::RESOURCE_EXHAUSTED,
                  "the command buffer uses {} buffers of other drivers; expected fewer in one command buffer",
                  self.foreign_.size());
    if (known == self.foreign_.end()) {
      HALYARD_TRY(
          self.charge_.grow_by(bytes_to_keep(self, &allocation) + kGrowing * sizeof(Allocation*), kCharged));
      keep(self, &allocation);
      self.foreign_.push_back(&allocation);
    }
    return static_cast<uint32_t>(slot);
  }

  static Result<halyard_range_t> resolve_slot(const CommandBuffer& self, const BufferRange& range) {
    if (range.slot >= self.binding_capacity_)
      return fail(
          Code::OUT_OF_RANGE,
          "a command uses slot {} of the binding table, but the command buffer has a binding capacity of {}; "
          "create it with a larger one",
          range.slot, self.binding_capacity_);
    if (range.slot >= kMaxSlots)
      return fail(Code::OUT_OF_RANGE, "a command uses slot {} of the binding table; expected one below {}",
                  range.slot, kMaxSlots);
    if (range.length == kWholeLength)
      return fail(
          Code::INVALID_ARGUMENT,
          "length -1 (the rest) recorded for binding table slot {}: the entry's length is not known before "
          "execution; record a length in bytes",
          range.slot);
    if (range.length > UINT64_MAX - range.offset)
      return fail(Code::OUT_OF_RANGE,
                  "range of binding table slot {} ends beyond 64 bits (offset={}, length={})", range.slot,
                  range.offset, range.length);
    return halyard_range_t{nullptr, range.slot, 0, range.offset, range.length};
  }

  // Retains the buffer of a range, or makes room for the requirements of its slot.
  static void make_room(CommandBuffer& self, const BufferRange& source, const halyard_range_t& range) {
    if (source.buffer) keep(self, &source.buffer->allocation());
    if (!range.memory && self.slots_.size() <= range.slot) self.slots_.resize(range.slot + size_t{1});
  }

  // Extends the requirements of the slot of a range.
  static void use(CommandBuffer& self, const BufferRange& source, const halyard_range_t& range,
                  const Needs& needs) noexcept {
    if (range.memory) return;
    if (!source.buffer) self.declared_slots_ = std::max(self.declared_slots_, range.slot + size_t{1});
    SlotNeeds& slot = self.slots_[range.slot];
    slot.used = true;
    slot.extent = std::max(slot.extent, range.offset + range.length);
    slot.usage |= needs.usage;
    slot.access |= needs.access;
    slot.alignment = std::max(slot.alignment, needs.alignment);
  }

  // An object counts as known only once it is retained: if an allocation fails in between, a later command
  // retains it again.
  static void keep(CommandBuffer& self, Object* object) {
    if (self.known_resources_.contains(object)) return;
    self.resources_.push_back(Ref<Object>::share(object));
    self.known_resources_.insert(object);
  }

  // A copy of the bytes with the lifetime of the command buffer; null for no bytes.
  template <typename T>
  static const T* store(CommandBuffer& self, std::span<const T> elements) {
    if (elements.empty()) return nullptr;
    auto bytes = std::make_unique_for_overwrite<uint8_t[]>(elements.size_bytes());
    std::memcpy(bytes.get(), elements.data(), elements.size_bytes());
    self.payloads_.push_back(std::move(bytes));
    return reinterpret_cast<const T*>(self.payloads_.back().get());
  }

  // After this, push_back() does not fail.
  template <typename T>
  static void reserve_one(std::vector<T>& elements) {
    if (elements.size() == elements.capacity()) elements.reserve(std::max<size_t>(4, 2 * elements.size()));
  }

  template <typename T>
  static void append(CommandBuffer& self, uint32_t kind, T command) {
    static_assert(sizeof(T) % sizeof(uint64_t) == 0);
    halyard_command_t header = {sizeof(T), kind};
    std::memcpy(&command, &header, sizeof(header));
    const size_t start = self.words_.size();
    self.words_.resize(start + sizeof(T) / sizeof(uint64_t));
    std::memcpy(&self.words_[start], &command, sizeof(T));
    ++self.command_count_;
  }
};

CommandBuffer::CommandBuffer(Ref<Device> device, uint32_t mode, uint32_t categories, uint64_t affinity,
                             uint32_t binding_capacity)
    : device_(std::move(device)),
      mode_(mode),
      categories_(categories),
      affinity_(affinity),
      binding_capacity_(binding_capacity) {
  if (LiveObjects* live = device_->live()) live->add(kType, 1);
}

CommandBuffer::~CommandBuffer() {
  drop_lists();
  if (LiveObjects* live = device_->live()) live->add(kType, -1);
}

Result<Ref<CommandBuffer>> CommandBuffer::create(Ref<Device> device, uint32_t mode, uint32_t categories,
                                                 uint64_t affinity, uint32_t binding_capacity,
                                                 Budget* memory) {
  if (mode & kAllowInline) {
    if (!(mode & kOneShot))
      return fail(Code::INVALID_ARGUMENT, "expected ONE_SHOT with ALLOW_INLINE_EXECUTION, found mode {:#x}",
                  mode);
    if (binding_capacity > 0)
      return fail(Code::INVALID_ARGUMENT,
                  "expected a binding capacity of 0 with ALLOW_INLINE_EXECUTION, found {}", binding_capacity);
  }
  Ref<CommandBuffer> commands =
      make<CommandBuffer>(std::move(device), mode, categories, affinity, binding_capacity);
  HALYARD_TRY(commands->charge_.start(
      memory, block_bytes(sizeof(CommandBuffer)) + driver_memory::kCommandList, kCharged));
  return commands;
}

Result<> CommandBuffer::barrier(uint32_t source_stages, uint32_t target_stages) {
  HALYARD_TRY(Recorder::check_state(*this, 0));
  return Recorder::record(*this, HALYARD_COMMAND_BARRIER, {},
                          [&] { return halyard_command_barrier_t{{}, source_stages, target_stages}; });
}

Result<> CommandBuffer::begin_debug_group(std::string_view label) {
  HALYARD_TRY(Recorder::check_state(*this, 0));
  HALYARD_TRY(Recorder::record(*this, HALYARD_COMMAND_BEGIN_GROUP, {.stored = {label.size()}}, [&] {
    const char* text = Recorder::store(*this, std::span(label));
    return halyard_command_begin_group_t{{}, {text, label.size()}};
  }));
  ++group_depth_;
  return {};
}

Result<> CommandBuffer::end_debug_group() {
  HALYARD_TRY(Recorder::check_state(*this, 0));
  HALYARD_TRY(Recorder::record(*this, HALYARD_COMMAND_END_GROUP, {}, [] { return halyard_command_t{}; }));
  lowest_group_depth_ = std::min(lowest_group_depth_, --group_depth_);
  return {};
}

// A hint, not passed to drivers.
Result<> CommandBuffer::advise(BufferRange) { return Recorder::check_state(*this, kTransfer); }

Result<> CommandBuffer::fill(BufferRange target, uint64_t pattern, uint32_t pattern_length) {
  if (target.length == 0) return {};
  HALYARD_TRY(Recorder::check_state(*this, kTransfer));
  HALYARD_TRY(check_pattern(target.offset, target.length, pattern_length));
  Needs needs = kTargetNeeds;
  needs.alignment = pattern_length;
  const halyard_range_t range = HALYARD_TRY(Recorder::resolve(*this, target, needs));
  if (range.length == 0) return {};
  const uint64_t mask = (uint64_t{1} << 8 * pattern_length) - 1;
  const Recorder::Use uses[] = {{target, range, needs}};
  return Recorder::record(*this, HALYARD_COMMAND_FILL, {.ranges = uses}, [&] {
    return halyard_command_fill_t{{}, range, static_cast<uint32_t>(pattern & mask), pattern_length};
  });
}

Result<> CommandBuffer::update(BufferRange target, std::span<const uint8_t> source) {
  HALYARD_TRY(Recorder::check_state(*this, kTransfer));
  target.length = source.size();
  const halyard_range_t range = HALYARD_TRY(Recorder::resolve(*this, target, kTargetNeeds));
  if (range.length == 0) return {};
  const Recorder::Use uses[] = {{target, range, kTargetNeeds}};
  return Recorder::record(*this, HALYARD_COMMAND_UPDATE, {.ranges = uses, .stored = {source.size()}}, [&] {
    return halyard_command_update_t{{}, Recorder::store(*this, source), range};
  });
}

Result<> CommandBuffer::copy(BufferRange source, BufferRange target) {
  if (source.length == 0 && target.length == 0) return {};
  HALYARD_TRY(Recorder::check_state(*this, kTransfer));
  const halyard_range_t from =
      HALYARD_TRY(with_note(Recorder::resolve(*this, source, kSourceNeeds), "copy source"));
  const halyard_range_t to =
      HALYARD_TRY(with_note(Recorder::resolve(*this, target, kTargetNeeds), "copy target"));
  if (from.length != to.length)
    return halyard::fail(Code::INVALID_ARGUMENT,
                         "copy of {} bytes to a range of {} bytes; expected the same length", from.length,
                         to.length);
  if (overlaps(from, to))
    return halyard::fail(
        Code::INVALID_ARGUMENT,
        "expected a copy whose source and target do not overlap, found [{}, +{}) and [{}, +{}) of one "
        "allocation; copy through another buffer",
        from.offset, from.length, to.offset, to.length);
  if (from.length == 0) return {};
  const Recorder::Use uses[] = {{source, from, kSourceNeeds}, {target, to, kTargetNeeds}};
  return Recorder::record(*this, HALYARD_COMMAND_COPY, {.ranges = uses},
                          [&] { return halyard_command_copy_t{{}, from, to}; });
}

Result<> CommandBuffer::dispatch(const Dispatch& dispatch) {
  HALYARD_TRY(Recorder::check_state(*this, kDispatchCategory));
  const auto& [x, y, z] = dispatch.workgroups;
  if (!dispatch.indirect && (x == 0 || y == 0 || z == 0)) return {};

  if (dispatch.bindings.size() > kMaxBindings)
    return halyard::fail(Code::OUT_OF_RANGE, "expected at most {} bindings, found {}", kMaxBindings,
                         dispatch.bindings.size());
  if (dispatch.indirect && dispatch.indirect->offset % kCountNeeds.alignment != 0)
    return halyard::fail(Code::INVALID_ARGUMENT,
                         "expected workgroup counts at an offset in multiples of {} bytes, found offset {}",
                         kCountNeeds.alignment, dispatch.indirect->offset);
  Executable& executable = *dispatch.executable;
  if (&executable.device() != device_.get())
    return halyard::fail(
        Code::INVALID_ARGUMENT,
        "executable was created for device '{}', but the command buffer is recorded for '{}'; create "
        "it for that device",
        executable.device().uri(), device_->uri());
  HALYARD_TRY(
      executable.check_dispatch(dispatch.function, dispatch.constants.size(), dispatch.bindings.size()));

  halyard_command_dispatch_t command = {};
  BufferRange counts;
  if (dispatch.indirect) {
    counts = *dispatch.indirect;
    counts.length = kCountBytes;
    command.flags = HALYARD_DISPATCH_INDIRECT;
    command.indirect =
        HALYARD_TRY(with_note(Recorder::resolve(*this, counts, kCountNeeds), "workgroup counts"));
  }
  halyard_range_t bindings[kMaxBindings];
  boost::container::small_vector<Recorder::Use, 8> uses;
  if (dispatch.indirect) uses.push_back({counts, command.indirect, kCountNeeds});
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    Result<halyard_range_t> range = Recorder::resolve(*this, dispatch.bindings[i], kBindingNeeds);
    if (!range) return std::unexpected(std::move(range.error()).note(fmt::format("binding[{}]", i)));
    bindings[i] = *range;
    uses.push_back({dispatch.bindings[i], bindings[i], kBindingNeeds});
  }
  command.executable = executable.handle();
  command.function = static_cast<uint32_t>(dispatch.function);
  std::ranges::copy(dispatch.workgroups, command.workgroups);
  command.constant_count = static_cast<uint32_t>(dispatch.constants.size());
  command.binding_count = static_cast<uint32_t>(dispatch.bindings.size());
  const std::span<const halyard_range_t> ranges(bindings, dispatch.bindings.size());
  return Recorder::record(*this, HALYARD_COMMAND_DISPATCH,
                          {.ranges = uses,
                           .stored = {dispatch.constants.size_bytes(), ranges.size_bytes()},
                           .object = &executable},
                          [&] {
                            command.constants = Recorder::store(*this, dispatch.constants);
                            command.bindings = Recorder::store(*this, ranges);
                            return command;
                          });
}

Result<> CommandBuffer::collective(const Collective& collective) {
  HALYARD_TRY(Recorder::check_state(*this, kDispatchCategory));
  Channel* const target = collective.channel;
  const Place place = HALYARD_TRY(target->place(nullptr));
  RecordedCollective recorded = {};
  recorded.channel = target;
  recorded.collective =
      HALYARD_TRY(unpack(collective.operation, collective.parameter, collective.element_count, place));
  const uint32_t alignment = channel::element_size(recorded.collective.element);
  BufferRange send = collective.send;
  BufferRange receive = collective.receive;
  for (BufferRange* range : {&send, &receive})
    if (range->buffer && range->length == kWholeLength && range->offset <= range->buffer->length())
      range->length = range->buffer->length() - range->offset;
  const CollectiveSizes sizes =
      HALYARD_TRY(sizes_of(recorded.collective, place, send.length, receive.length));

  boost::container::small_vector<Recorder::Use, 2> uses;
  const Needs send_needs = {0, kRead, alignment};
  const Needs receive_needs = {0, kWrite, alignment};
  const auto resolve = [&](const char* what, BufferRange& range, uint64_t size, const Needs& needs,
                           halyard_range_t& to) -> Result<> {
    if (size == 0) return {};
    if (!range.buffer && binding_capacity_ == 0)
      return halyard::fail(Code::INVALID_ARGUMENT, "expected a buffer of {} bytes to {}, found none", size,
                           what);
    if (range.length < size)
      return halyard::fail(Code::INVALID_ARGUMENT, "expected at least {} bytes to {}, found a range of {}",
                           size, what, range.length);
    range.length = size;
    to = HALYARD_TRY(with_note(Recorder::resolve(*this, range, needs), what));
    uses.push_back({range, to, needs});
    return {};
  };
  const std::string text = channel::text_of(recorded.collective);
  HALYARD_TRY(with_note(resolve("send", send, sizes.send, send_needs, recorded.send), text));
  HALYARD_TRY(with_note(resolve("receive", receive, sizes.receive, receive_needs, recorded.receive), text));
  if (recorded.send.memory && recorded.send.memory == recorded.receive.memory)
    HALYARD_TRY(
        check_overlap(recorded.collective, place, sizes, recorded.send.offset, recorded.receive.offset));
  if (send.buffer) recorded.send_buffer = &send.buffer->allocation();
  if (receive.buffer) recorded.receive_buffer = &receive.buffer->allocation();
  Recorder::reserve_one(collectives_);  // a recorded command must have its entry
  HALYARD_TRY(Recorder::record(*this, HALYARD_COMMAND_COLLECTIVE,
                               {.ranges = uses, .stored = {sizeof(RecordedCollective)}, .object = target},
                               [&] {
                                 return halyard_command_collective_t{{},
                                                                     target,
                                                                     collective.operation,
                                                                     collective.parameter,
                                                                     recorded.send,
                                                                     recorded.receive,
                                                                     collective.element_count};
                               }));
  collectives_.push_back(recorded);
  return {};
}

Result<> CommandBuffer::finalize() {
  HALYARD_TRY(Recorder::check_state(*this, 0));
  if (const int64_t depth = group_depth_ != 0 ? group_depth_ : lowest_group_depth_; depth != 0)
    return halyard::fail(Code::FAILED_PRECONDITION,
                         "expected as many ends of debug groups as begins, found depth {} at finalize",
                         depth);
  // If this attempt fails, the next one begins anew.
  struct Attempt {
    CommandBuffer& self;
    const uint64_t charged = self.charge_.bytes();
    ~Attempt() {
      if (self.state_ == State::ready) return;
      self.drop_lists();
      self.charge_.shrink_to(charged);
    }
  } const attempt{*this};
  HALYARD_TRY(make_lists());
  if (device_->trace()) [[unlikely]]
    number_commands();
  known_resources_ = {};
  state_ = State::ready;
  return {};
}

Result<> CommandBuffer::make_lists() {
  // An estimate of the driver's copy.
  HALYARD_TRY(charge_.grow_by(words_.size() * sizeof(uint64_t), kCharged));
  words_.shrink_to_fit();
  if (!collectives_.empty()) return split();
  list_ = HALYARD_TRY(make_list(words_, command_count_));
  return {};
}

void CommandBuffer::drop_lists() noexcept {
  const auto drop = [this](halyard_driver_command_list_t list) {
    if (list) device_->table().command_list_destroy(device_->handle(), list);
  };
  drop(std::exchange(list_, nullptr));
  for (const Piece& piece : pieces_) drop(piece.list);
  pieces_.clear();
  numbers_.clear();
}

Result<halyard_driver_command_list_t> CommandBuffer::make_list(std::span<const uint64_t> words,
                                                               uint32_t command_count) {
  halyard_command_list_args_t args = {};
  args.struct_size = sizeof(args);
  args.one_shot = mode_ & kOneShot;
  args.affinity = device_->queues(affinity_);
  args.commands = reinterpret_cast<const halyard_command_t*>(words.data());
  args.commands_size = words.size_bytes();
  args.command_count = command_count;
  args.binding_count = static_cast<uint32_t>(slots_.size());
  halyard_driver_command_list_t list = nullptr;
  if (halyard_status_t status = device_->table().command_list_create(device_->handle(), &args, &list))
    return std::unexpected(Status::adopt(status).note("finalizing a command buffer"));
  HALYARD_TRY(device_->check_given(list, "command_list_create"));
  return list;
}

Result<> CommandBuffer::check_finalized() const {
  if (state_ != State::ready)
    return halyard::fail(
        Code::FAILED_PRECONDITION,
        "expected a finalized command buffer, found one that is being recorded; finalize it before it is "
        "executed");
  return {};
}

Result<Reservation> CommandBuffer::begin_execution() {
  if (!(mode_ & kOneShot)) return Reservation();
  if (submitted_.exchange(true, std::memory_order_relaxed))
    return halyard::fail(
        Code::FAILED_PRECONDITION,
        "one-shot command buffer was executed before; record another one, or create it without "
        "ONE_SHOT (mode bit 1)");
  return Reservation(*this, [](Object& self) noexcept {
    static_cast<CommandBuffer&>(self).submitted_.store(false, std::memory_order_relaxed);
  });
}

// The pieces of a recording with collectives are copies without these and with other barriers and groups; all
// other commands keep their order.
void CommandBuffer::number_commands() {
  std::map<halyard_driver_executable_t, const Executable*> executables;
  for (const Ref<Object>& resource : resources_)
    if (const auto* const executable = cast<Executable>(resource.get()))
      executables.emplace(executable->handle(), executable);
  const auto add = [&](uintptr_t address, uint32_t position) {
    NumberedCommand& command = numbers_.emplace_back(NumberedCommand{address, position});
    const auto* const header = reinterpret_cast<const halyard_command_t*>(address);
    if (header->kind != HALYARD_COMMAND_DISPATCH) return;
    const auto* const dispatch = reinterpret_cast<const halyard_command_dispatch_t*>(header);
    command.source = executables.at(dispatch->executable)->functions()[dispatch->function].source;
  };
  const auto visit = [](std::span<const uint64_t> words, auto&& command) {
    for (size_t word = 0; word < words.size();) {
      halyard_command_t header;
      std::memcpy(&header, &words[word], sizeof header);
      command(reinterpret_cast<uintptr_t>(&words[word]), header.kind);
      word += header.size / sizeof(uint64_t);
    }
  };
  const auto is_work = [](uint32_t kind) {
    return kind == HALYARD_COMMAND_FILL || kind == HALYARD_COMMAND_UPDATE || kind == HALYARD_COMMAND_COPY ||
           kind == HALYARD_COMMAND_DISPATCH;
  };
  uint32_t position = 0;
  std::vector<uint32_t> work;  // positions
  visit(words_, [&](uintptr_t address, uint32_t kind) {
    if (is_work(kind)) {
      work.push_back(position);
      if (pieces_.empty()) add(address, position);
    }
    ++position;
  });
  size_t next = 0;
  for (const Piece& piece : pieces_)
    visit(piece.words, [&](uintptr_t address, uint32_t kind) {
      if (is_work(kind)) add(address, work[next++]);
    });
  std::ranges::sort(numbers_, {}, &NumberedCommand::address);
}

CommandPlace CommandBuffer::place_at(const void* command) const noexcept {
  const auto address = reinterpret_cast<uintptr_t>(command);
  const auto found = std::ranges::lower_bound(numbers_, address, {}, &NumberedCommand::address);
  if (found == numbers_.end() || found->address != address) return {};
  return {uint64_t{found->position} + 1, place_of(found->position), found->source};
}

CommandBuffer::RecordingPlace::RecordingPlace(CommandBuffer& commands, std::string place)
    : commands_(commands) {
  commands.places_.resize(commands.command_count_ + size_t{1});
  commands.places_.back() = std::move(place);
}

CommandBuffer::RecordingPlace::~RecordingPlace() {
  std::vector<std::string>& places = commands_.places_;
  if (places.size() > commands_.command_count_) places.pop_back();  // nothing was recorded
}

std::string_view CommandBuffer::place_of(size_t command) const {
  return command < places_.size() ? std::string_view(places_[command]) : std::string_view();
}

}  // namespace halyard::hal
