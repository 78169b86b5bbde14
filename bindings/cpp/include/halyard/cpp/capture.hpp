// Captures of executed command buffers, and their replay (docs/captures.md).
#ifndef HALYARD_CPP_CAPTURE_HPP_
#define HALYARD_CPP_CAPTURE_HPP_

#include <cstdint>
#include <string>

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
  // Runs one execution and compares the results. Blocks.
  Result<halyard_replay_result_t> execute(uint64_t number) const {
    auto result = detail::sized<halyard_replay_result_t>();
    return detail::finish(halyard_replay_execute(get(), number, &result), [&] { return result; });
  }
};

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_CAPTURE_HPP_
