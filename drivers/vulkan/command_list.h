// CommandList: a finished recording of the host, translated to Vulkan command buffers. A list without slots
// is translated once. A list with slots is translated for each binding table. A few translations are kept, so
// that a program that uses the same buffers again records nothing.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "recorder.h"
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
  Result<RecordingUse> commands_for(Queue& queue, BindingTable table);
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
  static constexpr size_t kMaxRecordings = 4;
  // The place of a slot. No other memory ever gets the same place.
  struct Place {
    uint64_t chunk = 0;
    uint64_t offset = 0;
    bool operator==(const Place&) const = default;
  };
  struct Recording {
    std::unique_ptr<Recorder> recorder;
    uint32_t family = 0;
    bool is_complete = false;  // has been recorded for `places`
    std::vector<Place> places;
    bool in_use = false;  // in flight
    uint64_t last_use = 0;
  };

  Result<> check();
  Result<> record(Recorder& recorder, BindingTable table) const;
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
  std::vector<Recording> recordings_;
  std::vector<Place> wanted_;  // of the recording that is searched for
  uint64_t clock_ = 0;
};

// Checks of a dispatch that depend on the device. INVALID_ARGUMENT, OUT_OF_RANGE.
Result<> check_dispatch(const Device& device, const halyard_command_dispatch_t& command);

}  // namespace halyard::vulkan

struct halyard_driver_command_list final : halyard::vulkan::CommandList {
  using CommandList::CommandList;
};
