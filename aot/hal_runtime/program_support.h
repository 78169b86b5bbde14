/* What the files here need to compile alone, as the tests do. Not part of any program. */
#include <halyard/program.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

float vm_f32(uint32_t bits);
uint32_t vm_bits_f32(float value);
double vm_f64(uint64_t bits);
uint64_t vm_bits_f64(double value);

#define VM_REF_GLOBALS 4
#define VM_GLOBAL_BYTES 16
