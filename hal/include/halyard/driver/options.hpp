// Of the kit (halyard/driver.hpp): the options of a device's URI.
#ifndef HALYARD_DRIVER_OPTIONS_HPP_
#define HALYARD_DRIVER_OPTIONS_HPP_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "halyard/driver/failure.hpp"

namespace halyard::kit {

// The key=value pairs of "kind://path?key=value". Query each known key once; finish() then refuses all others
// and lists the known ones. If a key is given more than once, the last value counts.
class Options {
 public:
  explicit Options(const halyard_device_open_args_t& args) : args_(args), used_(args.option_count) {}

  // All values of the option, as written in the URI.
  std::vector<std::string_view> all(std::string_view key) {
    known_.emplace_back(key);
    std::vector<std::string_view> values;
    for (uint32_t i = 0; i < args_.option_count; ++i) {
      if (view(args_.options[i].key) != key) continue;
      used_[i] = true;
      values.push_back(view(args_.options[i].value));
    }
    return values;
  }
  // The option's text; nullopt if it is not given.
  std::optional<std::string_view> text(std::string_view key) {
    const std::vector<std::string_view> values = all(key);
    return values.empty() ? std::nullopt : std::optional(values.back());
  }
  // The option as a number from `least` to `most`.
  Result<uint64_t> number(std::string_view key, uint64_t otherwise, uint64_t least, uint64_t most) {
    const std::optional<std::string_view> given = text(key);
    if (!given) return otherwise;
    uint64_t value = 0;
    const auto [last, error] = std::from_chars(given->data(), given->data() + given->size(), value);
    if (error != std::errc() || last != given->data() + given->size() || value < least || value > most)
      return refusal(key, *given, "a number from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
  }
  // The option as 0 or 1.
  Result<bool> flag(std::string_view key, bool otherwise) {
    const std::optional<std::string_view> given = text(key);
    if (!given) return otherwise;
    if (*given != "0" && *given != "1") return refusal(key, *given, "0 or 1");
    return *given == "1";
  }
  // INVALID_ARGUMENT: the option has none of the expected values.
  Failure refusal(std::string_view key, std::string_view found, std::string_view expected) const {
    return {HALYARD_INVALID_ARGUMENT, "option '" + std::string(key) + "' of '" +
                                          std::string(view(args_.kind)) + "' is '" + std::string(found) +
                                          "'; expected " + std::string(expected)};
  }
  Result<> finish() const {
    for (uint32_t i = 0; i < args_.option_count; ++i) {
      if (used_[i]) continue;
      std::string names;
      for (const std::string& name : known_) names += (names.empty() ? "'" : ", '") + name + "'";
      return Failure{HALYARD_INVALID_ARGUMENT, "unknown option '" + std::string(view(args_.options[i].key)) +
                                                   "'; '" + std::string(view(args_.kind)) +
                                                   "' devices have " + (names.empty() ? "none" : names)};
    }
    return {};
  }

 private:
  const halyard_device_open_args_t& args_;
  std::vector<std::string> known_;
  std::vector<bool> used_;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_OPTIONS_HPP_
