// Chooses a sample.
#include "sample.h"

#include <algorithm>
#include <numeric>

namespace halyard::cts {

namespace {

// Formats 2118 as "2,118".
std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

}  // namespace

void try_sample(Session& s, uint64_t total, uint64_t most, const std::function<void(uint64_t)>& attempt) {
  const uint64_t wanted = std::min(total, most);
  if (wanted == 0) return;
  // A stride of about 0.618 of the total visits every number once, and leaves no large gap wherever it ends.
  uint64_t stride = std::max<uint64_t>(1, wanted * 618 / 1000);
  while (std::gcd(stride, wanted) != 1) ++stride;
  const int64_t end = now_ns() + s.patience_ns() / 4;
  uint64_t tried = 0;
  for (uint64_t at = 0; tried < wanted && (tried == 0 || now_ns() < end); at = (at + stride) % wanted) {
    // A number between this place and the next, not always the first.
    const auto place = [&](uint64_t number) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(number) * total / wanted);
    };
    attempt(place(at) + at % (place(at + 1) - place(at)));
    ++tried;
  }
  if (tried < total) s.remark(with_commas(tried) + " of " + with_commas(total) + " tried");
}

}  // namespace halyard::cts
