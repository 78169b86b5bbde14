// The natural loops of a function: a head, and the blocks from which the head is reached again without
// leaving the loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vm/decode/flow.h"

namespace halyard::vm {

struct NaturalLoop {
  uint32_t head = 0;
  std::vector<bool> has_block;   // by block
  std::vector<uint16_t> values;  // slots that the loop writes
  std::vector<uint16_t> refs;    // ref registers that the loop writes
  bool is_uniform = true;        // false once its iterations were found to differ
};

// A loop that can be entered other than by its head is not listed. Nothing if they would take too long to
// find: the time and the memory are proportional to blocks times loops.
std::optional<std::vector<NaturalLoop>> natural_loops(const Flow& flow);

// Calls `each` with the index of each block that may follow.
template <typename Each>
void for_each_successor(const Flow& flow, uint32_t block, Each each) {
  for (const Flow::Edge& edge : flow.edges(block)) each(edge.block);
  if (flow.blocks()[block].falls_through && block + 1 < flow.blocks().size()) each(block + 1);
}

}  // namespace halyard::vm
