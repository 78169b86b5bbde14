// Copies the words without their addresses.
#include "front/plain_function.h"

#include <algorithm>
#include <cstring>

#include "front/cost.h"
#include "vm/decode/words.h"

namespace halyard::jit {

namespace {

using vm::CallSite;
using vm::DecodedOp;
using vm::Op;
using vm::Word;

// A larger function costs more to compile than compiled code saves.
constexpr size_t kMaxWords = 8192;
constexpr size_t kMaxState = size_t{1} << 20;  // words times slots
constexpr uint32_t kMaxEntries = 256;

// Whether the word's `b` is the number of refs that the interpreter releases.
bool has_ref_slots(const Word& word) {
  return word.op == static_cast<uint16_t>(vm::DecodedOp::return_none) ||
         word.op == static_cast<uint16_t>(vm::DecodedOp::return_32) ||
         word.op == static_cast<uint16_t>(vm::DecodedOp::return_64);
}

bool is_call(const Word& word) {
  return word.op == static_cast<uint16_t>(Op::call) ||
         word.op == static_cast<uint16_t>(DecodedOp::call_import);
}

// The parts of a call site that the code generator may read.
CallSite plain(const CallSite& site) {
  CallSite copy;
  copy.function = site.function;
  copy.is_import = site.is_import;
  copy.argument_count = site.argument_count;
  copy.result_count = site.result_count;
  copy.arguments = site.arguments;
  copy.results = site.results;
  return copy;
}

Word address_of(const CallSite& site) {
  const CallSite* const address = &site;
  Word word;
  std::memcpy(&word, &address, sizeof word);
  return word;
}

}  // namespace

PlainFunction::PlainFunction(const halyard_jit_function_t& function) : function_(function) {
  const std::span<const Word> words(static_cast<const Word*>(function.words), function.word_count);
  words_.resize(words.size());
  for (uint32_t at = 0; at < words.size(); at += vm::word_count(words[at])) {
    std::copy_n(words.begin() + at, vm::plain_word_count(words[at]), words_.begin() + at);
    if (!is_call(words[at])) continue;
    sites_.push_back(plain(vm::call_site(&words[at])));
    calls_.push_back(at);
  }
  for (size_t i = 0; i < sites_.size(); ++i) words_[calls_[i] + 1] = address_of(sites_[i]);
  function_.words = words_.data();
}

std::string PlainFunction::refusal() const {
  if (words_.size() > kMaxWords)
    return "it has " + std::to_string(words_.size()) + " words; at most " + std::to_string(kMaxWords) +
           " are compiled";
  if (words_.size() * std::max<size_t>(function_.value_slots, 1) > kMaxState)
    return "it has too many registers for its length";
  if (function_.entry_count == 0) return "it has no instruction that is compiled";
  if (function_.entry_count > kMaxEntries)
    return "compiled code would leave it in " + std::to_string(function_.entry_count) + " places; at most " +
           std::to_string(kMaxEntries) + " are compiled";
  if (const Cost cost = estimate_cost(function_, words_); cost.total > kMaxCost)
    return "it would take too long to compile: it has " + std::to_string(cost.instructions) +
           " instructions that are compiled, " + std::to_string(cost.loops) + " loops and " +
           std::to_string(cost.own_calls) + " calls to itself, an estimated cost of " +
           std::to_string(cost.total) + "; at most " + std::to_string(kMaxCost) + " is compiled";
  return {};
}

void PlainFunction::add_to(Digester& digester) const {
  std::vector<Word> words = words_;
  for (const uint32_t call : calls_) words[call + 1] = {};
  if (!function_.own_calls) {  // see below
    for (uint32_t at = 0; at < words.size(); at += vm::word_count(words_[at]))
      if (has_ref_slots(words[at])) words[at].b = 0;
  }
  digester.add_all(std::span<const Word>(words));
  digester.add(sites_.size());
  for (const CallSite& site : sites_) {
    digester.add(site.function);
    digester.add(site.is_import);
    digester.add(site.argument_count);
    digester.add(site.result_count);
    digester.add(site.arguments);
    digester.add(site.results);
  }
  digester.add_all(std::span(function_.lists, function_.list_count));
  digester.add_all(std::span(function_.arguments, function_.argument_count));
  for (const uint32_t number : {function_.entry_count, function_.global_bytes, function_.fast_math,
                                function_.own_calls, function_.ordinal, function_.kept_nans})
    digester.add(number);
  // Frames have more slots with jit=auto than with jit=always. The code differs only if it makes frames.
  if (function_.own_calls)
    for (const uint32_t number : {function_.value_slots, function_.ref_slots, function_.frame_bytes})
      digester.add(number);
  digester.add(function_.result_count);
  digester.add_all(std::span(function_.layout, 1));
}

}  // namespace halyard::jit
