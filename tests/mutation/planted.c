// The state of planted changes: HALYARD_MUTANT is the number of the one that is made, HALYARD_MUTANTS_REACHED a file in which each
// number that is asked for gets a byte. The file is mapped: it is right also after a crash.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMost = 65536 };

static unsigned char unseen[kMost];
int halyard_mutant = 0;
volatile unsigned char* halyard_mutants_reached = unseen;

__attribute__((constructor(101))) static void begin(void) {
  const char* number = getenv("HALYARD_MUTANT");
  if (number) halyard_mutant = atoi(number);
  const char* path = getenv("HALYARD_MUTANTS_REACHED");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* bytes = mmap(NULL, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes != MAP_FAILED) halyard_mutants_reached = bytes;
  close(file);
}
