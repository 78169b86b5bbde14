// Runs a part of a test in a child process, which may change what belongs to the process: descriptors, the
// environment, standard output.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace halyard::tools {

// The text that `body` returns, and before it what it wrote to standard output.
inline std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  std::fflush(nullptr);  // otherwise the child would write the buffered output again
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    // Above all descriptors that a test replaces.
    const int out = ::fcntl(ends[1], F_DUPFD, 200);
    const std::string text = body();
    std::fflush(nullptr);  // `body` may have closed standard output
    const bool written = ::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    std::exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t size; (size = ::read(ends[0], block.data(), block.size())) > 0;)
    text.append(block.data(), static_cast<size_t>(size));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return text;
}

}  // namespace halyard::tools
