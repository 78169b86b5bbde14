// Adapts flags and output lines for one rank.
#include "common/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace halyard::tools {

namespace {

std::string& prefix() {
  static std::string text;
  return text;
}

// Writes standard output line by line, because lines of several ranks are mixed in one output.
struct Lines {
  std::string pending;

  static bool write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) return false;
      if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  ssize_t add(std::string_view text) {
    pending += text;
    const size_t end = pending.rfind('\n');
    if (end == std::string::npos) return static_cast<ssize_t>(text.size());
    std::string lines;
    for (size_t at = 0; at <= end;) {
      const size_t next = pending.find('\n', at) + 1;
      lines.append(prefix()).append(pending, at, next - at);
      at = next;
    }
    pending.erase(0, end + 1);
    return write_all(lines) ? static_cast<ssize_t>(text.size()) : 0;
  }

  static ssize_t write(void* self, const char* bytes, size_t size) {
    return static_cast<Lines*>(self)->add({bytes, size});
  }
  static int close(void* self) {
    auto& lines = *static_cast<Lines*>(self);
    return lines.pending.empty() || lines.add("\n") > 0 ? 0 : EOF;
  }
};

void mark_lines() {
  static Lines lines;
  std::fflush(stdout);
  constexpr cookie_io_functions_t kFunctions = {nullptr, Lines::write, nullptr, Lines::close};
  if (std::FILE* const marked = ::fopencookie(&lines, "w", kFunctions)) {
    std::setvbuf(marked, nullptr, _IOLBF, BUFSIZ);
    stdout = marked;
  }
}

Result<uint32_t> number_of(const Flags& flags, const Number& flag) {
  const uint64_t value = TOOL_TRY(flags[flag]);
  if (value <= INT32_MAX) return static_cast<uint32_t>(value);
  return wrong_value(flag, std::to_string(value), fmt::format("a number, such as {}", flag.example_value()));
}

// Replaces %r, %n and %l by numbers, and %% by %. Other letters are not changed.
std::string with_rank(std::string text, const halyard_launch_t& rank) {
  for (size_t at = text.find('%'); at != std::string::npos && at + 1 < text.size(); at = text.find('%', at)) {
    std::string instead;
    switch (text[at + 1]) {
      case 'r':
        instead = std::to_string(rank.rank);
        break;
      case 'n':
        instead = std::to_string(rank.count);
        break;
      case 'l':
        instead = std::to_string(rank.local_rank);
        break;
      case '%':
        instead = "%";
        break;
      default:
        instead = text.substr(at, 2);
    }
    text.replace(at, 2, instead);
    at += instead.size();
  }
  return text;
}

}  // namespace

std::string_view rank_prefix() { return prefix(); }

Result<halyard_launch_t> rank_of(const Flags& flags) {
  halyard_launch_t launch = TOOL_TRY(detect_launch());
  if (flags.has(flag::rank)) {
    launch.rank = TOOL_TRY(number_of(flags, flag::rank));
    if (!launch.is_launched) launch.local_rank = launch.rank;
  }
  if (flags.has(flag::rank_count)) launch.count = TOOL_TRY(number_of(flags, flag::rank_count));
  if (launch.rank >= launch.count)
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "expected a rank below the number of ranks, found rank {} of {}; give both {} and {}, or neither, "
        "to use those of the launcher",
        launch.rank, launch.count, flag::rank, flag::rank_count);
  return launch;
}

namespace {
bool has_rank_flag(const Flags& flags) {
  return std::ranges::any_of(kRankFlags, [&](const Flag* flag) { return flags.has(*flag); });
}
}  // namespace

Result<bool> is_rank(const Flags& flags) {
  return TOOL_TRY(detect_launch()).is_launched || has_rank_flag(flags) ||
         std::getenv("HALYARD_CHANNEL_PROVIDER");
}

Result<> take_rank(Flags& flags, bool marks_lines) {
  const halyard_launch_t rank = TOOL_TRY(rank_of(flags));
  // Without ranks, a % in a file name is an ordinary character.
  if (TOOL_TRY(is_rank(flags)))
    flags.change_values([&](std::string text) { return with_rank(std::move(text), rank); });
  if (rank.count == 1) return {};
  prefix() = fmt::format("rank {}: ", rank.rank);
  if (marks_lines) mark_lines();
  return {};
}

Result<Channels> channels_of(const Flags& flags) {
  if (!has_rank_flag(flags)) return Channels();
  const halyard_launch_t rank = TOOL_TRY(rank_of(flags));
  const auto limit = TOOL_TRY(flags[flag::channel_timeout]).value_or(std::chrono::nanoseconds(0));
  return check(Channels::create(flags[flag::channel_provider],
                                flags.has(flag::rank) ? static_cast<int32_t>(rank.rank) : -1,
                                flags.has(flag::rank_count) ? static_cast<int32_t>(rank.count) : -1, limit));
}

}  // namespace halyard::tools
