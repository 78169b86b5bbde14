// Names follow the vector function ABI of x86-64: _ZGV, the instruction set, N (no mask), the number of
// lanes, v for each argument, and the scalar function.
#include "codegen/vector_math.h"

#include <dlfcn.h>

#include <optional>
#include <vector>

namespace halyard::jit {

namespace {

using vm::Op;

struct Scalar {
  std::optional<Op> f32;  // none: fast_elementary.h computes it
  Op f64;
  const char* name;  // the f64 function
  uint32_t arguments = 1;
};
constexpr Scalar kScalars[] = {
    {Op::atan2_f32, Op::atan2_f64, "atan2", 2},
    {Op::pow_f32, Op::pow_f64, "pow", 2},
    {Op::atan_f32, Op::atan_f64, "atan"},
    {Op::cos_f32, Op::cos_f64, "cos"},
    {Op::sin_f32, Op::sin_f64, "sin"},
    {{}, Op::exp_f64, "exp"},
    {{}, Op::exp2_f64, "exp2"},
    {Op::expm1_f32, Op::expm1_f64, "expm1"},
    {Op::log_f32, Op::log_f64, "log"},
    {Op::log10_f32, Op::log10_f64, "log10"},
    {Op::log1p_f32, Op::log1p_f64, "log1p"},
    {Op::log2_f32, Op::log2_f64, "log2"},
    {{}, Op::tanh_f64, "tanh"},
    {{}, Op::erf_f64, "erf"},
};

struct InstructionSet {
  char letter;
  uint32_t bytes;
  const char* needs;
};
constexpr InstructionSet kSets[] = {{'b', 16, "sse4.2"}, {'d', 32, "avx2"}, {'e', 64, "avx512f"}};

std::vector<VectorFunction> look_up() {
  std::vector<VectorFunction> found;
#if defined(__x86_64__)
  void* const library = ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed
  if (!library) return found;
  for (const Scalar& scalar : kScalars) {
    for (const InstructionSet& set : kSets) {
      for (const uint32_t size : {4u, 8u}) {
        const std::optional<Op> op = size == 4 ? scalar.f32 : scalar.f64;
        if (!op) continue;
        const uint32_t lanes = set.bytes / size;
        const std::string name = std::string("_ZGV") + set.letter + "N" + std::to_string(lanes) +
                                 std::string(scalar.arguments, 'v') + "_" + scalar.name +
                                 (size == 4 ? "f" : "");
        if (::dlsym(library, name.c_str())) found.push_back({*op, name, scalar.arguments, lanes, set.needs});
      }
    }
  }
#endif
  return found;
}

}  // namespace

std::span<const VectorFunction> vector_functions() {
  static const auto& functions = *new std::vector<VectorFunction>(look_up());  // not destroyed at exit
  return functions;
}

bool runs_on(const VectorFunction& function, llvm::StringRef features) {
  while (!features.empty()) {
    const auto [feature, rest] = features.split(',');
    if (feature.starts_with("+") && feature.drop_front() == function.needs) return true;
    features = rest;
  }
  return false;
}

}  // namespace halyard::jit
