// One value, and lists of values, as text.
#include "print.h"

namespace halyard::tools {

namespace {

// A list may contain itself, even several times, so the depth and the number of printed lists are bounded.
constexpr int kDeepestList = 64;
constexpr uint64_t kMostListElements = 1 << 16;

struct Bounds {
  uint64_t tensor_elements;
  uint64_t list_elements = kMostListElements;
  int depth = 0;
};

Result<std::string> text_of(const halyard_value_t& value, Bounds& bounds);

Result<std::string> object_text(halyard_object_t object, Bounds& bounds) {
  const std::string_view type = halyard_object_type(object);
  if (type == "hal.buffer_view") {
    char* text = nullptr;
    TOOL_TRY(check(halyard_view_text(object, bounds.tensor_elements, &text)));
    const Block<char> contents(text);
    return fmt::format("{}\n{}\n", type, contents.get());
  }
  if (type == "vm.list") {
    if (bounds.depth >= kDeepestList) return fmt::format("{}\n...\n", type);
    size_t size = 0;
    TOOL_TRY(check(halyard_list_size(object, &size)));
    std::string text = fmt::format("{}\n", type);
    ++bounds.depth;
    for (size_t i = 0; i < size; ++i) {
      if (bounds.list_elements == 0) {
        text += "...\n";
        break;
      }
      --bounds.list_elements;
      halyard_value_t element = {};
      TOOL_TRY(check(halyard_list_get(object, i, &element)));
      const Handle<halyard_object_t> owned(element.kind == HALYARD_VALUE_OBJECT ? element.object : nullptr);
      text += fmt::format("child_list[{}]: {}", i, TOOL_TRY(text_of(element, bounds)));
    }
    --bounds.depth;
    return text + "\n";
  }
  return fmt::format("{}\n(no printer)\n", type);
}

// Like %g in C.
std::string number_text(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

Result<std::string> text_of(const halyard_value_t& value, Bounds& bounds) {
  switch (value.kind) {
    case HALYARD_VALUE_I8:
      return fmt::format("i8={}\n", value.i32);
    case HALYARD_VALUE_I16:
      return fmt::format("i16={}\n", value.i32);
    case HALYARD_VALUE_I32:
      return fmt::format("i32={}\n", value.i32);
    case HALYARD_VALUE_I64:
      return fmt::format("i64={}\n", value.i64);
    case HALYARD_VALUE_F32:
      return fmt::format("f32={}\n", number_text(static_cast<double>(value.f32)));
    case HALYARD_VALUE_F64:
      return fmt::format("f64={}\n", number_text(value.f64));
    case HALYARD_VALUE_OBJECT:
      return object_text(value.object, bounds);
    default:
      return "(null)\n";
  }
}

}  // namespace

Result<std::string> value_text(const halyard_value_t& value, uint64_t max_elements) {
  Bounds bounds{.tensor_elements = max_elements};
  return text_of(value, bounds);
}

}  // namespace halyard::tools
