// From the arguments to the exit code.
#include "common/tool.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>

#include "common/colour.h"
#include "common/exit.h"
#include "common/files.h"
#include "common/help.h"
#include "common/printable.h"
#include "common/probe.h"
#include "common/ranks.h"
#include "common/standard_streams.h"
#include "common/version.h"

namespace halyard::tools {

namespace {

// The failure for results that could not be written completely to standard output.
Failure cannot_print(int error) {
  return {HALYARD_UNAVAILABLE,
          fmt::format("cannot write all of standard output: {}; the output is incomplete",
                      error ? std::strerror(error) : "an earlier write failed")};
}

bool has_flag(const ToolDescription& tool, const Flag& flag) {
  return std::ranges::any_of(tool.groups, [&](const FlagGroup& group) {
    return std::ranges::find(group.flags, &flag) != group.flags.end();
  });
}

// Whether the tool prints its results as lines, rather than as a document for a program.
bool prints_lines(const ToolDescription& tool, const Flags& flags) {
  return has_flag(tool, flag::json_results) && !flags[flag::json_results];
}

int run_body(const ToolDescription& tool, int argc, const char* const* argv,
             Result<int> (*body)(const Flags& flags)) {
  occupy_standard_descriptors();
  if (argc == 3 && std::strcmp(argv[1], kProbeArgument) == 0) return probe_main(argv[2]);
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe then fails, which is reported below
  const auto report = [&](const Failure& failure) {
    std::fflush(stdout);
    print_error("{} {}{}\n", coloured(Colour::error, fmt::format("{}:", tool.name), STDERR_FILENO),
                rank_prefix(), printable(failure.line()));
    return failure.exit_code;
  };
  int code = 0;
  try {
    Result<Flags> flags = Flags::parse(tool, argc, argv);
    if (!flags) return report(flags.error());
    if (const std::optional<std::string> form = (*flags)[flag::help]) {
      const std::string text = help(tool, *form);
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else if ((*flags)[flag::version]) {
      const Result<std::string> text = version_text(tool.name);
      if (!text) return report(text.error());
      std::fwrite(text->data(), 1, text->size(), stdout);
    } else {
      if (has_flag(tool, flag::rank))
        if (const Result<> taken = take_rank(*flags, prints_lines(tool, *flags)); !taken)
          return report(taken.error());
      const Result<int> done = body(*flags);
      code = done ? *done : report(done.error());
    }
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return report(cannot_print(error.code().value()));
    return report({code_of_errno(error.code().value()), error.what()});
  } catch (const std::bad_alloc&) {
    return report({HALYARD_RESOURCE_EXHAUSTED, "out of memory; check the sizes in the command line"});
  } catch (const std::exception& exception) {
    return report({HALYARD_INTERNAL, exception.what()});
  }
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) return report(cannot_print(errno));
  return code;
}

}  // namespace

int run_tool(const ToolDescription& tool, int argc, const char* const* argv,
             Result<int> (*body)(const Flags& flags)) {
  const int code = run_body(tool, argc, argv, body);
  if (skips_exit_handlers()) std::_Exit(code);
  return code;
}

}  // namespace halyard::tools
