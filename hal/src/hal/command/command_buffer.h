// CommandBuffer: records commands into a validated flat list, which is passed to the driver once. Specified
// by hal-semantics.md, "Recording and executing command buffers", and hal-module.md, "Recording rules". One
// thread may record. Immutable after finalize().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/device/executable.h"
#include "hal/device/reservation.h"
#include "hal/trace/device_trace.h"
#include "halyard/channel.h"

namespace halyard::hal {

class Channel;  // hal/channel/channel.h

// A range as a program gives it: of a buffer or, if `buffer` is null, of a slot of the binding table.
struct BufferRange {
  Buffer* buffer = nullptr;
  uint32_t slot = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Requirements on an entry of the binding table, collected while recording.
struct SlotNeeds {
  bool used = false;
  uint64_t extent = 0;  // bytes from the entry's start that commands touch
  uint32_t usage = 0;
  uint32_t access = 0;
  uint32_t alignment = 1;  // of the entry's first byte; recorded offsets are multiples of it
};

struct CommandList;  // hal/command/command_list.h

inline constexpr size_t kMaxBindings = 32;
inline constexpr uint32_t kMaxSlots = 1u << 16;  // the maximum length of a program's binding table

class CommandBuffer final : public ObjectOf<CommandBuffer>, public TracedCommands {
 public:
  static const ObjectType kType;  // "hal.command_buffer"

  // INVALID_ARGUMENT: ALLOW_INLINE without ONE_SHOT or with slots. UNVALIDATED and UNRETAINED have no effect:
  // programs are untrusted, so commands are always validated and buffers retained. `memory` (may be null) is
  // charged for the object and the recorded commands: RESOURCE_EXHAUSTED, here and below.
  static Result<Ref<CommandBuffer>> create(Ref<Device> device, uint32_t mode, uint32_t categories,
                                           uint64_t affinity, uint32_t binding_capacity,
                                           Budget* memory = nullptr);

  // Recording. FAILED_PRECONDITION: already finalized, or outside the categories. Further errors: see
  // hal-module.md. A failed call records nothing. Length kWholeLength means the rest of a direct buffer;
  // INVALID_ARGUMENT for a slot. Commands with a zero length or zero workgroup count are neither recorded nor
  // checked.
  Result<> barrier(uint32_t source_stages, uint32_t target_stages);
  Result<> begin_debug_group(std::string_view label);
  Result<> end_debug_group();
  Result<> advise(BufferRange range);
  Result<> fill(BufferRange target, uint64_t pattern, uint32_t pattern_length);
  Result<> update(BufferRange target,
                  std::span<const uint8_t> source);  // copied; the target has the same length
  Result<> copy(BufferRange source, BufferRange target);
  struct Dispatch {
    Executable* executable = nullptr;
    uint64_t function = 0;
    uint32_t workgroups[3] = {};
    std::span<const uint32_t> constants;
    std::span<const BufferRange> bindings;
    const BufferRange* indirect = nullptr;  // the counts, 12 bytes (its length is ignored); null: direct
  };
  Result<> dispatch(const Dispatch& dispatch);
  // Blocks until the ranks of a split channel are known. A range that the kind does not use on this rank is
  // ignored; a range may be longer than needed.
  struct Collective {
    Channel* channel = nullptr;
    uint32_t operation = 0;  // packed kind, reduction, element
    uint32_t parameter = 0;
    BufferRange send;
    BufferRange receive;
    uint64_t element_count = 0;
  };
  Result<> collective(const Collective& collective);
  // Passes the list to the driver. FAILED_PRECONDITION: not recording, or a debug group is open. A failed
  // call can be repeated.
  Result<> finalize();

  // FAILED_PRECONDITION: the list is still being recorded.
  Result<> check_finalized() const;
  // Reserves an execution of the finalized list, until the work is refused. FAILED_PRECONDITION: a second
  // execution of a ONE_SHOT list.
  Result<Reservation> begin_execution();

