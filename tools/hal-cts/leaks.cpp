// Restarts with the sanitizer, and parses its report.
#include "leaks.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/files.h"
#include "cts_flags.h"

namespace halyard::cts {

using tools::fail;
using tools::Result;

namespace {

constexpr char kLibrary[] = "liblsan.so.0";
constexpr char kRestarted[] = "HAL_CTS_LEAKS";
// Stack traces do not need frame pointers; leaks are checked when a case requests it, not at exit.
constexpr char kOptions[] = "leak_check_at_exit=0:fast_unwind_on_malloc=0:allocator_may_return_null=1";

template <typename Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// Prepends "X" to the value of the variable.
void prepend(const char* variable, const std::string& text) {
  const char* const before = std::getenv(variable);
  setenv(variable, before && *before ? (text + ":" + before).c_str() : text.c_str(), 1);
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Whether the library is between a driver's code and the allocator.
bool is_system(const std::string& library) {
  for (const char* const known : {"liblsan.", "libasan.", "libc.so", "libstdc++.", "libgcc_s."})
    if (library.starts_with(known)) return true;
  return false;
}

struct Leak {
  uint64_t bytes = 0, blocks = 0;
  std::string where;  // the driver's functions, innermost first
};

// Parses one record of the report: a line with the size, then a line for each frame. Empty if a driver did
// not make the allocation.
Leak read_record(std::string_view record) {
  Leak leak;
  if (!record.starts_with("Direct leak of ")) return {};
  const std::string head(record.substr(0, record.find('\n')));
  if (std::sscanf(head.c_str(), "Direct leak of %lu byte(s) in %lu object(s)", &leak.bytes, &leak.blocks) !=
      2)
    return {};
  bool is_drivers = false;
  int named = 0;
  for (size_t at = record.find("\n    #"); at != std::string_view::npos;
       at = record.find("\n    #", at + 1)) {
    const std::string line(record.substr(at + 1, record.find('\n', at + 1) - at - 1));
    unsigned frame = 0;
    uintptr_t address = 0;
    char function[128] = "";
    if (std::sscanf(line.c_str(), " #%u %lx in %127s", &frame, &address, function) < 2) continue;
    Dl_info info = {};
    const bool known = dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_fname;
    const std::string library = known ? file_name(info.dli_fname) : "";
    if (!is_drivers && is_system(library)) continue;
    if (!library.starts_with("halyard-driver-")) break;
    is_drivers = true;
    if (named == 3) continue;
    leak.where += (named++ == 0 ? "" : " < ") + (*function ? std::string(function) : library);
  }
  return is_drivers ? leak : Leak();
}

std::string take_report() {
  const auto set_descriptor = find<void (*)(void*)>("__sanitizer_set_report_fd");
  const auto look = find<int (*)()>("__lsan_do_recoverable_leak_check");
  const int fd = memfd_create("leaks", MFD_CLOEXEC);
  if (fd < 0 || !set_descriptor || !look) return "";
  set_descriptor(reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  look();
  set_descriptor(reinterpret_cast<void*>(intptr_t{STDERR_FILENO}));
  std::string report(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  const ssize_t size = pread(fd, report.data(), report.size(), 0);
  report.resize(size > 0 ? static_cast<size_t>(size) : 0);
  close(fd);
  return report;
}

}  // namespace

bool can_find_leaks() { return find<void*>("__lsan_do_recoverable_leak_check") != nullptr; }

Result<> restart_to_find_leaks() {
  const auto missing = [] {
    return fail(
        HALYARD_UNAVAILABLE,
        "{}: the system's loader finds no {}; install it (Debian: liblsan0, comes with gcc), or build "
        "hal-cts with AddressSanitizer",
        flag::leaks, kLibrary);
  };
  if (std::getenv(kRestarted)) return missing();
  const tools::FileContents file = TOOL_TRY(tools::FileContents::open("/proc/self/cmdline"));
  std::string arguments(file.text());
  std::vector<char*> argv;
  for (size_t at = 0; at < arguments.size(); at += std::strlen(&arguments[at]) + 1)
    argv.push_back(&arguments[at]);
  argv.push_back(nullptr);
  prepend("LD_PRELOAD", kLibrary);
  prepend("LSAN_OPTIONS", kOptions);
  setenv(kRestarted, "1", 1);
  execv("/proc/self/exe", argv.data());
  return fail(tools::code_of_errno(errno), "{}: cannot start this program again: {}", flag::leaks,
              std::strerror(errno));
}

void check_leaks(const Checks::Sink& problem) {
  const std::string report = take_report();
  Leak all;
  for (size_t at = report.find("Direct leak of "); at != std::string::npos;
       at = report.find("Direct leak of ", at + 1)) {
    const size_t end = report.find("\n\n", at);
    const Leak leak = read_record(std::string_view(report).substr(at, end - at));
    if (leak.blocks == 0) continue;
    all.blocks += leak.blocks;
    all.bytes += leak.bytes;
    if (all.where.empty()) all.where = leak.where;
  }
  if (all.blocks > 0)
    problem({"R24", "memory when all handles were destroyed and the driver was shut down", "nothing lost",
             fmt::format("{} bytes in {} blocks to which nothing points; some from {}", all.bytes, all.blocks,
                         all.where)});
}

}  // namespace halyard::cts
