// --input texts to the arguments of a call. Specified by run-module-cli.md, section 3.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

// Arguments whose objects are released at the end.
class Arguments {
 public:
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments(Arguments&&) = default;
  Arguments& operator=(Arguments&&) = default;
  ~Arguments() {
    for (const halyard_value_t& value : values_)
      if (value.kind == HALYARD_VALUE_OBJECT) halyard_release(value.object);
  }
  void add(halyard_value_t value) { values_.push_back(value); }  // takes over its object
  const std::vector<halyard_value_t>& values() const { return values_; }

 private:
  std::vector<halyard_value_t> values_;
};

// `types`: one character of the calling convention per argument. `device` may be null where no argument is a
// view. `flag` is the one that the texts come from: "input", or "expected_output" for results. More texts
// than types: INVALID_ARGUMENT; fewer are left to the call.
Result<Arguments> parse_inputs(const std::vector<std::string>& texts, std::string_view types,
                               halyard_device_t device, std::string_view flag = "input");

// INVALID_ARGUMENT, with what the function takes, unless there is an argument for each type.
Result<> check_inputs(const halyard_function_description_t& function, std::string_view types,
                      const Arguments& arguments);

}  // namespace halyard::tools
