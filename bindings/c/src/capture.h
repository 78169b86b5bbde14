// A capture of the C ABI, and its description as text (capture_text.cpp) or JSON (capture_json.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/object.h"
#include "hal/capture/capture_file.h"

namespace halyard::c {

struct Capture final : ObjectOf<Capture> {
  static const ObjectType kType;
  explicit Capture(hal::CaptureFile file) : file(std::move(file)) {}
  hal::CaptureFile file;
};

// A range of execution numbers; `end` is excluded.
struct Executions {
  size_t begin = 0;
  size_t end = 0;
};

std::string_view outcome_name(hal::CapturedExecution::Outcome outcome);  // "done"
// Whether the execution has changed bytes of the range. The bytes before and after it must have been
// captured.
bool is_changed(const hal::CapturedRange& range);

// RESOURCE_EXHAUSTED: more than 256 MiB.
Result<std::string> capture_text(const hal::CaptureFile& file, Executions executions);
Result<std::string> capture_json(const hal::CaptureFile& file, Executions executions);

}  // namespace halyard::c
