// Loops of kernels in forms that C compilers compile to faster code. Each form has the same results, bit for
// bit.
#pragma once

#include "plan/simplify.h"

namespace halyard::aot {

// A loop over the elements of two dimensions, whose counter is only divided by the size of the inner one,
// becomes two loops. A loop whose first turn takes a branch of its own becomes that turn and a loop of the
// others. (split_loops.cpp)
void split_loops(Nodes& nodes, Values& values);

// An element that a loop stores and the next turn loads is kept in a variable: compilers do not know that the
// load gives what was stored, and wait for the memory. (recurrences.cpp)
void keep_stored(Nodes& nodes, Values& values, const OverlapOf& overlap);

// Neighbouring workgroups that compute strips of the same rows: the loop over the workgroups moves into the
// kernel, around the loop over a row's strip, so that memory is visited in order. `group` is the number of
// the workgroup, of `count`. Returns whether that was possible. (strips.cpp)
bool join_strips(Nodes& nodes, Values& values, const OverlapOf& overlap, ValueId group, ValueId count);

// ---- for these files

// A counted loop with the same counter and other statements or bounds.
Node loop_like(const Node& loop, Nodes body);
// A loop that runs from a constant to a greater one in steps of 1.
bool has_fixed_turns(const Node& node, const Values& values);
// A statement without effect, of which only the value counts; it may load.
bool is_pure_let(const Node& node);
// Removes the statements without effect whose values no statement after them uses.
void remove_unused_lets(Nodes& body, const Values& values);
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
