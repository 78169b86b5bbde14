// Results as JSON, for scripts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/failure.h"
#include "common/json.h"

namespace halyard::tools {

// {"function": NAME, "results": [...]}. A number is {"type": "i32", "value": 5}. A tensor is {"type":
// "hal.buffer_view", "element_type": "f32", "shape": [2, 2], "elements": [1, 2, 3, 4]}, with exact elements
// in row-major order. "elements_left_out" is the number of elements after the first `max_elements`. Elements
// for which JSON has no number (NaN, infinities, complex and opaque elements) are strings, in the form that
// vm-run prints without --json. `profile` is a member of its own, unless it is null.
Result<std::string> results_json(std::string_view function, std::span<const Value> results,
                                 uint64_t max_elements, const Json& profile);

}  // namespace halyard::tools
