// Reads a view, and splits its text into elements.
#include "common/contents.h"

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

Result<Contents> type_and_shape_of(const Tensor& view) {
  const halyard_view_info_t info = TOOL_TRY(view.info());
  Contents contents;
  contents.element_type = TOOL_TRY(halyard::text_of(static_cast<ElementType>(info.element_type)));
  contents.bits = info.element_type & 0xFF;
  contents.shape.assign(info.shape, info.shape + info.rank);
  return contents;
}

Result<Contents> contents_of(const Tensor& view) {
  Contents contents = TOOL_TRY(type_and_shape_of(view));
  contents.bytes.resize(TOOL_TRY(view.byte_count()));  // the buffer may be larger
  TOOL_TRY(view.read_bytes(std::as_writable_bytes(std::span(contents.bytes))));
  return contents;
}

Result<Tensor> first_elements_of(const Tensor& view, uint64_t count) {
  return check(view.part(0, TOOL_TRY(view.element_type()), {static_cast<int64_t>(count)}));
}

Result<std::string> text_of(const Tensor& view) { return check(view.text(UINT64_MAX)); }

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
