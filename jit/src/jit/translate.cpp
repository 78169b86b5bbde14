// What is compiled at all.
#include "jit/translate.h"

#include <algorithm>

#include "jit/translator.h"

namespace halyard::jit {

namespace {

// Above these a function costs more to compile than it is worth, whatever it does.
constexpr size_t kMostWords = 8192;
constexpr size_t kMostState = size_t{1} << 20;  // words by slots
constexpr uint32_t kMostEntries = 256;

}  // namespace

std::string translate(const halyard_jit_function_t& function, llvm::Module& module,
                      llvm::StringRef features) {
  if (function.word_count > kMostWords)
    return "it has " + std::to_string(function.word_count) + " words; at most " + std::to_string(kMostWords) +
           " are compiled";
  if (function.word_count * std::max<size_t>(function.value_slots, 1) > kMostState)
    return "it has too many registers for its length";
  if (function.entry_count == 0) return "there is nothing in it that is compiled";
  if (function.entry_count > kMostEntries)
    return "it is left in " + std::to_string(function.entry_count) + " places; at most " +
           std::to_string(kMostEntries) + " are worth it";
  Translator(function, module, features).run();
  return {};
}

}  // namespace halyard::jit
