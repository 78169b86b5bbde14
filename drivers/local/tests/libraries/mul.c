/* The kernel of examples/elementwise_mul.vmasm as machine code: the constant is the number of elements
 * that a workgroup multiplies. */
#include "abi.h"

static int mul(const struct environment* e, const struct dispatch* d, const struct workgroup* w) {
  (void)e;
  const float *a = d->bindings[0], *b = d->bindings[1];
  float* to = d->bindings[2];
  const u32 count = d->constants[0];
  for (u32 i = w->x * count; i < (w->x + 1) * count; ++i) to[i] = a[i] * b[i];
  return 0;
}

static entry_function* const functions[] = {mul};
static const char* const names[] = {"mul"};
static const struct attributes attributes[] = {{.binding_count = 3, .constant_count = 1}};
static const struct header header = {REVISION, "mul", 0, 0};
static const struct library library = {
    .header = &header,
    .exports = {.count = 1, .functions = functions, .attributes = attributes, .names = names}};

PUBLIC const struct library* iree_hal_executable_library_query(u32 revision, const struct environment* e) {
  (void)e;
  return revision == REVISION ? &library : 0;
}
