// Loops of kernels in forms that C compilers compile to faster code. Each form has the same results, bit for
// bit.
#pragma once

#include "plan/cells.h"
#include "plan/simplify.h"

namespace halyard::aot {

// A loop over the elements of two dimensions, whose counter is only divided by the size of the inner one,
// becomes two loops. A loop whose first turn takes a branch of its own becomes that turn and a loop of the
// others. (split_loops.cpp)
void split_loops(Nodes& nodes, Values& values);

// An element that a loop stores and the next turn loads is kept in a variable: compilers do not know that the
// load gives what was stored, and wait for the memory. (recurrences.cpp)
void keep_stored(Nodes& nodes, Values& values, const OverlapOf& overlap);

// An element of memory that loops sum into is kept in a variable until the sum is complete. (sums.cpp)
void keep_sums(Nodes& nodes, const Values& values, const OverlapOf& overlap);

// A load of an element that a statement before has stored becomes the stored value; a store of an element
// that is stored again before it is loaded is left out. (sums.cpp)
void forward_stores(Nodes& nodes, const Values& values, const OverlapOf& overlap);

// Sums of neighbouring elements become rows of sums, which C compilers vectorize, of several rows at a time.
// Returns whether there were any. (interchange.cpp)
bool interchange_loops(Nodes& nodes, Values& values, const OverlapOf& overlap);

// Neighbouring workgroups that compute strips of the same rows: the loop over the workgroups moves into the
// kernel, around the loop over a row's strip, so that memory is visited in order. `group` is the number of
// the workgroup, of `count`. Returns whether that was possible. (strips.cpp)
bool join_strips(Nodes& nodes, Values& values, const OverlapOf& overlap, ValueId group, ValueId count);

// ---- for these files

// A counted loop with the same counter and other statements or bounds.
Node loop_like(const Node& loop, Nodes body);
// A loop that runs from a constant to a greater one in steps of 1.
bool has_fixed_turns(const Node& node, const Values& values);
// The loop and those inside of it, each with fixed turns, with only addresses before the next one; the
// innermost one may have any statements but a loop with fixed turns at the end.
std::vector<Node*> loop_nest(Node& outer, const Values& values);
// A statement without effect, of which only the value counts; it may load.
bool is_pure_let(const Node& node);
// Removes the statements without effect whose values no statement after them uses.
void remove_unused_lets(Nodes& body, const Values& values);

}  // namespace halyard::aot
