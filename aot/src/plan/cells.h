// Loads and stores of single elements of memory in the texts of nodes, and variables in their place.
#pragma once

#include <string>
#include <string_view>

#include "plan/nodes.h"

namespace halyard::aot {

// One store of an element.
bool is_element_store(const Node& node);
// The value that such a store stores, as C of an unsigned type.
std::string stored_text(const Node& store);
// The type of a variable in place of an element of memory: a float where all loads and stores are of floats,
// because their bits in an integer would wait for the way between two kinds of registers.
class CellType {
 public:
  explicit CellType(uint32_t width);

  // A load or store of the element.
  void add(const Node& node);
  std::string declaration() const;
  // The text of a load or the value of a store, with the variable instead of the element.
  void load(std::string& text, MemoryId memory, std::string_view name) const;
  std::string stored(const Node& store) const;
  // The variable as the value of a store.
  std::string value(std::string_view name) const;
  // The load as a value of the variable's type.
  std::string loaded(std::string_view text) const;

 private:
  uint32_t width_;
  std::string_view name_;  // empty: an integer
};
// Replaces the load of an element of the memory by a name.
void replace_load(std::string& text, MemoryId memory, std::string_view name);

}  // namespace halyard::aot
