// Included before every source with planted changes (tests/mutation): whether the change of this number is made in this process.
#ifndef HALYARD_TESTS_MUTATION_PLANTED_H_
#define HALYARD_TESTS_MUTATION_PLANTED_H_
extern "C" {
extern int halyard_mutant;                         // its number, or 0
extern volatile unsigned char* halyard_mutants_reached;  // which numbers were asked for
}
[[gnu::always_inline]] constexpr bool halyard_planted(int number) {
  if (__builtin_is_constant_evaluated()) return false;
  halyard_mutants_reached[number] = 1;
  return halyard_mutant == number;
}
#endif  // HALYARD_TESTS_MUTATION_PLANTED_H_
