// Reads the cpuid leaves by which LLVM identifies a processor, except for the parts that differ between
// cores. On ARM, reads the kernel's description of the processor.
#include "front/processor.h"

#include <gnu/libc-version.h>

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

namespace halyard::jit {

namespace {

template <typename Number>
void add(std::string& id, Number number) {
  id.append(reinterpret_cast<const char*>(&number), sizeof number);
}

#if defined(__x86_64__)

// The registers of a leaf. Bits of `parts`: 1 eax, 2 ebx, 4 ecx, 8 edx.
struct Leaf {
  uint32_t leaf, part;
  uint32_t parts;
};
constexpr Leaf kLeaves[] = {{0, 0, 15},         {1, 0, 1 | 4 | 8}, {7, 0, 15},
                            {7, 1, 15},         {13, 1, 1},        {20, 0, 2},
                            {25, 0, 2},         {36, 0, 2},        {0x80000001, 0, 4 | 8},
                            {0x80000007, 0, 8}, {0x80000008, 0, 2}};

void add_features(std::string& id) {
  for (const Leaf& leaf : kLeaves) {
    uint32_t registers[4] = {};
    __get_cpuid_count(leaf.leaf, leaf.part, &registers[0], &registers[1], &registers[2], &registers[3]);
    for (uint32_t i = 0; i < 4; ++i)
      if (leaf.parts & (1u << i)) add(id, registers[i]);
  }
  // The registers that the operating system saves; wider registers are not used without its support.
  uint32_t a = 0, b = 0, c = 0, d = 0;
  constexpr uint32_t kSaves = 1u << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) && (c & kSaves)) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    add(id, low);
    add(id, high);
  }
}

#else

void add_features(std::string& id) {
  add(id, ::getauxval(AT_HWCAP));
  add(id, ::getauxval(AT_HWCAP2));
#if defined(__aarch64__)
  constexpr unsigned long kTellsItsModel = 1ul << 11;  // HWCAP_CPUID
  if (::getauxval(AT_HWCAP) & kTellsItsModel) {
    uint64_t model = 0;
    __asm__("mrs %0, MIDR_EL1" : "=r"(model));
    add(id, model);
  }
#endif
}

#endif

}  // namespace

const std::string& processor_id() {
  static const std::string& id = *new std::string([] {
    std::string made(::gnu_get_libc_version());
    add_features(made);
    return made;
  }());  // not destroyed at exit
  return id;
}

}  // namespace halyard::jit
