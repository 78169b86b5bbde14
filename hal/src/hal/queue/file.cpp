// Files over host memory.
#include "hal/queue/file.h"

#include <utility>

namespace halyard::hal {

const ObjectType File::kType = object_type<File>("hal.file");

Ref<File> File::from_memory(std::span<uint8_t> bytes, uint32_t access, Ref<Object> keep) {
  return make<File>(bytes, access, std::move(keep));
}

Result<Ref<File>> File::from_memory(std::span<uint8_t> bytes, uint32_t access, Ref<Object> keep,
                                    Budget* memory, uint64_t kept) {
  Ref<File> file = from_memory(bytes, access, std::move(keep));
  HALYARD_TRY(file->charge_.start(memory, block_bytes(sizeof(File)) + block_bytes(kept), "a file"));
  return file;
}

}  // namespace halyard::hal
