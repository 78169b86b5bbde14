/* A model on a Cortex-M microcontroller: no operating system, no heap, no C library but memcpy and memset.
 * The model's arena, state and constants have places of their own in the linker script. */
#include "model.h"

extern uint32_t stack_top[], data_begin[], data_end[], data_load[], bss_begin[], bss_end[];
int main(void);

/* The program starts here: the processor reads the stack pointer and this address from the vector table. */
void reset(void) {
  uint32_t* to = data_begin;
  for (const uint32_t* from = data_load; to != data_end;) *to++ = *from++;
  for (to = bss_begin; to != bss_end;) *to++ = 0;
#if defined(__ARM_FP)
  *(volatile uint32_t*)0xE000ED88u |= 0xFu << 20; /* switches the floating-point unit on */
  __asm__ volatile("dsb\n isb");
#endif
  main();
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static void* const vectors[16] = {
    stack_top, (void*)reset, (void*)reset, (void*)reset, (void*)reset, (void*)reset, (void*)reset};

/* A call of the debugger, or of qemu: 4 prints a text, 24 ends the program. */
static void semihost(uint32_t operation, const void* argument) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

static void print_number(int32_t value) {
  char text[16];
  char* at = text + sizeof text;
  uint32_t left = value < 0 ? 0 - (uint32_t)value : (uint32_t)value;
  *--at = '\0';
  *--at = ' ';
  do *--at = (char)('0' + left % 10);
  while ((left /= 10) != 0);
  if (value < 0) *--at = '-';
  semihost(4, at);
}

static model_state state;
static unsigned char arena[MODEL_ARENA_BYTES + 1]; /* not empty for a model without buffers */

int main(void) {
  static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const float y[8] = {10, 20, 30, 40, 50, 60, 70, 80};
  float product[8];
  int status = model_init(&state, arena, sizeof arena);
  if (status == 0) status = model_mul(&state, x, y, product);
  if (status == 0)
    for (int i = 0; i < 8; ++i) print_number((int32_t)product[i]);
  semihost(4, status == 0 ? "\n" : "the model failed\n");
  semihost(24, (const void*)0x20026); /* a normal exit */
}
