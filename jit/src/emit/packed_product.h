// vmvx.mmt4d: products of packed matrices.
#pragma once

#include "emit/loop_writer.h"
#include "emit/vector_set.h"

namespace halyard::jit {

// Writes the body of a function with the parameters of the import, after `begin` has begun it. Sums have the
// order of the terms; they are fused for the sizes of tiles for which local devices fuse them
// (docs/microkernels.md). Other functions are added to the module before.
void write_packed_product(LoopWriter& w, const VectorSet& vectors, const std::function<void()>& begin);

// Writes the body of query_tile_sizes.2d, whose results are stored through its last two arguments: the sizes
// that local devices on such processors have.
void write_tile_sizes(LoopWriter& w, const VectorSet& vectors);

}  // namespace halyard::jit
