// Mutated functions, many of them loops over buffers. Where the verifier accepts a module, it is compiled,
// and every export called with many arguments: machine code and the reference machine must agree.
#include <stdexcept>

#include "differential.h"
#include "fuzzing.h"
#include "loop_generator.h"
#include "module_mutator.h"
#include "vm/compile/compiler.h"
#include "vm/decode/code.h"
#include "vm/text/assembler.h"

using namespace halyard;
using namespace halyard::vm;

namespace {

constexpr uint32_t kRounds = 100;  // of calls; compiling costs as much as some thousand of them

// Printed at the end: one input stands for many calls.
struct Counts {
  uint64_t functions = 0;
  uint64_t calls = 0;
  ~Counts() {
    std::fprintf(stderr, "stat::compiled_functions: %llu\nstat::compared_calls: %llu\n",
                 static_cast<unsigned long long>(functions), static_cast<unsigned long long>(calls));
  }
} counts;

Result<Ref<BytecodeModule>> load(std::span<const uint8_t> file, const Compiler* compiler) {
  return BytecodeModule::load(Bytes::borrow(file, {}), test::known_types(),
                              {.verify_eagerly = true, .compiler = compiler});
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Compiler* const compiler = [] {
    const Result<const Compiler*> found = Compiler::find();
    if (!found) fuzz::finding(found.error().text());
    return *found;
  }();
  const Result<Ref<BytecodeModule>> plain = load({data, size}, nullptr);
  if (!plain) return 0;
  // Whether there is anything to compare, before it costs a compilation.
  test::Choices first(size * 31 + data[size / 2]);
  const test::Comparison tried = compare_exports(*plain, first);
  if (!tried.difference.empty()) fuzz::finding(tried.difference);
  if (!tried.not_compared.empty()) return 0;
  const Result<Ref<BytecodeModule>> compiled = load({data, size}, compiler);
  if (!compiled) fuzz::finding("a module loads, but not with a compiler: " + compiled.error().text());
  uint64_t functions = 0;
  for (uint32_t i = 0; i < (*compiled)->functions().size(); ++i)
    functions += static_cast<bool>((*(*compiled)->code(i))->compiled);
  if (functions == 0) return 0;
  test::Choices choices(size * 31 + data[size / 2]);
  const test::Comparison comparison = compare_exports(*compiled, choices, kRounds);
  if (!comparison.difference.empty()) fuzz::finding(comparison.difference);
  counts.functions += functions;
  for (const uint32_t code : comparison.codes) counts.calls += code;
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 16 != 0) return fuzz::mutate_module(data, size, max_size, seed);
  test::Choices choices(seed);
  const auto file = assemble(test::generate_loops(choices), {15 + choices.below(3), "loops"});
  if (!file || file->size() > max_size) return fuzz::mutate_module(data, size, max_size, seed);
  std::memcpy(data, file->data(), file->size());
  return file->size();
}
