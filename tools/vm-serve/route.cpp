// Parses paths, segment by segment.
#include "route.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace halyard::tools::serve {

namespace {

constexpr std::string_view kReading = "GET, HEAD";

// Decodes "%2F" to "/"; nothing if a digit is missing, or a decoded byte is a control character.
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

// Nothing if the target is neither a path nor an http URI, or has a fragment, which requests must not have.
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

enum class Method : uint8_t { reads, posts };

// The path of each endpoint; {model} and {version} match one segment that is not empty.
struct Pattern {
  std::string_view path;
  Endpoint endpoint;
  Method method = Method::reads;
};
constexpr Pattern kPatterns[] = {
    {"", Endpoint::page},
    {"metrics", Endpoint::metrics},
    {"v2", Endpoint::server_metadata},
    {"v2/health/live", Endpoint::live},
    {"v2/health/ready", Endpoint::ready},
    {"v2/models", Endpoint::models},
    {"v2/models/stats", Endpoint::statistics},
    {"v2/models/{model}", Endpoint::model_metadata},
    {"v2/models/{model}/ready", Endpoint::model_ready},
    {"v2/models/{model}/config", Endpoint::model_config},
    {"v2/models/{model}/page", Endpoint::model_page},
    {"v2/models/{model}/stats", Endpoint::statistics},
    {"v2/models/{model}/infer", Endpoint::infer, Method::posts},
    {"v2/models/{model}/versions/{version}", Endpoint::model_metadata},
    {"v2/models/{model}/versions/{version}/ready", Endpoint::model_ready},
    {"v2/models/{model}/versions/{version}/config", Endpoint::model_config},
    {"v2/models/{model}/versions/{version}/page", Endpoint::model_page},
    {"v2/models/{model}/versions/{version}/stats", Endpoint::statistics},
    {"v2/models/{model}/versions/{version}/infer", Endpoint::infer, Method::posts},
    {"v2/repository/index", Endpoint::repository_index, Method::posts},
    {"v2/repository/models/{model}/load", Endpoint::repository_load, Method::posts},
    {"v2/repository/models/{model}/unload", Endpoint::repository_unload, Method::posts},
};

// The segment of a path that begins at `at`; moves `at` to its end. Nothing at the end of the path.
std::optional<std::string_view> next_segment(std::string_view path, size_t& at) {
  if (at >= path.size()) return std::nullopt;
  const size_t end = std::min(path.find('/', at), path.size());
  const std::string_view segment = path.substr(at, end - at);
  at = end + 1;
  return segment;
}

// Whether the pattern matches the path; sets the route's model and version.
bool matches(const Pattern& pattern, const std::vector<std::string>& segments, Route& route) {
  route.model.clear();
  route.version.clear();
  size_t at = 0;
  for (const std::string& segment : segments) {
    const std::optional<std::string_view> expected = next_segment(pattern.path, at);
    if (!expected) return false;
    if (*expected == "{model}") {
      route.model = segment;
    } else if (*expected == "{version}") {
      route.version = segment;
    } else if (*expected != segment) {
      return false;
    }
    if (expected->starts_with('{') && segment.empty()) return false;
  }
  return !next_segment(pattern.path, at);
}

}  // namespace

Route route_of(std::string_view method, std::string_view target) {
  const bool is_head = method == "HEAD";
  const auto refused = [&](unsigned status) { return Route{.status = status, .is_head = is_head}; };
  const auto target_parts = parts_of(target);
  if (!target_parts || !decoded(target_parts->query)) return refused(400);
  std::string_view path = target_parts->path;
  path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);

  constexpr size_t kMaxSegments = 8;
  std::vector<std::string> segments;
  segments.reserve(kMaxSegments);
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    auto segment = decoded(path.substr(0, end));
    if (!segment) return refused(400);
    if (segments.size() == kMaxSegments) return refused(404);
    segments.push_back(std::move(*segment));
    path.remove_prefix(std::min(end + 1, path.size()));
  }

  Route route{.is_head = is_head};
  const auto* const pattern =
      std::ranges::find_if(kPatterns, [&](const Pattern& each) { return matches(each, segments, route); });
  if (pattern == std::end(kPatterns)) return refused(404);
  route.authority = target_parts->authority;
  route.endpoint = pattern->endpoint;
  const bool posts = pattern->method == Method::posts;
  route.allow = posts ? "POST" : kReading;
  const bool is_allowed = posts ? method == "POST" : method == "GET" || is_head;
  if (!is_allowed) route.status = 405;
  return route;
}

bool is_name(std::string_view text) {
  constexpr size_t kMaxName = 128;
  return !text.empty() && text.size() <= kMaxName && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                  c == '-' || c == '.';
         });
}

}  // namespace halyard::tools::serve
