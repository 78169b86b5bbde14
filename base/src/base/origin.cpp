// The fork counter, and the handler that increments it.
#include "base/origin.h"

#include <pthread.h>

namespace halyard {

constinit std::atomic<uint32_t> fork_count{0};

namespace {

void count_fork() { fork_count.fetch_add(1, std::memory_order_relaxed); }

// Runs when the library is loaded, before it creates objects. Unloading the library removes the handler.
[[gnu::constructor]] void watch_forks() { static_cast<void>(::pthread_atfork(nullptr, nullptr, count_fork)); }

}  // namespace

}  // namespace halyard
