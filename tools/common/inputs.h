// Converts the texts of --input to the arguments of a call. Specified by run-module-cli.md, section 3.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// Arguments of a call.
class Arguments {
 public:
  enum class Origin : uint8_t {
    given,
    array,        // from an npy file, so that the type is described with numpy's types
    placeholder,  // (null) or (ignored): null or 0; as an expected result it matches anything
  };
  void add(Value value, Origin origin = Origin::given) {
    values_.push_back(std::move(value));
    origins_.push_back(origin);
  }
  const std::vector<Value>& values() const { return values_; }
  Origin origin(size_t place) const { return origins_[place]; }

 private:
  std::vector<Value> values_;
  std::vector<Origin> origins_;
};

// Whether the texts are inputs or expected results, for messages.
enum class Described { input, result };

// `types`: one character of the calling convention per argument. `device` may be empty if no argument is
// a view. `flag` is the flag with the texts. INVALID_ARGUMENT: more texts than types. Fewer texts are
// accepted here; the call then fails.
Result<Arguments> parse_inputs(const std::vector<std::string>& texts, std::string_view types,
                               const Device& device, const Flag& flag,
                               Described described = Described::input);

// The arguments from --input or --inputs_from; INVALID_ARGUMENT: both are given.
Result<Arguments> given_inputs(const Flags& flags, std::string_view types, const Device& device);

// INVALID_ARGUMENT: the number of arguments differs from the number of types; the message lists the types.
Result<> check_inputs(const halyard_function_description_t& function, std::string_view types,
                      const Arguments& arguments);

// The .npy files of a folder as texts for parse_inputs, "*FILE" each, sorted by name: input2 before input10.
// NOT_FOUND: no such folder, or it has no .npy file.
Result<std::vector<std::string>> arrays_in(const std::string& folder);

}  // namespace halyard::tools
