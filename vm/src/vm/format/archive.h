// The container of a compiled module. Finds the FlatBuffer in a .vmfb file (a zip or a flat file) and
// verifies it, so that the accessors of the generated schema are safe afterwards. Specified by
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
  Ref<Bytes> metadata;  // owns `module`: `bytes`, or an aligned copy if the file is not aligned in memory
  const schema::BytecodeModule* module = nullptr;
  uint64_t rodata_base = 0;  // file offset of the external rodata; may be past the end of the file
};

// INVALID_ARGUMENT for every defect.
Result<Archive> open_archive(Ref<Bytes> bytes);

}  // namespace halyard::vm
