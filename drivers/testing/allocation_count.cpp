// The allocation functions, which count and call those of the C library.
#include "allocation_count.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace halyard::driver_tests {
namespace {

std::atomic<int64_t> made, freed;

}  // namespace

AllocationCount allocation_count() {
  const int64_t until_now = made.load();
  return {until_now, until_now - freed.load()};
}

}  // namespace halyard::driver_tests

#if HALYARD_SANITIZER_KIND == 0
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);

__attribute__((visibility("default"))) void* malloc(size_t size) {
  ++halyard::driver_tests::made;
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t size) {
  ++halyard::driver_tests::made;
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void* realloc(void* block, size_t size) {
  ++halyard::driver_tests::made;
  if (block) ++halyard::driver_tests::freed;
  return __libc_realloc(block, size);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t size) {
  ++halyard::driver_tests::made;
  return __libc_memalign(alignment, size);
}
__attribute__((visibility("default"))) int posix_memalign(void** block, size_t alignment, size_t size) {
  ++halyard::driver_tests::made;
  *block = __libc_memalign(alignment, size);
  return *block ? 0 : ENOMEM;
}
__attribute__((visibility("default"))) void free(void* block) {
  if (block) ++halyard::driver_tests::freed;
  __libc_free(block);
}
}
#endif
