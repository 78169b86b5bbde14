// Counts allocator calls and passes them to the C library.
#include "allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace halyard::tools {
namespace {

// Replacements of malloc can only access globals.
std::atomic<bool> counting = false;
std::atomic<uint64_t> count = 0;

}  // namespace

AllocationCount::AllocationCount() {
  count = 0;
  counting = true;
}
AllocationCount::~AllocationCount() { counting = false; }
uint64_t AllocationCount::so_far() const { return count.load(); }

}  // namespace halyard::tools

#if HALYARD_SANITIZER_KIND == 0
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static void note_allocation() {
  if (halyard::tools::counting.load(std::memory_order_relaxed))
    halyard::tools::count.fetch_add(1, std::memory_order_relaxed);
}

__attribute__((visibility("default"))) void* malloc(size_t size) {
  note_allocation();
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t size) {
  note_allocation();
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void* realloc(void* block, size_t size) {
  note_allocation();
  return __libc_realloc(block, size);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t size) {
  note_allocation();
  return __libc_memalign(alignment, size);
}
__attribute__((visibility("default"))) int posix_memalign(void** block, size_t alignment, size_t size) {
  note_allocation();
  *block = __libc_memalign(alignment, size);
  return *block ? 0 : ENOMEM;
}
}
#endif
