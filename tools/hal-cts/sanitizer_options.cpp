// Under a sanitizer, too, an allocation that is too large is refused rather than the end of the process:
// cases ask for those. The sanitizer's library looks for these functions by name.
extern "C" {
__attribute__((visibility("default"))) const char* __asan_default_options();
__attribute__((visibility("default"))) const char* __tsan_default_options();
}

const char* __asan_default_options() { return "allocator_may_return_null=1"; }
const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
