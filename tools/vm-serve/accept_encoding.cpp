// Parses a list of codings with weights.
#include "accept_encoding.h"

#include <algorithm>
#include <optional>

#include "trimmed.h"

namespace halyard::tools::serve {

namespace {

constexpr int kWhole = 1000;  // the weight 1

// Removes the text before the separator, and returns it.
std::string_view take(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(part);
}

// In thousandths: "0", "0.5", "1.000". Nothing if it is malformed.
std::optional<int> weight_of(std::string_view text) {
  if (text.empty() || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  int weight = (text[0] - '0') * kWhole;
  if (text.size() > 1 && (text[1] != '.' || text.size() > 5)) return std::nullopt;
  int unit = kWhole / 10;
  for (const char digit : text.substr(std::min<size_t>(2, text.size()))) {
    if (digit < '0' || digit > '9') return std::nullopt;
    weight += (digit - '0') * unit;
    unit /= 10;
  }
  return weight <= kWhole ? std::optional(weight) : std::nullopt;
}

}  // namespace

Coding chosen_coding(std::string_view accept_encoding) {
  std::optional<int> gzip, deflate, identity, others;
  while (!accept_encoding.empty()) {
    std::string_view item = take(accept_encoding, ',');
    const std::string_view name = take(item, ';');
    int weight = kWhole;
    if (!item.empty()) {
      const std::string_view key = take(item, '=');
      const std::optional<int> given = weight_of(trimmed(item));
      if ((key != "q" && key != "Q") || !given) continue;
      weight = *given;
    }
    if (name == "*") {
      others = weight;
    } else if (const auto coding = coding_named(name)) {
      (*coding == Coding::gzip ? gzip : *coding == Coding::deflate ? deflate : identity) = weight;
    }
  }
  const int gzip_weight = gzip.value_or(others.value_or(0)),
            deflate_weight = deflate.value_or(others.value_or(0));
  const int best = std::max(gzip_weight, deflate_weight);
  if (best == 0 || best < identity.value_or(0)) return Coding::identity;
  return gzip_weight == best ? Coding::gzip : Coding::deflate;
}

std::string_view name_of(Coding coding) {
  switch (coding) {
    case Coding::gzip:
      return "gzip";
    case Coding::deflate:
      return "deflate";
    case Coding::identity:
      break;
  }
  return "identity";
}

}  // namespace halyard::tools::serve
