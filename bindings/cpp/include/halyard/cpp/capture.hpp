// Captures of executed command buffers, and their replay (docs/captures.md).
#ifndef HALYARD_CPP_CAPTURE_HPP_
#define HALYARD_CPP_CAPTURE_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "halyard/cpp/instance.hpp"

namespace halyard::inline HALYARD_CPP_FORM {

// A file written by a context with a capture_path. Immutable; any thread.
class Capture : public Handle<halyard_capture_t> {
 public:
  using Handle::Handle;

  // `flags` is HALYARD_CAPTURE_*.
  static Result<Capture> open(CString path, uint32_t flags = 0) {
    halyard_capture_t made = nullptr;
    return detail::finish(halyard_capture_open(path.get(), flags, &made),
                          [&] { return Capture(adopt, made); });
  }
  Result<halyard_capture_info_t> info() const {
    auto info = detail::sized<halyard_capture_info_t>();
    return detail::finish(halyard_capture_info(get(), &info), [&] { return info; });
  }
  // An execution by its number, from 0. OUT_OF_RANGE: no such number.
  Result<halyard_captured_execution_t> execution(uint64_t number) const {
    auto execution = detail::sized<halyard_captured_execution_t>();
    return detail::finish(halyard_capture_execution(get(), number, &execution), [&] { return execution; });
  }
  // Describes one execution, or HALYARD_EVERY_EXECUTION. `form` is HALYARD_DESCRIBE_*.
  Result<std::string> describe(uint64_t number = HALYARD_EVERY_EXECUTION,
                               uint32_t form = HALYARD_DESCRIBE_TEXT) const {
    char* text = nullptr;
    size_t size = 0;
    return detail::finish(halyard_capture_describe(get(), number, form, &text, &size),
                          [&] { return detail::take_text(text, size); });
  }
  // Copies bytes of a captured buffer, from before an execution or from after it. OUT_OF_RANGE: the capture
  // does not have them.
  Result<void> read(uint64_t number, uint32_t buffer, uint64_t offset, bool after,
                    std::span<std::byte> target) const {
    return detail::finish(
        halyard_capture_read(get(), number, buffer, offset, after, target.data(), target.size()));
  }
};

// Code to execute instead of that of a captured executable.
struct ReplayExecutable {
  uint64_t number = 0;  // of the captured executable, from 0
  std::string format;
  std::vector<std::byte> data;
};

struct ReplayOptions {
  std::vector<ReplayExecutable> executables{};
  // Gets each step, as with HALYARD_CONTEXT_TRACE_STEPS.
  std::function<Result<void>(const halyard_traced_tensor_t& tensor)> tensor{};
};

// A capture on a device, only for trusted captures. One thread at a time.
class Replay : public Handle<halyard_replay_t> {
 public:
  using Handle::Handle;

  static Result<Replay> create(const Capture& capture, const Device& device) {
    halyard_replay_t made = nullptr;
    return detail::finish(halyard_replay_create(capture.get(), device.get(), &made),
                          [&] { return Replay(adopt, made); });
  }
  // OUT_OF_RANGE: no such executable.
  static Result<Replay> create(const Capture& capture, const Device& device, ReplayOptions options) {
    std::vector<halyard_replay_executable_t> executables;
    for (const ReplayExecutable& each : options.executables)
      executables.push_back(
          {each.number, {each.format.data(), each.format.size()}, each.data.data(), each.data.size()});
    const auto tensor = std::make_shared<decltype(ReplayOptions::tensor)>(std::move(options.tensor));
    auto given = detail::sized<halyard_replay_options_t>();
    given.executables = executables.data();
    given.executable_count = executables.size();
    if (*tensor) {
      given.tensor = [](void* of, const halyard_traced_tensor_t* traced) noexcept {
        return detail::status_of(
            [&] { return (*static_cast<decltype(ReplayOptions::tensor)*>(of))(*traced); });
      };
      given.tensor_user = tensor.get();
    }
    halyard_replay_t made = nullptr;
    return detail::finish(halyard_replay_create_with(capture.get(), device.get(), &given, &made), [&] {
      Replay replay(adopt, made);
      replay.tensor_ = tensor;
      return replay;
    });
  }
  // Runs one execution and compares the results. Blocks.
  Result<halyard_replay_result_t> execute(uint64_t number) const {
    auto result = detail::sized<halyard_replay_result_t>();
    return detail::finish(halyard_replay_execute(get(), number, &result), [&] { return result; });
  }
  // The same for the commands up to `command`.
  Result<halyard_replay_result_t> execute_to(uint64_t number, uint64_t command) const {
    auto result = detail::sized<halyard_replay_result_t>();
    return detail::finish(halyard_replay_execute_to(get(), number, command, &result), [&] { return result; });
  }
  // Executes one command, or HALYARD_EVERY_COMMAND, repeatedly, and measures it. Blocks.
  Result<halyard_replay_times_t> measure(uint64_t number, uint64_t command,
                                         std::chrono::nanoseconds at_least) const {
    auto times = detail::sized<halyard_replay_times_t>();
    const auto duration = static_cast<uint64_t>(at_least.count() > 0 ? at_least.count() : 0);
    return detail::finish(halyard_replay_measure(get(), number, command, duration, &times),
                          [&] { return times; });
  }
  // Writes a capture of one command, with the inputs that the commands before it compute.
  Result<void> cut(uint64_t number, uint64_t command, CString path) const {
    return detail::finish(halyard_replay_cut(get(), number, command, path.get()));
  }

 private:
  std::shared_ptr<std::function<Result<void>(const halyard_traced_tensor_t&)>> tensor_;
};

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_CAPTURE_HPP_
