// Reads /proc.
#include "process_metrics.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "prometheus.h"

namespace halyard::tools::serve {

namespace {

#ifdef __clang__
constexpr std::string_view kCompiler =
    "Clang " __clang_version__;  // __VERSION__ begins with the distribution
#else
constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

std::string contents(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Fields of /proc/self/stat, as proc(5) numbers them.
struct Stat {
  uint64_t user_ticks = 0, system_ticks = 0;  // 14, 15
  uint64_t threads = 0;                       // 20
  uint64_t start_ticks = 0;                   // 22, since the system was started
  uint64_t virtual_bytes = 0;                 // 23
  uint64_t resident_pages = 0;                // 24
};

std::optional<Stat> read_stat() {
  const std::string text = contents("/proc/self/stat");
  const size_t name_end = text.rfind(')');  // the name of the program may contain blanks
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  Stat stat;
  constexpr int kFirst = 3, kLast = 24;
  for (int field = kFirst; field <= kLast; ++field) {
    std::string word;
    if (!(rest >> word)) return std::nullopt;
    uint64_t* const target = field == 14   ? &stat.user_ticks
                             : field == 15 ? &stat.system_ticks
                             : field == 20 ? &stat.threads
                             : field == 22 ? &stat.start_ticks
                             : field == 23 ? &stat.virtual_bytes
                             : field == 24 ? &stat.resident_pages
                                           : nullptr;
    if (target) *target = std::strtoull(word.c_str(), nullptr, 10);
  }
  return stat;
}

// When the system was started, in seconds since the epoch.
std::optional<uint64_t> boot_time() {
  const std::string text = contents("/proc/stat");
  constexpr std::string_view kKey = "\nbtime ";
  const size_t place = text.find(kKey);
  if (place == std::string::npos) return std::nullopt;
  return std::strtoull(text.c_str() + place + kKey.size(), nullptr, 10);
}

std::optional<uint64_t> open_descriptors() {
  std::error_code error;
  uint64_t count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    ++count;
  if (error || count == 0) return std::nullopt;
  return count - 1;  // without the one that reads the folder
}

// Infinite limits are the largest number, as Prometheus' clients show them.
std::optional<uint64_t> limit_of(__rlimit_resource resource) {
  rlimit limit = {};
  if (::getrlimit(resource, &limit) != 0) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

std::string process_metrics() {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    if (value) append_metric(text, name, type, help, *value);
  };
  if (const auto stat = read_stat()) {
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    add("process_cpu_seconds_total", "counter", "Processor time, of the user and of the system.",
        std::optional(static_cast<double>(stat->user_ticks + stat->system_ticks) / ticks));
    add("process_threads", "gauge", "Threads.", std::optional(stat->threads));
    add("process_virtual_memory_bytes", "gauge", "Bytes of the address space.",
        std::optional(stat->virtual_bytes));
    add("process_resident_memory_bytes", "gauge", "Bytes of resident memory.",
        std::optional(stat->resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))));
    if (const auto boot = boot_time())
      add("process_start_time_seconds", "gauge", "The start of the process, in seconds since the epoch.",
          std::optional(static_cast<double>(*boot) + static_cast<double>(stat->start_ticks) / ticks));
  }
  add("process_virtual_memory_max_bytes", "gauge", "The limit of the address space.", limit_of(RLIMIT_AS));
  add("process_open_fds", "gauge", "Open descriptors.", open_descriptors());
  add("process_max_fds", "gauge", "The limit of open descriptors.", limit_of(RLIMIT_NOFILE));
  return text;
}

std::string build_metrics(std::string_view version) {
  std::string text;
  begin_metric(text, "halyard_build_info", "gauge", "1, with the build in the labels.");
  utsname system = {};
  const std::string_view machine = ::uname(&system) == 0 ? system.machine : "";
  append_value(text, "halyard_build_info",
               fmt::format("version=\"{}\",compiler=\"{}\",arch=\"{}\"", label(version), label(kCompiler),
                           label(machine)),
               1);
  return text;
}

}  // namespace halyard::tools::serve
