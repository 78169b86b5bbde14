// CommandList: a finished recording of the host, encoded as Vulkan command buffers. A list without slots is
// encoded once. A list with slots is encoded for each binding table. A few command buffers are kept, so that
// a program that uses the same buffers again encodes nothing.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "command_encoder.h"
#include "submission_log.h"

namespace halyard::vulkan {

class CommandList {
 public:
  // See command_list_create in driver.h.
  static Result<std::unique_ptr<halyard_driver_command_list>> create(Device& device,
                                                                     const halyard_command_list_args_t& args);
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  bool computes() const { return computes_; }
  // Commands for one execution on `queue`; return them with release().
  Result<EncodedCommands> commands_for(Queue& queue, BindingTable table);
  void release(size_t index);
  const SubmissionLabel& label() const { return label_; }

  // For create().
  CommandList(Device& device, const halyard_command_list_args_t& args)
      : device_(device),
        commands_(reinterpret_cast<const uint8_t*>(args.commands)),
        size_(args.commands_size),
        slots_(args.binding_count),
        one_shot_(args.one_shot != 0) {}

 private:
  static constexpr size_t kMaxCached = 4;
  // Where the memory of a slot is. No other memory ever gets the same place.
  struct Place {
    uint64_t chunk = 0;
    uint64_t offset = 0;
    bool operator==(const Place&) const = default;
  };
  struct CachedCommands {
    std::unique_ptr<CommandEncoder> encoder;
    uint32_t family = 0;
    bool is_complete = false;  // has been encoded for `places`
    std::vector<Place> places;
    bool in_use = false;  // in flight
    uint64_t last_use = 0;
  };

  Result<> check();
  Result<> encode(CommandEncoder& encoder, BindingTable table) const;
  Result<> places_of(BindingTable table, std::vector<Place>& places) const;
  template <typename Visit>
  Result<> each(Visit visit) const;

  Device& device_;
  const uint8_t* const commands_;
  const uint64_t size_;
  const uint32_t slots_;
  const bool one_shot_;
  bool computes_ = false;
  SubmissionLabel label_;

  std::mutex mutex_;
  std::vector<CachedCommands> cached_;
  std::vector<Place> wanted_;  // by commands_for(); a member, so that its memory is reused
  uint64_t clock_ = 0;
};

// Checks of a dispatch that depend on the device. INVALID_ARGUMENT, OUT_OF_RANGE.
Result<> check_dispatch(const Device& device, const halyard_command_dispatch_t& command);

}  // namespace halyard::vulkan

struct halyard_driver_command_list final : halyard::vulkan::CommandList {
  using CommandList::CommandList;
};
