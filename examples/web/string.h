/* The part of <string.h> that a model needs, for compilers without a C library. runtime.c has the functions.
 */
#ifndef STRING_H_
#define STRING_H_
#include <stddef.h>
void* memcpy(void* restrict to, const void* restrict from, size_t count);
void* memmove(void* to, const void* from, size_t count);
void* memset(void* to, int value, size_t count);
int memcmp(const void* a, const void* b, size_t count);
size_t strlen(const char* text);
#endif
