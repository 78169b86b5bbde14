// The tool's own version is HALYARD_VERSION, which the build defines; everything else is the library's.
#include "common/version.h"

#include <dlfcn.h>

#include <filesystem>

#include "common/documents.h"
#include "common/drivers.h"
#include "common/printable.h"

namespace halyard::tools {

namespace {

// The file with halyard_version(): the library, or the program itself in a static build.
std::string library_path() {
  Dl_info found = {};
  const bool is_known = dladdr(reinterpret_cast<const void*>(&halyard_version), &found) != 0;
  return is_known && found.dli_fname ? std::filesystem::path(found.dli_fname).lexically_normal().string()
                                     : "linked into the program";
}

}  // namespace

Result<std::string> version_text(std::string_view tool) {
  const halyard_build_t build = TOOL_TRY(halyard::build());
  const std::string sanitizer =
      build.sanitizer ? fmt::format(", {}", halyard_sanitizer_name(build.sanitizer)) : "";
  const std::string documents = documents_folder();
  std::string text = fmt::format("{} {}\n", tool, HALYARD_VERSION);
  const auto line = [&](std::string_view title, std::string_view value) {
    text += fmt::format("{:<10}{}\n", title, printable(value));
  };
  line("library", fmt::format("libhalyard {}, {}", build.version, library_path()));
  line("ABI",
       fmt::format("drivers {}, native modules {}", abi_text(build.driver_abi_min, build.driver_abi_max),
                   abi_text(build.module_abi_min, build.module_abi_max)));
  line("compiler", build.compiler);
  line("build", fmt::format("{}, {}{}", build.type, build.processor, sanitizer));
  line("documents", documents.empty() ? "not installed" : documents);
  return text;
}

}  // namespace halyard::tools
