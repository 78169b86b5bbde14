// Paths, segment by segment.
#include "route.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace halyard::tools::serve {

namespace {

constexpr std::string_view kReading = "GET, HEAD";

// "%2F" to "/"; nothing if a digit is missing, or a decoded byte is a control character.
std::optional<std::string> decoded(std::string_view text) {
  const auto is_control = [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; };
  const auto is_plain = [&](char byte) { return byte != '%' && !is_control(byte); };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    char byte = text[i];
    if (byte == '%') {
      unsigned value = 0;
      if (text.size() - i < 3) return std::nullopt;
      const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
      if (error != std::errc() || end != text.data() + i + 3) return std::nullopt;
      byte = static_cast<char>(value);
      i += 2;
    }
    if (is_control(byte)) return std::nullopt;
    plain += byte;
  }
  return plain;
}

struct Target {
  std::string_view path;
  std::string_view query;
  std::string_view authority;
};

// Nothing if it is neither a path nor an http URI; a fragment is no part of a request.
std::optional<Target> parts_of(std::string_view target) {
  Target parts;
  if (!target.starts_with('/')) {  // http://host/path
    size_t begin = 0;
    for (const std::string_view scheme : {"http://", "https://"})
      if (target.starts_with(scheme)) begin = scheme.size();
    if (begin == 0) return std::nullopt;
    const size_t end = std::min(target.find_first_of("/?#", begin), target.size());
    parts.authority = target.substr(begin, end - begin);
    if (parts.authority.empty()) return std::nullopt;
    target = target.substr(end);
  }
  if (target.contains('#')) return std::nullopt;
  const size_t question = std::min(target.find('?'), target.size());
  parts.path = question == 0 ? "/" : target.substr(0, question);
  parts.query = target.substr(std::min(question + 1, target.size()));
  return parts;
}

Route not_found() { return {.status = 404}; }

}  // namespace

Route route_of(std::string_view method, std::string_view target) {
  const auto target_parts = parts_of(target);
  if (!target_parts || !decoded(target_parts->query)) return {.status = 400};
  std::string_view path = target_parts->path;
  path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);

  constexpr size_t kMostParts = 8;
  std::vector<std::string> parts;
  parts.reserve(kMostParts);
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    auto part = decoded(path.substr(0, end));
    if (!part) return {.status = 400};
    if (parts.size() == kMostParts) return not_found();
    parts.push_back(std::move(*part));
    path.remove_prefix(std::min(end + 1, path.size()));
  }

  Route route;
  route.authority = target_parts->authority;
  bool is_infer = false;
  const auto is = [&](size_t index, std::string_view text) {
    return index < parts.size() && parts[index] == text;
  };
  if (parts.empty()) {
    route.endpoint = Endpoint::page;
  } else if (parts.size() == 1 && is(0, "metrics")) {
    route.endpoint = Endpoint::metrics;
  } else if (!is(0, "v2")) {
    return not_found();
  } else if (parts.size() == 1) {
    route.endpoint = Endpoint::server_metadata;
  } else if (parts.size() == 3 && is(1, "health") && is(2, "live")) {
    route.endpoint = Endpoint::live;
  } else if (parts.size() == 3 && is(1, "health") && is(2, "ready")) {
    route.endpoint = Endpoint::ready;
  } else if (!is(1, "models")) {
    return not_found();
  } else if (parts.size() == 2) {
    route.endpoint = Endpoint::models;
  } else {
    route.model = parts[2];
    size_t next = 3;
    if (is(3, "versions") && parts.size() > 4) {
      route.version = parts[4];
      next = 5;
    }
    if (route.model.empty() || (next == 5 && route.version.empty())) return not_found();
    if (parts.size() == next) {
      route.endpoint = Endpoint::model_metadata;
    } else if (parts.size() == next + 1 && is(next, "ready")) {
      route.endpoint = Endpoint::model_ready;
    } else if (parts.size() == next + 1 && is(next, "infer")) {
      route.endpoint = Endpoint::infer;
      is_infer = true;
    } else {
      return not_found();
    }
  }
  route.allow = is_infer ? "POST" : kReading;
  route.is_head = method == "HEAD";
  const bool is_allowed = is_infer ? method == "POST" : method == "GET" || method == "HEAD";
  if (!is_allowed) route.status = 405;
  return route;
}

bool is_name(std::string_view text) {
  constexpr size_t kLongest = 128;
  return !text.empty() && text.size() <= kLongest && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                  c == '-' || c == '.';
         });
}

}  // namespace halyard::tools::serve
