// Writes results as text, arrays and bytes.
#include "outputs.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "common/contents.h"
#include "common/files.h"
#include "common/npy.h"
#include "print.h"
#include "run_flags.h"

namespace halyard::tools {

namespace {

template <typename T>
std::vector<uint8_t> bytes_of(const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  return {bytes, bytes + sizeof value};
}

// A number is an array without dimensions, and null is an empty array.
Result<Contents> contents_of(const Value& value) {
  const halyard_value_t& raw = value.raw();
  switch (raw.kind) {
    case HALYARD_VALUE_I8:
    case HALYARD_VALUE_I16:
    case HALYARD_VALUE_I32:
      return Contents{.element_type = "i32", .shape = {}, .bytes = bytes_of(raw.i32)};
    case HALYARD_VALUE_I64:
      return Contents{.element_type = "i64", .shape = {}, .bytes = bytes_of(raw.i64)};
    case HALYARD_VALUE_F32:
      return Contents{.element_type = "f32", .shape = {}, .bytes = bytes_of(raw.f32)};
    case HALYARD_VALUE_F64:
      return Contents{.element_type = "f64", .shape = {}, .bytes = bytes_of(raw.f64)};
    case HALYARD_VALUE_OBJECT:
      if (value.is_null()) break;
      if (const Object object = value.object(); object.type() != "hal.buffer_view")
        return fail(HALYARD_INVALID_ARGUMENT,
                    "a {} cannot be written to a file; expected a tensor or a number", object.type());
      return tools::contents_of(Tensor(share, raw.object));
    default:
      break;
  }
  return Contents{.element_type = "i8", .shape = {0}, .bytes = {}};
}

Result<> write(const std::string& text, const Value& value, uint64_t max_elements) {
  if (text.empty()) return {};
  if (text == "-") {
    fmt::print("{}", TOOL_TRY(value_text(value, max_elements)));
    return {};
  }
  const bool append = text[0] == '+';
  const std::string path = text.substr(1);
  const Contents contents = TOOL_TRY(contents_of(value));
  if (!path.ends_with(".npy")) return write_file(path, append, contents.bytes);
  const std::vector<uint8_t> header = TOOL_TRY(npy_header(contents.element_type, contents.shape));
  TOOL_TRY(write_file(path, append, header));
  return write_file(path, true, contents.bytes);
}

}  // namespace

Result<> check_outputs(const std::vector<std::string>& texts, size_t result_count) {
  if (texts.size() != result_count)
    return fail(HALYARD_OUT_OF_RANGE,
                "the function has {} result{}, but there {} {} {} flag{}; give one for each", result_count,
                result_count == 1 ? "" : "s", texts.size() == 1 ? "is" : "are", texts.size(), flag::output,
                texts.size() == 1 ? "" : "s");
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    if (text.empty() || text == "-" || (text.size() > 1 && (text[0] == '@' || text[0] == '+'))) continue;
    return fail(
        HALYARD_UNIMPLEMENTED,
        "result[{}]: {}={}: expected '-' to print, nothing to drop, @FILE to write, or +FILE to append", i,
        flag::output, text);
  }
  return {};
}

Result<> write_outputs(const std::vector<std::string>& texts, const std::vector<Value>& results,
                       uint64_t max_elements) {
  for (size_t i = 0; i < results.size(); ++i) {
    Result<> written = write(texts[i], results[i], max_elements);
    if (!written) return fail(written.error().code, "result[{}]: {}", i, written.error().text);
  }
  return {};
}

}  // namespace halyard::tools
