// Overwrites free memory, and compares texts.
#include "lasting_texts.h"

#include <cstdlib>
#include <cstring>

namespace halyard::cts {

namespace {

constexpr int kPattern = 0xDD;

// Everything below the caller's frame, for texts that a function of the driver had in its own frame.
[[gnu::noinline]] void overwrite_stack() {
  uint8_t bytes[64 << 10];
  std::memset(bytes, kPattern, sizeof bytes);
  asm volatile("" : : "r"(bytes) : "memory");
}

// Several blocks of every size that a text, or the file that contains it, is likely to have had: malloc gives
// the blocks that were freed last.
void overwrite_heap() {
  struct Sizes {
    size_t first, last, step;
    int count;
  };
  constexpr Sizes kSizes[] = {{16, 1024, 16, 24}, {2048, 64 << 10, 1024, 4}};
  std::vector<void*> blocks;
  for (const Sizes& sizes : kSizes)
    for (size_t size = sizes.first; size <= sizes.last; size += sizes.step)
      for (int i = 0; i < sizes.count; ++i)
        if (void* const block = std::malloc(size)) blocks.push_back(std::memset(block, kPattern, size));
  asm volatile("" : : : "memory");
  for (void* const block : blocks) std::free(block);
}

}  // namespace

void LastingTexts::add(std::string what, std::string_view text) {
  if (!text.empty()) entries_.push_back({std::move(what), text.data(), std::string(text)});
}

void LastingTexts::check(Session& s, std::string_view after) const {
  overwrite_heap();
  overwrite_stack();
  for (const Entry& entry : entries_) {
    s.step(fmt::format("reading {} {}", entry.what, after));
    const std::string_view now(entry.text, entry.copy.size());
    if (!s.check("R23", now == entry.copy, fmt::format("{} {}", entry.what, after),
                 fmt::format("'{}', as when it was handed out", entry.copy),
                 fmt::format("'{}'; keep the text as long as what it describes", now)))
      return;
  }
}

}  // namespace halyard::cts
