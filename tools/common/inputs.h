// Makes the arguments of a call from the texts of --input. Specified by run-module-cli.md, section 3.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// Arguments; it owns their objects.
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
  // Takes over its object. `is_array`: an npy file says what it is, in numpy's types.
  void add(halyard_value_t value, bool is_array = false) {
    values_.push_back(value);
    is_array_.push_back(is_array);
  }
  const std::vector<halyard_value_t>& values() const { return values_; }
  bool is_array(size_t place) const { return is_array_[place]; }

 private:
  std::vector<halyard_value_t> values_;
  std::vector<bool> is_array_;
};

// What the texts describe, for messages.
enum class Described { input, result };

// `types`: one character of the calling convention per argument. `device` may be null if no argument is a
// view. `flag` is the one that the texts come from. More texts than types: INVALID_ARGUMENT; if there are
// fewer, the call fails.
Result<Arguments> parse_inputs(const std::vector<std::string>& texts, std::string_view types,
                               halyard_device_t device, const Flag& flag,
                               Described described = Described::input);

// INVALID_ARGUMENT, saying what the function takes, unless there is an argument for each type.
Result<> check_inputs(const halyard_function_description_t& function, std::string_view types,
                      const Arguments& arguments);

// The .npy files of a folder as texts for parse_inputs, "*FILE" each, sorted by their names: input2 before
// input10. NOT_FOUND: there is no folder, or no such file in it.
Result<std::vector<std::string>> arrays_in(const std::string& folder);

}  // namespace halyard::tools
