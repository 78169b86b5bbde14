// The container of a compiled module: finds the FlatBuffer in a .vmfb file, zip or flat, and proves that
// everything in it can be read: after this, accessors of the generated schema are safe. Specified by
// module-format.md, section 2.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"

namespace halyard::schema {
struct BytecodeModule;
}

namespace halyard::vm {

struct Archive {
  Ref<Bytes> bytes;     // the whole file
  Ref<Bytes> metadata;  // owns `module`: `bytes`, or an aligned copy where the file's memory is not
  const schema::BytecodeModule* module = nullptr;
  uint64_t rodata_base = 0;  // where external rodata starts, from the start of the file; may lie past its end
};

// INVALID_ARGUMENT for every defect.
Result<Archive> open_archive(Ref<Bytes> bytes);

}  // namespace halyard::vm
