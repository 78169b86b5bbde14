// Reads a view, and splits its text into elements.
#include "contents.h"

#include "halyard/memory.h"

namespace halyard::tools {

uint64_t Contents::element_count() const {
  uint64_t count = 1;
  for (const int64_t dimension : shape) count *= static_cast<uint64_t>(dimension);
  return count;
}

std::string Contents::type_text() const {
  std::string text;
  for (const int64_t dimension : shape) text += std::to_string(dimension) + "x";
  return text + element_type;
}

namespace {

Result<halyard_view_info_t> info_of(halyard_object_t view) {
  halyard_view_info_t info = {};
  info.struct_size = sizeof info;
  TOOL_TRY(check(halyard_view_info(view, &info)));
  return info;
}

}  // namespace

Result<Contents> type_and_shape_of(halyard_object_t view) {
  const halyard_view_info_t info = TOOL_TRY(info_of(view));
  Contents contents;
  const Block<char> type(halyard_element_type_text(info.element_type));
  if (!type) return fail(HALYARD_RESOURCE_EXHAUSTED, "out of memory");
  contents.element_type = type.get();
  contents.bits = info.element_type & 0xFF;
  contents.shape.assign(info.shape, info.shape + info.rank);
  return contents;
}

Result<Contents> contents_of(halyard_object_t view) {
  Contents contents = TOOL_TRY(type_and_shape_of(view));
  // The buffer may be larger.
  uint64_t size = 0;
  TOOL_TRY(check(halyard_view_byte_count(view, &size)));
  contents.bytes.resize(size);
  TOOL_TRY(check(halyard_view_read(view, 0, contents.bytes.data(), contents.bytes.size())));
  return contents;
}

Result<Handle<halyard_object_t>> first_elements_of(halyard_object_t view, uint64_t count) {
  const auto size = static_cast<int64_t>(count);
  Handle<halyard_object_t> first;
  TOOL_TRY(check(halyard_view_part(view, 0, TOOL_TRY(info_of(view)).element_type, &size, 1, first.out())));
  return first;
}

Result<std::string> text_of(halyard_object_t view) {
  char* text = nullptr;
  TOOL_TRY(check(halyard_view_text(view, UINT64_MAX, &text)));
  const Block<char> owned(text);
  return text;
}

std::vector<std::string_view> elements_of(std::string_view text) {
  constexpr std::string_view kBetween = " []";
  std::vector<std::string_view> found;
  for (size_t at = text.find('=') + 1;
       (at = text.find_first_not_of(kBetween, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

}  // namespace halyard::tools
