// finish(): copies call sites, words, places, lists and arguments into one block of memory.
#include "vm/decode/code_builder.h"

namespace halyard::vm {

namespace {

template <typename T>
size_t bytes(const Array<T>& items) {
  return items.size() * sizeof(T);
}

template <typename T>
std::span<T> put(std::byte*& at, const Array<T>& items) {
  const size_t size = bytes(items);
  auto* const first = reinterpret_cast<T*>(at);
  if (size) std::memcpy(at, items.data(), size);
  at += size;
  return {first, items.size()};
}

}  // namespace

std::span<Word> CodeBuilder::finish(FunctionCode& code) {
  static_assert(std::is_trivially_copyable_v<CallSite> && alignof(CallSite) >= alignof(Place));
  static_assert(sizeof(CallSite) % 8 == 0 && sizeof(Word) == 8, "words are aligned");
  const size_t size = bytes(calls_) + bytes(words_) + bytes(places_) + bytes(lists_) + bytes(arguments_);
  code.memory = std::make_unique_for_overwrite<std::byte[]>(size);
  std::byte* at = code.memory.get();
  const std::span<CallSite> calls = put(at, calls_);
  const std::span<Word> words = put(at, words_);
  code.places = put(at, places_);
  code.lists = put(at, lists_);
  code.arguments = put(at, arguments_);
  for (size_t i = 0; i < calls.size(); ++i) {
    Word* const call = &words[call_words_[i]];
    *call = with_wide(call->op, call->a, code.frame_bytes);
    call[1] = data(&calls[i]);
    if (!calls[i].is_import) calls[i].bound = call + 2;
  }
  code.calls = calls;
  code.words = words;
  return words;
}

}  // namespace halyard::vm
