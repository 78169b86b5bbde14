// The main function of a fuzz target in builds without libFuzzer: runs the inputs in the files and folders
// that are named. An input that crashes or that is a finding ends the program; its file is named before.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzzing.h"

namespace {

namespace fs = std::filesystem;

char current[4096];

void name_the_input(int number) {
  const char text[] = "replay: this input ends the process: ";
  (void)!::write(STDERR_FILENO, text, sizeof(text) - 1);
  (void)!::write(STDERR_FILENO, current, std::strlen(current));
  (void)!::write(STDERR_FILENO, "\n", 1);
  std::signal(number, SIG_DFL);
  ::raise(number);
}

void run(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::snprintf(current, sizeof current, "%s", path.c_str());
  // A copy of the right size, so that a sanitizer sees a read past its end.
  const std::vector<uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

// Custom mutators call it, and nothing here calls them.
size_t LLVMFuzzerMutate(uint8_t* /*data*/, size_t size, size_t /*max_size*/) { return size; }

int main(int argc, char** argv) {
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, name_the_input);
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    if (!fs::exists(argv[i])) {
      std::fprintf(stderr, "replay: there is no '%s'; expected a file, or a folder of inputs\n", argv[i]);
      return 1;
    }
    if (!fs::is_directory(argv[i])) {
      run(argv[i]);
      ++count;
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      run(entry.path());
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  if (count == 0) std::fprintf(stderr, "replay: no inputs; expected files or folders of them as arguments\n");
  return count == 0;
}
