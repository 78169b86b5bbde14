// Formats one value, and lists of values.
#include "print.h"

namespace halyard::tools {

namespace {

// Limits for a printed list. A list may contain itself, even several times, and one tensor many times.
constexpr int kDeepestList = 64;
constexpr uint64_t kMaxListElements = 1 << 16;
constexpr size_t kMaxListText = 16 << 20;  // bytes, after which no further element begins

struct Bounds {
  uint64_t tensor_elements;
  uint64_t list_elements = kMaxListElements;
  int depth = 0;
};

Result<> append(const Value& value, Bounds& bounds, std::string& text);

Result<> append_object(const Object& object, Bounds& bounds, std::string& text) {
  const std::string_view type = object.type();
  if (type == "hal.buffer_view") {
    const Tensor tensor(share, object.get());
    text += fmt::format("{}\n{}\n", type, TOOL_TRY(tensor.text(bounds.tensor_elements)));
    return {};
  }
  text += fmt::format("{}\n", type);
  if (type == "vm.list") {
    if (bounds.depth >= kDeepestList) {
      text += "...\n";
      return {};
    }
    const halyard::List list(share, object.get());
    const size_t size = TOOL_TRY(list.size());
    ++bounds.depth;
    for (size_t i = 0; i < size; ++i) {
      if (bounds.list_elements == 0 || text.size() >= kMaxListText) {
        text += "...\n";
        break;
      }
      --bounds.list_elements;
      text += fmt::format("child_list[{}]: ", i);
      TOOL_TRY(append(TOOL_TRY(list[i]), bounds, text));
    }
    --bounds.depth;
    text += "\n";
    return {};
  }
  text += "(no printer)\n";
  return {};
}

// Formats like %g in C.
std::string number_text(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

// Formats a value that is not an object.
std::string number_text(const halyard_value_t& value) {
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
    default:
      return "(null)\n";
  }
}

Result<> append(const Value& value, Bounds& bounds, std::string& text) {
  if (value.kind() == HALYARD_VALUE_OBJECT) return append_object(value.object(), bounds, text);
  text += number_text(value.raw());
  return {};
}

}  // namespace

Result<std::string> value_text(const Value& value, uint64_t max_elements) {
  Bounds bounds{.tensor_elements = max_elements};
  std::string text;
  TOOL_TRY(append(value, bounds, text));
  return text;
}

}  // namespace halyard::tools
