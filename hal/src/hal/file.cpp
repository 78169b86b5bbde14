// Files over host memory.
#include "hal/file.h"

#include <utility>

namespace halyard::hal {

const ObjectType File::kType = object_type<File>("hal.file");

Ref<File> File::from_memory(std::span<uint8_t> bytes, uint32_t access, Ref<Object> keep) {
  return make<File>(bytes, access, std::move(keep));
}

}  // namespace halyard::hal
