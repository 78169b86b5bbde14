// Lets allocations that are too large fail under a sanitizer, instead of terminating the process, because
// cases make such allocations. The sanitizer's library finds these functions by name.
extern "C" {
__attribute__((visibility("default"))) const char* __asan_default_options();
__attribute__((visibility("default"))) const char* __tsan_default_options();
}

const char* __asan_default_options() { return "allocator_may_return_null=1"; }
const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
