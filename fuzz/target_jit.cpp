// Mutated functions, many of them loops over buffers, then 8 bytes that choose the arguments. If the verifier
// accepts a module, it is compiled and all exports are called many times: machine code and the reference
// machine must agree. Instead of a module, 8 bytes may select a module with several contractions, or one with
// many copies of one construct, which must not take long to compile.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "contraction_generator.h"
#include "differential.h"
#include "fuzzing.h"
#include "loop_generator.h"
#include "module_mutator.h"
#include "private_bytes.h"
#include "sums_generator.h"
#include "vm/compile/compiler.h"
#include "vm/compile/loaded_module.h"
#include "vm/decode/code.h"
#include "vm/text/assembler.h"

using namespace halyard;
using namespace halyard::vm;

namespace {

constexpr size_t kArgumentBytes = sizeof(uint64_t);
constexpr size_t kSeedBytes = sizeof(uint64_t);  // no module is that small
// A compilation costs as much as some hundred calls, so that each input makes many: as many rounds as the
// instructions of the reference machine allow, which take about as long.
constexpr uint32_t kRounds = 256;
constexpr uint32_t kRoundsTogether = 16;
constexpr uint64_t kInstructions = 2'000'000;
// One of this many mutations changes the module; the others change its arguments.
constexpr uint32_t kMutationsOfArguments = 4;
constexpr uint32_t kContractions = 3;  // functions of a module

// Counters, printed at the end, because one input makes many calls. `calls` are those of compiled code whose
// outcome was compared with the reference machine's.
struct Counts {
  uint64_t functions = 0;
  uint64_t calls = 0;
  ~Counts() {
    std::fprintf(stderr, "stat::compiled_functions: %llu\nstat::compared_calls: %llu\n",
                 static_cast<unsigned long long>(functions), static_cast<unsigned long long>(calls));
  }
} counts;

Result<Ref<LoadedModule>> load_module(std::span<const uint8_t> file, const Compiler* compiler) {
  return LoadedModule::load(fuzz::private_bytes(file), test::known_types(),
                            {.verify_eagerly = true, .compiler = compiler});
}

// The module of the last input, which is not compiled again if the next input differs only in arguments.
class Last {
 public:
  // Null if there is nothing to compare.
  const Ref<LoadedModule>* load(std::span<const uint8_t> file) {
    if (!std::ranges::equal(file, file_)) {
      module_.reset();
      file_.assign(file.begin(), file.end());
      module_ = compile(file_);
    }
    return module_ ? &*module_ : nullptr;
  }

 private:
  static std::optional<Ref<LoadedModule>> compile(std::span<const uint8_t> file) {
    const Result<const Compiler*> compiler = Compiler::find();
    if (!compiler) fuzz::finding(compiler.error().text());
    const Result<Ref<LoadedModule>> plain = load_module(file, nullptr);
    if (!plain) return {};
    // A kernel may write to constants after functions were verified.
    if (!test::overwrite_constants(**plain)) fuzz::finding("functions change when constants are written");
    // Checked before the compilation, because that is expensive.
    test::Choices first(file.size());
    const test::Comparison tried = compare_exports(*plain, first);
    if (!tried.difference.empty()) fuzz::finding(tried.difference);
    if (!tried.not_compared.empty()) return {};
    Result<Ref<LoadedModule>> compiled = load_module(file, *compiler);
    if (!compiled) fuzz::finding("a module loads, but not with a compiler: " + compiled.error().text());
    uint64_t functions = 0;
    for (uint32_t i = 0; i < (*compiled)->functions().size(); ++i)
      functions += static_cast<bool>((*(*compiled)->code(i))->compiled);
    if (!test::overwrite_constants(**compiled)) fuzz::finding("functions change when constants are written");
    if (functions == 0) return {};
    counts.functions += functions;
    return *std::move(compiled);
  }

  std::vector<uint8_t> file_;
  std::optional<Ref<LoadedModule>> module_;
};

// Compares calls whose arguments follow from a number.
void call(const Ref<LoadedModule>& module, uint64_t arguments) {
  test::Choices choices(arguments);
  uint64_t left = kInstructions;
  for (uint32_t round = 0; round < kRounds && left != 0; round += kRoundsTogether) {
    const test::Comparison comparison =
        compare_exports(module, choices, {.rounds = kRoundsTogether, .instructions = left});
    if (!comparison.difference.empty()) fuzz::finding(comparison.difference);
    const uint64_t calls = std::accumulate(comparison.codes.begin(), comparison.codes.end(), uint64_t{0});
    const uint64_t executed =
        std::accumulate(comparison.executed.begin(), comparison.executed.end(), uint64_t{0});
    counts.calls += calls;
    left -= std::min(left, executed);
    if (!comparison.not_compared.empty()) return;
  }
}

// Like fuzz::mutate_module, but sometimes creates new loops, or many copies of one construct.
size_t change_module(uint8_t* data, size_t size, size_t max_size, test::Choices& choices) {
  if (max_size >= kSeedBytes && choices.one_in(8)) {
    const uint64_t seed = choices.bits(kSeedBytes);
    std::memcpy(data, &seed, kSeedBytes);
    return kSeedBytes;
  }
  if (choices.one_in(16)) {
    const auto file =
        assemble(choices.one_in(3) ? test::generate_sums(choices) : test::generate_loops(choices),
                 {15 + choices.below(3), "loops"});
    if (file && file->size() <= max_size) {
      std::memcpy(data, file->data(), file->size());
      return file->size();
    }
  }
  return fuzz::mutate_module(data, size, max_size, static_cast<unsigned>(choices.bits(4)));
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Last last;
  if (size < kArgumentBytes) return 0;
  std::vector<uint8_t> generated;
  std::span<const uint8_t> file(data, size - kArgumentBytes);
  if (file.size() == kSeedBytes) {
    uint64_t seed = 0;
    std::memcpy(&seed, data, kSeedBytes);
    test::Choices choices(seed);
    generated = choices.one_in(2)
                    ? *assemble(test::generate_contractions(choices, kContractions), {17, "contractions"})
                    : *assemble(test::generate_much(choices), {17, "much"});
    file = generated;
  }
  const Ref<LoadedModule>* const module = last.load(file);
  if (!module) return 0;
  uint64_t arguments = 0;
  std::memcpy(&arguments, data + size - kArgumentBytes, kArgumentBytes);
  call(*module, arguments);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (max_size < kArgumentBytes) return size;
  test::Choices choices(seed);
  const uint64_t arguments = choices.bits(kArgumentBytes);
  const size_t most = max_size - kArgumentBytes;
  size_t file = std::min(size < kArgumentBytes ? size : size - kArgumentBytes, most);
  if (choices.one_in(kMutationsOfArguments)) file = change_module(data, file, most, choices);
  std::memcpy(data + file, &arguments, kArgumentBytes);
  return file + kArgumentBytes;
}
