/* What the model needs in a page: memory functions, and places for its state and its tensors. */
#include "model.h"
#include "string.h"

void* memcpy(void* restrict to, const void* restrict from, size_t count) {
  return __builtin_memcpy(to, from, count);
}
void* memmove(void* to, const void* from, size_t count) { return __builtin_memmove(to, from, count); }
void* memset(void* to, int value, size_t count) { return __builtin_memset(to, value, count); }

static model_state state;
static unsigned char arena[MODEL_ARENA_BYTES + 1];
static float x[8];
static float y[8];
static float product[8];

/* The addresses of the tensors in the memory that JavaScript sees. */
float* input(int index) { return index == 0 ? x : y; }
float* output(void) { return product; }

int start(void) { return model_init(&state, arena, sizeof arena); }
int run(void) { return model_mul(&state, x, y, product); }