  enum class State : uint8_t { recording, ready };
  State state() const { return state_; }
  Device& device() const { return *device_; }
  uint32_t mode() const { return mode_; }
  uint32_t command_count() const { return command_count_; }
  halyard_driver_command_list_t handle() const { return list_; }  // after finalize; null with collectives
  std::span<const SlotNeeds> slots() const { return slots_; }     // up to the highest used slot
  // The number of slots of the binding table that commands use. Slots from first_foreign_slot() on are for
  // memory of other drivers (hal/device/sharing.h). The capacity is any number that the program gives, but no
  // slot of the table is kMaxSlots or higher.
  size_t declared_slots() const { return declared_slots_; }
  uint32_t first_foreign_slot() const { return std::min(binding_capacity_, kMaxSlots); }
  Allocation& foreign(size_t slot) const { return *foreign_[slot - first_foreign_slot()]; }
  // A collective, which the host executes (hal/queue/collective.h).
  struct RecordedCollective {
    Channel* channel;
    halyard_collective_t collective;  // without pointers, number and callback
    halyard_range_t send;             // length 0: not used
    halyard_range_t receive;
    Allocation* send_buffer;  // null: the range is in a slot
    Allocation* receive_buffer;
  };
  std::span<const RecordedCollective> collectives() const { return collectives_; }
  // A recording with collectives is executed piece by piece. A piece is a list of the driver or, if `list` is
  // null, collectives that begin together.
  struct Piece {
    halyard_driver_command_list_t list = nullptr;
    uint32_t first_collective = 0;
    uint32_t collective_count = 0;
    std::vector<uint64_t> words;  // the source of `list`
  };
  std::span<const Piece> pieces() const { return pieces_; }
  // The recorded commands, borrowed from this command buffer.
  CommandList list() const;
  // One readable line for each command.
  std::string text() const;

  // The place in the program of the command that is recorded while this exists. It is kept before the command
  // is recorded, because afterwards nothing may fail.
  class RecordingPlace {
   public:
    RecordingPlace(CommandBuffer& commands, std::string place);
    RecordingPlace(const RecordingPlace&) = delete;
    RecordingPlace& operator=(const RecordingPlace&) = delete;
    ~RecordingPlace();

   private:
    CommandBuffer& commands_;
  };
  // The place in the program that recorded a command, for reports; empty if it was not set.
  std::string_view place_of(size_t command) const;
  CommandPlace place_at(const void* command) const noexcept override;

  CommandBuffer(Ref<Device> device, uint32_t mode, uint32_t categories, uint64_t affinity,
                uint32_t binding_capacity);
  ~CommandBuffer();

 private:
  struct Recorder;  // helpers, in command_buffer.cpp
  struct Lister;    // defined in command_list.cpp
  void number_commands();
  Result<> make_lists();
  void drop_lists() noexcept;
  Result<> split();  // precondition: collectives_ is not empty
  Result<halyard_driver_command_list_t> make_list(std::span<const uint64_t> words, uint32_t command_count);

  Ref<Device> device_;
  uint32_t mode_;
  uint32_t categories_;
  uint64_t affinity_;
  uint32_t binding_capacity_;
  State state_ = State::recording;
  std::atomic<bool> submitted_{false};
  uint32_t command_count_ = 0;
  int64_t group_depth_ = 0;
  int64_t lowest_group_depth_ = 0;
  std::vector<uint64_t> words_;                       // the flat list
  std::vector<std::unique_ptr<uint8_t[]>> payloads_;  // constants, bindings, update bytes, labels
  std::vector<Ref<Object>> resources_;                // retained
  std::unordered_set<Object*> known_resources_;       // only while recording
  std::vector<SlotNeeds> slots_;
  size_t declared_slots_ = 0;
  std::vector<Allocation*> foreign_;  // subset of the resources: memory of other drivers
  halyard_driver_command_list_t list_ = nullptr;
  std::vector<RecordedCollective> collectives_;
  std::vector<Piece> pieces_;
  std::vector<std::string> places_;  // may be shorter than the list
  // For traces: a command as drivers see it. The source is that of a dispatch's function.
  struct NumberedCommand {
    uintptr_t address = 0;
    uint32_t position = 0;  // in the list
    std::string_view source = {};
  };
  std::vector<NumberedCommand> numbers_;  // by address
  Charge charge_;
};

}  // namespace halyard::hal
