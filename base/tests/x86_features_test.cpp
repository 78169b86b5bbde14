// The C library's answers are those of the compiler's support library.
#include "halyard/x86_features.hpp"

#include <gtest/gtest.h>

#ifdef __x86_64__

namespace halyard {
namespace {

struct Pair {
  const char* name;
  bool here;
  bool in_compiler;
};
#define SAME(feature, name) {name, x86::feature(), __builtin_cpu_supports(name) != 0}

TEST(X86Features, AreThoseOfTheCompiler) {
  const Pair pairs[] = {
      SAME(sse3, "sse3"),
      SAME(ssse3, "ssse3"),
      SAME(sse4_1, "sse4.1"),
      SAME(sse4_2, "sse4.2"),
      SAME(sse4a, "sse4a"),
      SAME(pclmul, "pclmul"),
      SAME(aes, "aes"),
      SAME(popcnt, "popcnt"),
      SAME(avx, "avx"),
      SAME(fma, "fma"),
      SAME(fma4, "fma4"),
      SAME(xop, "xop"),
      SAME(f16c, "f16c"),
      SAME(bmi, "bmi"),
      SAME(bmi2, "bmi2"),
      SAME(avx2, "avx2"),
      SAME(vaes, "vaes"),
      SAME(vpclmulqdq, "vpclmulqdq"),
      SAME(avx512f, "avx512f"),
      SAME(avx512cd, "avx512cd"),
      SAME(avx512vl, "avx512vl"),
      SAME(avx512dq, "avx512dq"),
      SAME(avx512bw, "avx512bw"),
      SAME(avx512ifma, "avx512ifma"),
      SAME(avx512vbmi, "avx512vbmi"),
      SAME(avx512vpopcntdq, "avx512vpopcntdq"),
      SAME(avx512vnni, "avx512vnni"),
      SAME(avx512vbmi2, "avx512vbmi2"),
      SAME(avx512bitalg, "avx512bitalg"),
      SAME(avx512bf16, "avx512bf16"),
      SAME(avx512fp16, "avx512fp16"),
      SAME(amx_tile, "amx-tile"),
      SAME(amx_int8, "amx-int8"),
      SAME(amx_bf16, "amx-bf16"),
      SAME(level2, "x86-64-v2"),
      SAME(level3, "x86-64-v3"),
      SAME(level4, "x86-64-v4"),
  };
  for (const Pair& pair : pairs) EXPECT_EQ(pair.here, pair.in_compiler) << pair.name;
}

}  // namespace
}  // namespace halyard

#endif
