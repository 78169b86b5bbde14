// Counts and forwards to the C library's function.
#include "lock_count.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

#include "halyard/abi.h"

namespace warm {
namespace {

std::atomic<int64_t> taken;

}  // namespace

int64_t locks_taken() { return taken.load(); }

}  // namespace warm

#if HALYARD_SANITIZER_KIND == 0
extern "C" __attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Function = int (*)(pthread_mutex_t*);
  // Not a static of the function: its guard could take a mutex itself.
  static std::atomic<Function> original;
  Function function = original.load(std::memory_order_acquire);
  if (!function) {
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    original.store(function, std::memory_order_release);
  }
  ++warm::taken;
  return function(mutex);
}
#endif
