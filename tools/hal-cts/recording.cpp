// Appends to a flat list of commands.
#include "recording.h"

namespace halyard::cts {

void Recording::append(const void* command, size_t size, uint32_t extra) {
  const size_t at = words_.size();
  words_.resize(at + (size + extra) / sizeof words_[0], 0xEEEEEEEEEEEEEEEE);
  std::memcpy(&words_[at], command, size);
  ++count_;
}

}  // namespace halyard::cts
