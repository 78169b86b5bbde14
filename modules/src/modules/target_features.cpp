// Finds targets in bytes, and queries a device for their features.
#include "modules/target_features.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "vm/module/bytecode_module.h"

namespace halyard::modules {

namespace {

constexpr std::string_view kTarget = "#hal.executable.target<";
constexpr std::string_view kFeatures = "cpu_features = ";
constexpr std::string_view kSubgroupSizes = "subgroup_size_choices = [";

struct Target {
  std::string format;
  std::string_view features;  // "+avx,-xop"
  std::vector<uint32_t> subgroup_sizes;
};

// Parses the text of a target; every step fails on unexpected text.
class TargetReader {
 public:
  explicit TargetReader(std::string_view text) : text_(text) {}

  std::optional<Target> read() {
    Target target;
    if (!quoted()) return std::nullopt;  // the compiler's name of the backend
    if (!take(", ")) return take(">") ? std::optional(target) : std::nullopt;
    const std::optional<std::string_view> format = quoted();
    if (!format) return std::nullopt;
    target.format = *format;
    if (take(", ") && !attributes(target)) return std::nullopt;
    return take(">") ? std::optional(target) : std::nullopt;
  }

 private:
  bool take(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }

  std::optional<std::string_view> quoted() {
    if (!take("\"")) return std::nullopt;
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == '"') {
        const std::string_view inside = text_.substr(0, i);
        text_.remove_prefix(i + 1);
        return inside;
      }
    }
    return std::nullopt;
  }

  // 32, 64]
  std::optional<std::vector<uint32_t>> numbers() {
    std::vector<uint32_t> found;
    do {
      uint32_t number = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (error != std::errc() || number == 0) return std::nullopt;
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      found.push_back(number);
    } while (take(", "));
    return take("]") ? std::optional(found) : std::nullopt;
  }

  // {key = value, ...}; values may contain braces and texts.
  bool attributes(Target& target) {
    if (!take("{")) return false;
    bool at_key = true;
    for (int depth = 1; depth > 0;) {
      if (at_key && depth == 1 && take(kFeatures)) {
        const std::optional<std::string_view> features = quoted();
        if (!features) return false;
        target.features = *features;
      }
      if (at_key && take(kSubgroupSizes)) {
        std::optional<std::vector<uint32_t>> sizes = numbers();
        if (!sizes) return false;
        target.subgroup_sizes = std::move(*sizes);
      }
      if (text_.empty()) return false;
      if (text_.front() == '"') {
        if (!quoted()) return false;
        at_key = false;
        continue;
      }
      if (text_.front() == '{') ++depth;
      if (text_.front() == '}') --depth;
      at_key = text_.front() == ' ';
      text_.remove_prefix(1);
    }
    return true;
  }

  std::string_view text_;
};

// The features with a '+' in front, sorted.
std::vector<std::string> wanted(std::string_view features) {
  std::vector<std::string> names;
  while (!features.empty()) {
    const std::string_view feature = features.substr(0, features.find(','));
    features.remove_prefix(std::min(feature.size() + 1, features.size()));
    if (feature.starts_with('+')) names.emplace_back(feature.substr(1));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

void TargetFeatures::add(const vm::Module& module) {
  if (module.kind() != vm::ModuleKind::bytecode) return;
  const auto& bytecode = static_cast<const vm::BytecodeModule&>(module);
  for (const vm::Export& function : module.exports()) {
    if (function.name != "__init") continue;
    const std::span<const uint8_t> bytes = bytecode.functions()[function.function].bytecode;
    add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}

void TargetFeatures::add(std::string_view bytes) {
  for (size_t at = bytes.find(kTarget); at != std::string_view::npos; at = bytes.find(kTarget, at)) {
    at += kTarget.size();
    const std::optional<Target> target = TargetReader(bytes.substr(at)).read();
    if (!target) {
      certain_ = false;  // there may be code for processors with fewer features
      return;
    }
    const std::vector<std::string> features = wanted(target->features);
    const auto [found, is_new] = needed_.try_emplace(target->format, Needs{features, target->subgroup_sizes});
    if (is_new) continue;
    Needs& known = found->second;
    std::vector<std::string> both;
    std::ranges::set_intersection(known.features, features, std::back_inserter(both));
    known.features = std::move(both);
    if (target->subgroup_sizes.empty()) known.subgroup_sizes.clear();
    if (known.subgroup_sizes.empty()) continue;
    for (const uint32_t size : target->subgroup_sizes)
      if (std::ranges::find(known.subgroup_sizes, size) == known.subgroup_sizes.end())
        known.subgroup_sizes.push_back(size);
  }
}

std::vector<std::string> TargetFeatures::formats() const {
  std::vector<std::string> formats;
  for (const auto& [format, needs] : needed_)
    if (!format.empty()) formats.push_back(format);
  return formats;
}

std::vector<std::string> TargetFeatures::needed(std::string_view format) const {
  const auto found = needed_.find(format);
  return certain_ && found != needed_.end() ? found->second.features : std::vector<std::string>();
}

std::vector<uint32_t> TargetFeatures::subgroup_sizes(std::string_view format) const {
  const auto found = needed_.find(format);
  return certain_ && found != needed_.end() ? found->second.subgroup_sizes : std::vector<uint32_t>();
}

Result<> TargetFeatures::check(const hal::Device& device, std::string_view format) const {
  std::vector<std::string> missing;
  for (const std::string& feature : needed(format)) {
    const hal::Device::Answer answer = device.query_i64("hal.cpu", feature);
    if (answer.known && answer.value == 0) missing.push_back(feature);
  }
  if (missing.empty()) return {};
  return fail(
      Code::INCOMPATIBLE,
      "the program's code of format '{}' is compiled for processors with {}, which the processor of device "
      "'{}' does not have; compile it for this processor or for a generic one",
      format, fmt::join(missing, ", "), device.uri());
}

}  // namespace halyard::modules
