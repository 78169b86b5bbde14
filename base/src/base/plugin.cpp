// The steps from a path to the negotiation function, each with its own error.
#include "base/plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "base/bytes.h"
#include "base/system_error.h"
#include "halyard/abi.h"

namespace halyard {

const char* sanitizer_name(uint32_t kind) {
  switch (kind) {
    case HALYARD_SANITIZER_NONE:
      return "no sanitizer";
    case HALYARD_SANITIZER_ADDRESS:
      return "AddressSanitizer";
    case HALYARD_SANITIZER_THREAD:
      return "ThreadSanitizer";
    case HALYARD_SANITIZER_MEMORY:
      return "MemorySanitizer";
    default:
      return "an unknown sanitizer";
  }
}

Result<std::vector<uint8_t>> read_plugin_note(const std::string& path, const PluginKind& kind) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0)
    return fail(code_of_errno(errno), "cannot examine {} '{}': {}; check the path", kind.what, path,
                std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return fail(Code::INVALID_ARGUMENT, "'{}' is not a file; expected a Halyard {}", path, kind.what);
  const Ref<Bytes> file = HALYARD_TRY(Bytes::map_file(path));
  const std::span<const uint8_t> note = HALYARD_TRY(find_note(file->span(), path, kind));
  return std::vector<uint8_t>(note.begin(), note.end());
}

std::string to_text(AbiRange range) {
  return range.low == range.high ? fmt::format("{}", range.low)
                                 : fmt::format("{}..{}", range.low, range.high);
}

Result<> check_abi(const PluginKind& kind, const std::string& path, AbiRange plugin, AbiRange host) {
  if (plugin.low == 0)
    return fail(
        Code::INCOMPATIBLE,
        "{} '{}' supports {} {}, this Halyard supports {}; version 0 marks an unfinished {}: build it "
        "again with this Halyard's headers",
        kind.what, path, kind.abi, to_text(plugin), to_text(host), kind.abi);
  if (plugin.low > host.high || plugin.high < host.low)
    return fail(
        Code::INCOMPATIBLE,
        "{} '{}' supports {} {}, this Halyard supports {}; install a {} built for this Halyard, or {} "
        "Halyard",
        kind.what, path, kind.abi, to_text(plugin), to_text(host), kind.what,
        plugin.low > host.high ? "a newer" : "an older");
  return {};
}

Result<> check_sanitizer(const PluginKind& kind, const std::string& path, uint32_t sanitizer) {
  if (sanitizer == HALYARD_SANITIZER_NONE || sanitizer == HALYARD_SANITIZER_KIND) return {};
  return fail(
      Code::INCOMPATIBLE,
      "{} '{}' was built with {}, this Halyard with {}; build both with the same sanitizer, or the {} "
      "without",
      kind.what, path, sanitizer_name(sanitizer), sanitizer_name(HALYARD_SANITIZER_KIND), kind.what);
}

Result<std::string> plugin_path(const std::string& path, const PluginKind& kind) {
  std::error_code error;
  std::string file = std::filesystem::absolute(path, error).string();
  if (error || path.empty())
    return fail(Code::INVALID_ARGUMENT, "'{}' is not the path of a {}", path, kind.what);
  return file;
}

#ifdef HALYARD_NO_LOADER  // a static build: the only code is the program's

std::string own_folder() {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical("/proc/self/exe", error);
  return error ? "" : real.parent_path().string();
}

Result<void*> open_plugin(const std::string& path, const PluginKind& kind) {
  return fail(
      Code::UNIMPLEMENTED,
      "cannot load {} '{}': this Halyard is part of a static program and cannot load libraries; use a "
      "Halyard built without HALYARD_STATIC",
      kind.what, path);
}

#else

namespace {

std::string find_own_folder() {
  static const char anchor = 0;
  Dl_info info = {};
  link_map* map = nullptr;
  if (::dladdr1(&anchor, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map) return {};
  // For the program itself dladdr has no path, and argv[0] may not be one.
  const std::filesystem::path file = map->l_name && *map->l_name ? map->l_name : "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  return error ? "" : real.parent_path().string();
}

}  // namespace

std::string own_folder() {
  static const std::string& folder = *new std::string(find_own_folder());  // not destroyed at exit
  return folder;
}

Result<void*> open_plugin(const std::string& path, const PluginKind& kind) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const reason = ::dlerror();
    return fail(Code::UNAVAILABLE, "cannot load {} '{}': {}; install the libraries that it needs", kind.what,
                path, reason ? reason : "the system gives no reason");
  }
  void* const symbol = ::dlsym(handle, kind.negotiate_symbol);
  if (!symbol)
    return fail(Code::INCOMPATIBLE, "{} '{}' does not export {}; expected a function marked {}", kind.what,
                path, kind.negotiate_symbol, kind.export_macro);
  return symbol;
}

#endif

}  // namespace halyard
