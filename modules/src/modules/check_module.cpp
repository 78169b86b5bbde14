// Expectations: comparing elements, and the messages of failures.
#include "modules/check_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "hal/view/element_value.h"
#include "modules/host_view.h"
#include "vm/native/bind.h"

namespace halyard::modules {
namespace {

constexpr uint64_t kMaxElements = 1024;  // maximum number of printed elements of a view
constexpr size_t kBlock = 1 << 16;       // number of elements that are compared at once
constexpr size_t kMaxElement = 32;       // bytes; a type has at most 255 bits

// If there is no memory for the whole message, only its first line is used.
Result<> tell(CheckOptions& state, vm::CallContext& call, std::string_view function,
              const std::string& message) {
  if (!state.failed)
    return fail(Code::FAILED_PRECONDITION, "expectation '{}' does not hold: {}", function,
                std::string_view(message).substr(0, message.find('\n')));
  const std::string place = call.invocation().place();
  state.failed({.function = function, .message = message, .place = place});
  return {};
}

// ---- Elements

// The elements that fail an expectation.
struct Misses {
  uint64_t total = 0;
  uint64_t count = 0;
  uint64_t first = 0;
  std::array<uint8_t, kMaxElement> left = {};  // the first failing element
  std::array<uint8_t, kMaxElement> right = {};
};

// Elements of other sizes are compared bytewise.
bool is_whole_bytes(hal::ElementType type) {
  return hal::bit_count(type) != 0 && hal::bit_count(type) % 8 == 0;
}
size_t unit_of(hal::ElementType type) { return is_whole_bytes(type) ? hal::bit_count(type) / 8 : 1; }

uint64_t size_of(const hal::BufferView& view) {
  return view.byte_count().value();  // HostViews has checked the size
}

// Calls holds(left element, right element) for each element, skipping equal blocks of two views. With one
// view, `right` and its elements are null.
template <typename Holds>
Result<Misses> scan(const hal::BufferView& left, const hal::BufferView* right, Holds&& holds) {
  const size_t unit = unit_of(left.type());
  Misses misses{.total = size_of(left) / unit};
  const size_t room = std::min<uint64_t>(misses.total, kBlock) * unit;
  std::vector<uint8_t> ours(room);
  std::vector<uint8_t> theirs(right ? room : 0);
  for (uint64_t done = 0; done < misses.total;) {
    const size_t count = std::min<uint64_t>(misses.total - done, kBlock);
    const size_t bytes = count * unit;
    HALYARD_TRY(left.buffer().read(done * unit, ours.data(), bytes));
    if (right) HALYARD_TRY(right->buffer().read(done * unit, theirs.data(), bytes));
    const bool same = right && std::memcmp(ours.data(), theirs.data(), bytes) == 0;
    for (size_t i = 0; i < count && !same; ++i) {
      const uint8_t* const a = ours.data() + i * unit;
      const uint8_t* const b = right ? theirs.data() + i * unit : nullptr;
      if (holds(a, b)) continue;
      if (misses.count++ > 0) continue;
      misses.first = done + i;
      std::memcpy(misses.left.data(), a, unit);
      if (b) std::memcpy(misses.right.data(), b, unit);
    }
    done += count;
  }
  return misses;
}

// The tolerance: |left - right| <= absolute + relative * |right|.
struct Tolerance {
  float absolute;
  float relative;
};

template <typename T>
T allowed(T right, Tolerance tolerance) {
  return static_cast<T>(tolerance.absolute) + static_cast<T>(tolerance.relative) * std::abs(right);
}

template <typename T>
bool is_near(T left, T right, Tolerance tolerance) {
  if (left == right || (std::isnan(left) && std::isnan(right))) return true;
  return std::isfinite(right) && std::abs(left - right) <= allowed(right, tolerance);
}

constexpr hal::ElementType kF64 = hal::element_type(hal::kFloatIeee, 64);

// Calls `what` with both values, converted to the precision of the comparison.
template <typename What>
auto in_precision(hal::ElementType type, const uint8_t* left, const uint8_t* right, What&& what) {
  const double a = hal::float_value(left, type);
  const double b = hal::float_value(right, type);
  return type == kF64 ? what(a, b) : what(static_cast<float>(a), static_cast<float>(b));
}

// ---- Messages

// "[1][2]" of element 5 of 2x3.
std::string index_text(uint64_t element, std::span<const int64_t> shape) {
  std::string text;
  for (auto dimension = shape.rbegin(); dimension != shape.rend(); ++dimension) {
    const auto length = static_cast<uint64_t>(*dimension);
    text = fmt::format("[{}]{}", element % length, text);
    element /= length;
  }
  return text;
}

// " at [1][2]"; empty for a single element.
std::string place_text(const hal::BufferView& view, uint64_t element) {
  if (!is_whole_bytes(view.type())) return fmt::format(" at byte {}", element);
  return view.shape().empty() ? "" : " at " + index_text(element, view.shape());
}

std::string hex(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) fmt::format_to(std::back_inserter(text), "{:02X}", bytes[i]);
  return text;
}

// Exact, unlike the text of tensors: different floats give different texts.
std::string value_text(const uint8_t* element, hal::ElementType type) {
  if (hal::is_integer(type)) return fmt::format("{}", hal::integer_value(element, type));
  if (!hal::is_float(type)) return hex(element, unit_of(type));
  const double value = hal::float_value(element, type);
  return type == kF64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

// "1.5 and 1.25"; also the bytes if the texts are equal.
std::string pair_text(const Misses& misses, hal::ElementType type) {
  const std::string left = value_text(misses.left.data(), type);
  const std::string right = value_text(misses.right.data(), type);
  if (left != right) return fmt::format("{} and {}", left, right);
  const size_t size = unit_of(type);
  return fmt::format("{} (bytes {}) and {} (bytes {})", left, hex(misses.left.data(), size), right,
                     hex(misses.right.data(), size));
}

// ", a difference of 0.25"; empty if the difference is not a number.
std::string difference_text(const Misses& misses, hal::ElementType type) {
  const uint8_t* const left = misses.left.data();
  const uint8_t* const right = misses.right.data();
  if (hal::is_integer(type))
    return fmt::format(", a difference of {}",
                       hal::integer_value(left, type) - hal::integer_value(right, type));
  if (!hal::is_float(type)) return "";
  return in_precision(type, left, right, [](auto a, auto b) -> std::string {
    return std::isfinite(a - b) ? fmt::format(", a difference of {}", a - b) : "";
  });
}

// The text that tools print; for elements without text, the type and the reason.
std::string text_of(const hal::BufferView& view) {
  Result<std::string> text = view.text(kMaxElements);
  return text ? *std::move(text) : fmt::format("{} ({})", view.type_text(), text.error().message());
}

std::string both_views(const hal::BufferView& left, const hal::BufferView& right) {
  return fmt::format("\n  left:  {}\n  right: {}", text_of(left), text_of(right));
}

std::string_view unit_name(hal::ElementType type) { return is_whole_bytes(type) ? "elements" : "bytes"; }

std::string misses_text(const hal::BufferView& left, const hal::BufferView& right, const Misses& misses,
                        std::string_view limit) {
  return fmt::format("found {}{}{}{}; {} of {} {} differ{}", pair_text(misses, left.type()),
                     place_text(left, misses.first), difference_text(misses, left.type()), limit,
                     misses.count, misses.total, unit_name(left.type()), both_views(left, right));
}

// Describes how types and shapes that must be equal differ; "" if they are equal.
std::string kinds_text(const hal::BufferView& left, const hal::BufferView& right) {
  const bool types = left.type() != right.type();
  const bool shapes = !std::ranges::equal(left.shape(), right.shape());
  if (!types && !shapes) return "";
  return fmt::format("expected the same element type and shape, found {} and {}: {} differ{}",
                     left.type_text(), right.type_text(),
                     types && shapes ? "both"
                     : types         ? "the element types"
                                     : "the shapes",
                     both_views(left, right));
}

// ---- The functions

Result<> expect_true(CheckOptions& state, vm::CallContext& call, int32_t value) {
  if (value != 0) return {};
  return tell(state, call, "expect_true", "expected a value other than 0, found 0");
}

Result<> expect_false(CheckOptions& state, vm::CallContext& call, int32_t value) {
  if (value == 0) return {};
  return tell(state, call, "expect_false", fmt::format("expected 0, found {}", value));
}

Result<> expect_all_true(CheckOptions& state, vm::CallContext& call, hal::Device& device,
                         hal::BufferView& view) {
  const hal::ElementType type = view.type();
  const bool is_real = hal::is_float(type) && !hal::small_float(type);
  if (!hal::is_integer(type) && !is_real)
    return fail(
        Code::INVALID_ARGUMENT,
        "expect_all_true takes integers of 8, 16, 32 or 64 bits, f32 and f64; found elements of type {}",
        hal::element_type_text(type));
  hal::BufferView* const views[] = {&view};
  const Ref<HostViews> contents = HALYARD_TRY(HostViews::of(call, device, state.memory, views));
  if (!contents) return {};
  const hal::BufferView& found = (*contents)[0];
  const size_t size = unit_of(type);
  const Misses zeros = HALYARD_TRY(scan(found, nullptr, [&](const uint8_t* element, const uint8_t*) {
    if (is_real) return hal::float_value(element, type) != 0;
    return std::any_of(element, element + size, [](uint8_t byte) { return byte != 0; });
  }));
  if (zeros.count == 0) return {};
  return tell(state, call, "expect_all_true",
              fmt::format("expected no element to be 0, found {}{}; {} of {} elements are 0\n  view: {}",
                          value_text(zeros.left.data(), type), place_text(found, zeros.first), zeros.count,
                          zeros.total, text_of(found)));
}

Result<> expect_eq(CheckOptions& state, vm::CallContext& call, hal::Device& device, hal::BufferView& left,
                   hal::BufferView& right) {
  hal::BufferView* const views[] = {&left, &right};
  const Ref<HostViews> contents = HALYARD_TRY(HostViews::of(call, device, state.memory, views));
  if (!contents) return {};
  const hal::BufferView& ours = (*contents)[0];
  const hal::BufferView& theirs = (*contents)[1];
  if (const std::string text = kinds_text(ours, theirs); !text.empty())
    return tell(state, call, "expect_eq", text);
  const size_t size = unit_of(ours.type());
  const Misses misses = HALYARD_TRY(
      scan(ours, &theirs, [&](const uint8_t* a, const uint8_t* b) { return std::memcmp(a, b, size) == 0; }));
  if (misses.count == 0) return {};
  return tell(state, call, "expect_eq",
              "expected the same contents, " + misses_text(ours, theirs, misses, ""));
}

Result<> almost_equal(CheckOptions& state, vm::CallContext& call, hal::Device& device, hal::BufferView& left,
                      hal::BufferView& right, Tolerance tolerance) {
  const hal::ElementType type = left.type();
  if (type == right.type() && !hal::is_float(type))
    return fail(Code::INVALID_ARGUMENT,
                "expect_almost_eq takes floats of 64, 32, 16 and 8 bits; found elements of type {}; use "
                "expect_eq for them",
                hal::element_type_text(type));
  hal::BufferView* const views[] = {&left, &right};
  const Ref<HostViews> contents = HALYARD_TRY(HostViews::of(call, device, state.memory, views));
  if (!contents) return {};
  const hal::BufferView& ours = (*contents)[0];
  const hal::BufferView& theirs = (*contents)[1];
  if (const std::string text = kinds_text(ours, theirs); !text.empty())
    return tell(state, call, "expect_almost_eq", text);
  const Misses misses = HALYARD_TRY(scan(ours, &theirs, [&](const uint8_t* a, const uint8_t* b) {
    return in_precision(type, a, b, [&](auto l, auto r) { return is_near(l, r, tolerance); });
  }));
  if (misses.count == 0) return {};
  const std::string limit =
      in_precision(type, misses.left.data(), misses.right.data(), [&](auto l, auto r) -> std::string {
        return std::isfinite(l - r) ? fmt::format(" where {} is allowed", allowed(r, tolerance)) : "";
      });
  return tell(state, call, "expect_almost_eq",
              fmt::format("expected elements within {} + {} * |right|, {}", tolerance.absolute,
                          tolerance.relative, misses_text(ours, theirs, misses, limit)));
}

Result<> expect_almost_eq(CheckOptions& state, vm::CallContext& call, hal::Device& device,
                          hal::BufferView& left, hal::BufferView& right, float absolute, float relative) {
  return almost_equal(state, call, device, left, right, {absolute, relative});
}

// Used by compilers before 3.3, which pass no tolerance.
Result<> expect_almost_eq_3_2(CheckOptions& state, vm::CallContext& call, hal::Device& device,
                              hal::BufferView& left, hal::BufferView& right) {
  const bool is_small = hal::small_float(left.type()) != nullptr;
  return almost_equal(state, call, device, left, right, {is_small ? 0.001F : 0.0001F, 0});
}

// Signatures of one name are adjacent, oldest first: an import without a signature binds to the last one.
constexpr vm::NativeExport kExports[] = {
    {"expect_true", "0i_v", vm::bind<&expect_true>},
    {"expect_false", "0i_v", vm::bind<&expect_false>},
    {"expect_all_true", "0rr_v", vm::bind<&expect_all_true>},
    {"expect_eq", "0rrr_v", vm::bind<&expect_eq>},
    {"expect_almost_eq", "0rrr_v", vm::bind<&expect_almost_eq_3_2>},
    {"expect_almost_eq", "0rrrff_v", vm::bind<&expect_almost_eq>},
};
static_assert(std::string_view(vm::convention_of<&expect_true>) == kExports[0].convention);
static_assert(std::string_view(vm::convention_of<&expect_false>) == kExports[1].convention);
static_assert(std::string_view(vm::convention_of<&expect_all_true>) == kExports[2].convention);
static_assert(std::string_view(vm::convention_of<&expect_eq>) == kExports[3].convention);
static_assert(std::string_view(vm::convention_of<&expect_almost_eq_3_2>) == kExports[4].convention);
static_assert(std::string_view(vm::convention_of<&expect_almost_eq>) == kExports[5].convention);

}  // namespace

Ref<vm::NativeModule> create_check_module(CheckOptions options) {
  vm::NativeModule::Definition definition;
  definition.name = "check";
  definition.version = kCheckVersion;
  definition.exports.assign(std::begin(kExports), std::end(kExports));
  definition.create_state = [options = std::move(options)]() -> Result<vm::NativeState> {
    return vm::NativeState{new CheckOptions(options),
                           [](void* state) { delete static_cast<CheckOptions*>(state); }};
  };
  return vm::NativeModule::create(std::move(definition));
}

}  // namespace halyard::modules
