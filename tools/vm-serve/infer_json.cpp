// Handles JSON events and keeps track of the place in the inference request. Elements of tensors are
// converted during parsing if type and shape precede them, as they usually do. Otherwise the text is parsed
// twice: the first time to find type and shape, the second time to store the elements.
#include "infer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "budget.h"
#include "halyard/small_floats.hpp"
#include "json_events.h"

namespace halyard::tools::serve {

namespace {

constexpr int kMaxDepth = 64;

// A JSON value of "data" or of another member.
struct Scalar {
  enum class Kind : uint8_t { null, boolean, signed_integer, unsigned_integer, real } kind = Kind::null;
  union {
    bool boolean;
    int64_t signed_integer;
    uint64_t unsigned_integer;
    double real;
  };
  static Scalar of(bool value) {
    Scalar made{.kind = Kind::boolean, .unsigned_integer = 0};
    made.boolean = value;
    return made;
  }
  static Scalar of(int64_t value) { return {.kind = Kind::signed_integer, .signed_integer = value}; }
  static Scalar of(uint64_t value) { return {.kind = Kind::unsigned_integer, .unsigned_integer = value}; }
  static Scalar of(double value) { return {.kind = Kind::real, .real = value}; }
};

// The value as an integer, if it is whole.
template <typename T>
bool to_integer(const Scalar& value, T* out) {
  switch (value.kind) {
    case Scalar::Kind::unsigned_integer:
      *out = static_cast<T>(value.unsigned_integer);
      return std::in_range<T>(value.unsigned_integer);
    case Scalar::Kind::signed_integer:
      *out = static_cast<T>(value.signed_integer);
      return std::in_range<T>(value.signed_integer);
    case Scalar::Kind::real: {  // 1.0, or 1e3
      // From here on, different integers have the same double.
      constexpr double kInexact = 9007199254740992.0;
      if (!(std::fabs(value.real) < kInexact) || std::trunc(value.real) != value.real) return false;
      *out = static_cast<T>(static_cast<int64_t>(value.real));
      return std::in_range<T>(static_cast<int64_t>(value.real));
    }
    default:
      return false;
  }
}

bool to_real(const Scalar& value, double* out) {
  switch (value.kind) {
    case Scalar::Kind::unsigned_integer:
      *out = static_cast<double>(value.unsigned_integer);
      return true;
    case Scalar::Kind::signed_integer:
      *out = static_cast<double>(value.signed_integer);
      return true;
    case Scalar::Kind::real:
      *out = value.real;
      return true;
    default:
      return false;
  }
}

template <typename T>
void store(std::byte* target, T value) {
  std::memcpy(target, &value, sizeof value);
}

template <typename T>
bool store_integer(const Scalar& value, std::byte* target) {
  T number = 0;
  if (!to_integer(value, &number)) return false;
  store(target, number);
  return true;
}

bool store_real(const DataType& type, const Scalar& value, std::byte* target) {
  double number = 0;
  if (!to_real(value, &number)) return false;
  const bool is_finite = std::isfinite(number);
  switch (type.size) {
    case 8:
      store(target, number);
      return true;
    case 4: {
      // A value that is nearer to the largest float than to the next power of two becomes the largest float.
      // The text of the largest float itself is such a value: 3.4028235e+38 exceeds it. The conversion of
      // larger values is undefined.
      constexpr double kMaxFloat = std::numeric_limits<float>::max();
      constexpr double kTooLarge = 0x1.ffffffp127;
      if (is_finite && std::fabs(number) >= kTooLarge) return false;
      store(target, static_cast<float>(is_finite ? std::clamp(number, -kMaxFloat, kMaxFloat) : number));
      return true;
    }
    default: {
      using namespace small_floats;
      const bool is_f16 = type.name == "FP16";
      const uint32_t bits = is_f16 ? narrow<kF16>(number) : narrow<kBf16>(number);
      if (is_finite && !std::isfinite(is_f16 ? widen<kF16>(bits) : widen<kBf16>(bits))) return false;
      store(target, static_cast<uint16_t>(bits));
      return true;
    }
  }
}

// False: not a value of that type.
bool store_element(const DataType& type, const Scalar& value, std::byte* target) {
  switch (type.kind) {
    case NumberKind::boolean: {
      uint8_t bit = 0;
      if (value.kind == Scalar::Kind::boolean) {
        bit = value.boolean ? 1 : 0;
      } else if (!to_integer(value, &bit) || bit > 1) {
        return false;
      }
      store(target, bit);
      return true;
    }
    case NumberKind::signed_integer:
      switch (type.size) {
        case 1:
          return store_integer<int8_t>(value, target);
        case 2:
          return store_integer<int16_t>(value, target);
        case 4:
          return store_integer<int32_t>(value, target);
        default:
          return store_integer<int64_t>(value, target);
      }
    case NumberKind::unsigned_integer:
      switch (type.size) {
        case 1:
          return store_integer<uint8_t>(value, target);
        case 2:
          return store_integer<uint16_t>(value, target);
        case 4:
          return store_integer<uint32_t>(value, target);
        default:
          return store_integer<uint64_t>(value, target);
      }
    case NumberKind::real:
      return store_real(type, value, target);
  }
  return false;
}

// A float that is not a JSON number, as a string: "NaN", "Infinity" and "inf", with or without a sign, in any
// case.
std::optional<double> non_finite(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const auto is = [&](std::string_view name) {
    return std::ranges::equal(text, name, [](char one, char two) {
      return (one >= 'A' && one <= 'Z' ? one - 'A' + 'a' : one) == two;
    });
  };
  const double sign = is_negative ? -1 : 1;
  if (is("nan")) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (is("inf") || is("infinity")) return sign * std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// The members that the protocol defines, by place. Each may occur once.
constexpr std::string_view kMembers[] = {
    "id",         "inputs",   "outputs", "parameters",         "name",
    "data",       "datatype", "shape",   "binary_data_output", "binary_data_size",
    "binary_data"};
using Members = std::bitset<std::size(kMembers)>;

// The place of the parser. Unknown members are skipped.
enum class Place {
  outside,
  request,
  request_parameters,
  inputs,
  input,
  input_parameters,
  shape,
  data,
  outputs,
  output,
  output_parameters,
};

// The first pass's result for an input whose elements precede their type or shape.
struct Found {
  const DataType* type = nullptr;
  std::vector<int64_t> shape;
  bool has_memory = false;  // reserved in the first pass
};

class Reader {
 public:
  // `found`: the result of the first pass for each input, in the order of the request; null in the first
  // pass.
  Reader(const ModelSpec& model, size_t json_size, const Reserve& reserve, const std::vector<Found>* found)
      : model_(model), builder_(model), json_size_(json_size), reserve_(reserve), found_before_(found) {}

  // After a pass: whether elements were skipped because their type or shape came later.
  bool has_left_out() const { return !failure_ && has_left_out_; }
  std::vector<Found> take_found() { return std::move(found_); }

  Result<InferRequest> finish() {
    if (failure_) return std::unexpected(*std::move(failure_));
    if (!has_inputs_)
      return fail(HALYARD_INVALID_ARGUMENT, "the request has no member 'inputs'; the model takes {}",
                  names_of(model_.inputs));
    InferRequest request = TOOL_TRY(builder_.finish());
    if (!has_outputs_)
      for (size_t i = 0; i < model_.outputs.size(); ++i) request.outputs.push_back({i, binary_output_});
    for (size_t i = 0; i < chosen_.size(); ++i)
      request.outputs[i].is_binary = chosen_[i].value_or(binary_output_);
    request.id = std::move(id_);
    return request;
  }

  // ---- Events of JsonReader; false ends it.

  bool null() { return skips() || scalar(Scalar{}); }
  bool boolean(bool value) { return skips() || scalar(Scalar::of(value)); }
  bool number_integer(int64_t value) { return skips() || scalar(Scalar::of(value)); }
  bool number_unsigned(uint64_t value) { return skips() || scalar(Scalar::of(value)); }
  bool number_float(double value) { return skips() || scalar(Scalar::of(value)); }

  bool string(std::string& value) {
    if (skips()) return true;
    switch (place_) {
      case Place::request:
        if (key_ == "id") {
          id_ = std::move(value);
          return true;
        }
        return true;
      case Place::input:
        if (key_ == "datatype") return set_datatype(value);
        if (key_ == "name") name_ = std::move(value);
        if (key_ == "shape" || key_ == "data")
          return wrong("'{}' of an input is a string; expected an array", key_);
        return true;
      case Place::output:
        if (key_ == "name") name_ = std::move(value);
        return true;
      case Place::data: {
        if (const auto number = non_finite(value)) return element(Scalar::of(*number));
        return wrong(
            "'data' of input '{}' has a string; expected numbers, or \"NaN\", \"Infinity\" and "
            "\"-Infinity\" for floats",
            name_);
      }
      default:
        if (is_in_parameters()) return text_parameter();
        return unexpected_value("a string");
    }
  }

  bool start_object() {
    if (!deeper()) return false;
    if (skips()) return skip_deeper();
    switch (place_) {
      case Place::outside:
        return enter(Place::request);
      case Place::request:
        return key_ == "parameters" ? enter(Place::request_parameters) : known_or_skip("an object");
      case Place::inputs:
        begin_input();
        return enter(Place::input);
      case Place::input:
        return key_ == "parameters" ? enter(Place::input_parameters) : known_or_skip("an object");
      case Place::outputs:
        name_.clear();
        binary_.reset();
        return enter(Place::output);
      case Place::output:
        return key_ == "parameters" ? enter(Place::output_parameters) : known_or_skip("an object");
      default:
        return is_in_parameters() ? known_or_skip("an object") : unexpected_value("an object");
    }
  }
  bool key(std::string& name) {
    if (skip_depth_ > 0) return true;
    key_ = std::move(name);
    const auto* const known = std::ranges::find(kMembers, key_);
    if (known == std::end(kMembers)) return true;
    Members& seen = seen_[static_cast<size_t>(place_)];
    const auto index = static_cast<size_t>(known - std::begin(kMembers));
    if (seen.test(index)) return wrong("{} has '{}' twice", owner(), key_);
    seen.set(index);
    return true;
  }
  bool end_object() {
    --depth_;
    if (skip_depth_ > 0) return --skip_depth_, true;
    switch (place_) {
      case Place::request:
        return enter(Place::outside);
      case Place::request_parameters:
        return enter(Place::request);
      case Place::input_parameters:
        return enter(Place::input);
      case Place::output_parameters:
        return enter(Place::output);
      case Place::input:
        place_ = Place::inputs;
        return end_input();
      case Place::output:
        place_ = Place::outputs;
        return end_output();
      default:
        return wrong("unexpected end of an object");
    }
  }

  bool start_array() {
    if (!deeper()) return false;
    if (skips()) return skip_deeper();
    switch (place_) {
      case Place::outside:
        return wrong("the request is an array; expected an object with the member 'inputs'");
      case Place::request:
        if (key_ == "inputs") {
          has_inputs_ = true;
          return enter(Place::inputs);
        }
        if (key_ == "outputs") {
          has_outputs_ = true;
          return enter(Place::outputs);
        }
        return known_or_skip("an array");
      case Place::input:
        if (key_ == "shape") {
          has_shape_ = true;
          return enter(Place::shape);
        }
        if (key_ == "data") {
          has_data_ = true;
          data_depth_ = 0;
          return enter(Place::data) && begin_data();
        }
        return known_or_skip("an array");
      case Place::data:
        ++data_depth_;
        return true;
      case Place::output:
        return known_or_skip("an array");
      default:
        return is_in_parameters() ? known_or_skip("an array") : unexpected_value("an array");
    }
  }
  bool end_array() {
    --depth_;
    if (skip_depth_ > 0) return --skip_depth_, true;
    switch (place_) {
      case Place::inputs:
      case Place::outputs:
        return enter(Place::request);
      case Place::shape:
        return enter(Place::input);
      case Place::data:
        if (data_depth_ > 0) return --data_depth_, true;
        return enter(Place::input);
      default:
        return wrong("unexpected end of an array");
    }
  }

  bool parse_error(size_t position, std::string_view why) {
    return wrong("the request is not valid JSON at byte {}: {}", position, why);
  }

 private:
  template <typename... Args>
  bool wrong(fmt::format_string<Args...> format, Args&&... args) {
    if (!failure_)
      failure_ = Failure{HALYARD_INVALID_ARGUMENT, fmt::format(format, std::forward<Args>(args)...)};
    return false;
  }
  // Stops at a failure of the builder.
  bool passes(Result<> checked) {
    if (checked) return true;
    failure_ = std::move(checked).error();
    return false;
  }
  bool out_of_memory() {
    failure_ = Failure{HALYARD_RESOURCE_EXHAUSTED, "out of memory for the request's tensors"};
    return false;
  }

  bool deeper() {
    if (++depth_ <= kMaxDepth) return true;
    return wrong("the request is nested deeper than {}", kMaxDepth);
  }
  bool skips() const { return skip_depth_ > 0; }
  bool skip_deeper() { return ++skip_depth_, true; }
  bool enter(Place place) {
    // Entering a nested object clears its members; returning to the outer object keeps the outer members.
    if (place > place_) seen_[static_cast<size_t>(place)].reset();
    place_ = place;
    return true;
  }
  std::string_view owner() const {
    switch (place_) {
      case Place::input:
        return "an input";
      case Place::output:
        return "an output";
      case Place::request_parameters:
      case Place::input_parameters:
      case Place::output_parameters:
        return "an object 'parameters'";
      default:
        return "the request";
    }
  }
  bool is_in_parameters() const {
    return place_ == Place::request_parameters || place_ == Place::input_parameters ||
           place_ == Place::output_parameters;
  }
  bool unexpected_value(std::string_view found) {
    switch (place_) {
      case Place::outside:
        return wrong("the request is {}; expected an object with the member 'inputs'", found);
      case Place::inputs:
        return wrong("'inputs' has {}; expected objects", found);
      case Place::outputs:
        return wrong("'outputs' has {}; expected objects", found);
      case Place::shape:
        return wrong("'shape' of an input has {}; expected whole numbers", found);
      case Place::data:
        return wrong("'data' of input '{}' has {}; expected numbers", name_, found);
      default:
        return wrong("found {} at a place where the protocol has none", found);
    }
  }
  // Handles a member whose value is an object or array: an error if the member is known, else skipped.
  bool known_or_skip(std::string_view found) {
    const bool is_known = is_in_parameters() ? is_parameter_of_place()
                          : place_ == Place::request
                              ? key_ == "id" || key_ == "inputs" || key_ == "outputs" || key_ == "parameters"
                              : key_ == "name" || key_ == "datatype" || key_ == "shape" || key_ == "data" ||
                                    key_ == "parameters";
    if (is_known) return wrong("'{}' is {}, which the protocol does not allow", key_, found);
    return skip_deeper();
  }
  bool is_parameter_of_place() const {
    return key_ == (place_ == Place::request_parameters ? "binary_data_output"
                    : place_ == Place::input_parameters ? "binary_data_size"
                                                        : "binary_data");
  }
  bool text_parameter() {
    return !is_parameter_of_place() || wrong("'{}' is a string, which the protocol does not allow", key_);
  }

  bool scalar(const Scalar& value) {
    switch (place_) {
      case Place::data:
        return element(value);
      case Place::shape: {
        int64_t size = 0;
        if (!to_integer(value, &size) || size < 0)
          return wrong("'shape' of an input has a dimension that is not a whole number from 0 on");
        if (input_.shape.size() == kMaxDimensions)
          return wrong("'shape' of an input has more than {} dimensions", kMaxDimensions);
        input_.shape.push_back(size);
        return true;
      }
      case Place::request_parameters:
        if (key_ == "binary_data_output") {
          if (value.kind != Scalar::Kind::boolean) return wrong("'binary_data_output' must be true or false");
          binary_output_ = value.boolean;
        }
        return true;
      case Place::output_parameters:
        if (key_ == "binary_data") {
          if (value.kind != Scalar::Kind::boolean) return wrong("'binary_data' must be true or false");
          binary_ = value.boolean;
        }
        return true;
      case Place::input_parameters:
        if (key_ == "binary_data_size") {
          uint64_t size = 0;
          if (!to_integer(value, &size)) return wrong("'binary_data_size' must be a number of bytes");
          binary_size_ = size;
        }
        return true;
      case Place::request:
      case Place::input:
      case Place::output: {
        static constexpr std::string_view kKnown[] = {"id",   "inputs", "outputs",  "parameters",
                                                      "name", "data",   "datatype", "shape"};
        if (value.kind == Scalar::Kind::null && (key_ == "id" || key_ == "outputs" || key_ == "parameters"))
          return true;  // ignored
        if (std::ranges::find(kKnown, key_) != std::end(kKnown))
          return wrong("'{}' is a number, a truth value or null, which the protocol does not allow", key_);
        return true;
      }
      default:
        return unexpected_value("a number, a truth value or null");
    }
  }

  void begin_input() {
    input_ = RequestInput();
    name_.clear();
    type_ = nullptr;
    has_shape_ = has_data_ = false;
    is_left_out_ = false;
    binary_size_.reset();
  }
  bool set_datatype(std::string_view name) {
    auto type = InferRequestBuilder::type_named(name, name_);
    if (!type) return passes(std::unexpected(std::move(type).error()));
    type_ = *type;
    return true;
  }

  // Allocates memory for the elements: as many as the shape has, but no more than the text can contain.
  bool begin_data() {
    elements_ = 0;
    const Found* before = found_before_ ? &(*found_before_)[builder_.request().inputs.size()] : nullptr;
    data_type_ = before ? before->type : has_shape_ ? type_ : nullptr;
    is_left_out_ = !data_type_;
    has_left_out_ |= is_left_out_;
    if (is_left_out_) return true;
    const auto count = element_count(before ? before->shape : input_.shape, data_type_->size);
    if (!count)
      return wrong("input '{}' has the shape {}, which is too large", name_, shape_text(input_.shape));
    most_elements_ = std::min<uint64_t>(*count, json_size_ / 2 + 1);
    const uint64_t size = most_elements_ * data_type_->size;
    if (reserve_ && !(before && before->has_memory) && !reserve_(size)) {
      failure_ = Failure{HALYARD_UNAVAILABLE, std::string(kNoRoom)};
      return false;
    }
    return input_.data.reserve(size) || out_of_memory();
  }

  bool element(const Scalar& value) {
    if (is_left_out_) return true;
    if (elements_ == most_elements_)
      return wrong("'data' of input '{}' has more than the {} elements of its shape", name_, most_elements_);
    const size_t end = input_.data.size();
    if (!input_.data.resize(end + data_type_->size)) return out_of_memory();
    if (!store_element(*data_type_, value, input_.data.data() + end)) {
      if (value.kind == Scalar::Kind::null && data_type_->kind == NumberKind::real)
        return wrong(
            "element {} of input '{}' is null, but a float without a number in JSON is \"NaN\", \"Infinity\" "
            "or \"-Infinity\"",
            elements_, name_);
      return wrong("element {} of input '{}' is not of type {}", elements_, name_, data_type_->name);
    }
    ++elements_;
    return true;
  }

  bool end_input() {
    if (!passes(builder_.check(input_, name_, type_, has_shape_))) return false;
    const uint64_t count = input_.byte_size / type_->size;
    if (has_data_ && binary_size_)
      return wrong("input '{}' has both 'data' and 'binary_data_size'; expected one of them", name_);
    if (binary_size_) {
      if (*binary_size_ != input_.byte_size)
        return wrong("input '{}' has binary_data_size {}, but {} elements of {} have {} bytes", name_,
                     *binary_size_, count, type_->name, input_.byte_size);
      input_.is_binary = true;
    } else if (!has_data_) {
      return wrong("input '{}' has neither 'data' nor the parameter 'binary_data_size'", name_);
    } else if (!is_left_out_ && input_.data.size() != input_.byte_size) {
      return wrong("'data' of input '{}' has {} elements, but its shape {} has {}", name_,
                   input_.data.size() / type_->size, shape_text(input_.shape), count);
    }
    if (!found_before_) found_.push_back({type_, input_.shape, has_data_ && !is_left_out_});
    builder_.add(std::move(input_));
    input_ = RequestInput();
    return true;
  }

  bool end_output() {
    if (!passes(builder_.add_output(name_))) return false;
    chosen_.push_back(binary_);
    return true;
  }

  const ModelSpec& model_;
  InferRequestBuilder builder_;
  const size_t json_size_;
  const Reserve& reserve_;
  const std::vector<Found>* const found_before_;
  std::vector<Found> found_;
  bool has_left_out_ = false;
  std::optional<std::string> id_;
  std::optional<Failure> failure_;
  Place place_ = Place::outside;
  int depth_ = 0;
  int skip_depth_ = 0;
  std::string key_;
  std::array<Members, static_cast<size_t>(Place::output_parameters) + 1> seen_;  // members of open objects
  bool has_inputs_ = false;
  bool has_outputs_ = false;
  bool binary_output_ = false;
  std::vector<std::optional<bool>> chosen_;  // "binary_data" of each output of the request

  // The current input or output.
  RequestInput input_;
  std::string name_;
  const DataType* type_ = nullptr;
  bool has_shape_ = false;
  bool has_data_ = false;
  int data_depth_ = 0;
  std::optional<uint64_t> binary_size_;
  std::optional<bool> binary_;
  // The data of the current input.
  const DataType* data_type_ = nullptr;
  bool is_left_out_ = false;
  uint64_t elements_ = 0;
  uint64_t most_elements_ = 0;
};

}  // namespace

Result<InferRequest> parse_infer_request(std::string_view json, const ModelSpec& model,
                                         const Reserve& reserve) {
  try {
    Reader first(model, json.size(), reserve, nullptr);
    JsonReader(json, first).run();
    if (!first.has_left_out()) return first.finish();
    // Discard the elements that the first pass has stored, before the second pass.
    const std::vector<Found> found = first.take_found();
    if (auto checked = first.finish(); !checked) return checked;
    Reader second(model, json.size(), reserve, &found);
    JsonReader(json, second).run();
    return second.finish();
  } catch (const std::bad_alloc&) {
    return fail(HALYARD_RESOURCE_EXHAUSTED, "out of memory for the request");
  }
}

}  // namespace halyard::tools::serve
