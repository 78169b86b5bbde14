#include "plan/cells.h"

#include <fmt/core.h>

namespace halyard::aot {

bool is_element_store(const Node& node) {
  return node.kind == Node::Kind::effect && node.accesses.size() == 1 && node.accesses[0].writes &&
         node.accesses[0].width != 0 && node.text.starts_with("vm_set_");
}

std::string stored_text(const Node& store) {
  const size_t comma = store.text.find(", ");
  return store.text.substr(comma + 2, store.text.size() - comma - 4);
}

namespace {

// What is between `begin` and ")", if that is the whole text.
std::string_view inside(std::string_view text, std::string_view begin) {
  if (!text.starts_with(begin) || !text.ends_with(')')) return {};
  const std::string_view inner = text.substr(begin.size(), text.size() - begin.size() - 1);
  int depth = 0;
  for (const char each : inner) {
    if (each == '(') ++depth;
    if (each == ')' && --depth < 0) return {};
  }
  return inner;
}

// The functions between the bits of a float and its value.
struct FloatForm {
  const char* type;
  std::string_view value;
  std::string_view load;
  std::string_view bits;
};
constexpr FloatForm kFloatForms[] = {{"float", "vm_f32(", "vm_get_32(", "vm_bits_f32("},
                                     {"double", "vm_f64(", "vm_get_64(", "vm_bits_f64("}};

}  // namespace

CellType::CellType(uint32_t width) : width_(width) {
  for (const FloatForm& form : kFloatForms)
    if (form.type == std::string_view(width == 4 ? "float" : "double")) name_ = form.type;
  if (width != 4 && width != 8) name_ = "";
}

void CellType::add(const Node& node) {
  for (const FloatForm& form : kFloatForms) {
    if (form.type != name_) continue;
    const bool is_load =
        node.kind == Node::Kind::let && !inside(inside(node.text, form.value), form.load).empty();
    const bool is_store = is_element_store(node) && !inside(stored_text(node), form.bits).empty();
    if (!is_load && !is_store) name_ = "";
    return;
  }
}

std::string CellType::declaration() const {
  return name_.empty() ? fmt::format("uint{}_t", 8 * width_) : std::string(name_);
}

void CellType::load(std::string& text, MemoryId memory, std::string_view name) const {
  if (name_.empty()) return replace_load(text, memory, name);
  text = name;
}

std::string CellType::value(std::string_view name) const {
  for (const FloatForm& form : kFloatForms)
    if (form.type == name_) return fmt::format("{}{})", form.bits, name);
  return std::string(name);
}

std::string CellType::loaded(std::string_view text) const {
  if (!name_.empty()) return std::string(text);
  const std::string_view from = text.substr(text.find("vm_get_"));
  int depth = 0;
  size_t end = 0;
  do {
    if (from[end] == '(') ++depth;
    if (from[end] == ')') --depth;
    ++end;
  } while (depth != 0 || from[end - 1] != ')');
  const std::string bits(from.substr(0, end));
  return width_ < 4 ? fmt::format("(uint{}_t){}", 8 * width_, bits) : bits;
}

std::string CellType::stored(const Node& store) const {
  const std::string text = stored_text(store);
  for (const FloatForm& form : kFloatForms)
    if (form.type == name_) return std::string(inside(text, form.bits));
  return text;
}

// Replaces "vm_get_32(@5@ + 4u * (size_t)v7)" by the name.
void replace_load(std::string& text, MemoryId memory, std::string_view name) {
  const size_t at = text.find(memory_name(memory));
  const size_t begin = text.rfind("vm_get_", at);
  int depth = 0;
  size_t end = begin;
  for (;; ++end) {
    if (text[end] == '(') ++depth;
    if (text[end] == ')' && --depth == 0) break;
  }
  text.replace(begin, end + 1 - begin, name);
}

}  // namespace halyard::aot
