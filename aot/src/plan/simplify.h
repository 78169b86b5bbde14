// Removes statements without effect, fuses loops, and keeps in variables what a buffer only carries from one
// fused loop to the next.
#pragma once

#include "plan/accesses.h"
#include "plan/objects.h"

namespace halyard::aot {

// Removes what neither effects nor `results` use.
void remove_unused(Nodes& nodes, const Values& values, const std::vector<ValueId>& results = {});

// Loops with the same counts, one after another, become one loop if each iteration of the second one needs
// only what the same iteration of the first one has done.
void fuse_loops(Nodes& nodes, Values& values, const OverlapOf& overlap);

// Buffers of which each iteration of a loop stores and then loads one element become variables. Their
// memories lose all accesses. Afterwards remove_unread() removes those of them that nothing reads, and
// returns whether there were any.
bool remove_unread(Nodes& nodes);
void replace_buffers(Nodes& nodes, const Values& values, const std::vector<Memory>& memories);

// Calls each(node) for all nodes, outer ones first.
template <typename Each>
void for_each_node(const Nodes& nodes, Each&& each) {
  for (const Node& node : nodes) {
    each(node);
    for_each_node(node.body, each);
    for_each_node(node.other, each);
  }
}

}  // namespace halyard::aot
