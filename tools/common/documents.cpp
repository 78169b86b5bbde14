// The documents that are installed beside this program. The build defines HALYARD_DOCUMENTS, their folder
// relative to that of the program.
#include "common/documents.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace halyard::tools {

namespace {

struct Document {
  std::string_view tool;
  std::string_view path;
};
constexpr Document kDocuments[] = {
    {"vm-run", "docs/quick-start.md"}, {"vm-bench", "docs/benchmarking.md"},
    {"vm-as", "docs/vmasm.md"},        {"vm-dump", "docs/vm-dump.md"},
    {"vm-check", "docs/vm-check.md"},  {"vm-serve", "docs/serving.md"},
    {"hal-info", "docs/hal-info.md"},  {"hal-cts", "docs/hal-cts.md"},
    {"vulkan-pack", "docs/vulkan.md"}, {"vm-cc", "docs/vm-cc.md"},
    {"vm-device", "docs/remote.md"},   {"vm-diff", "docs/vm-diff.md"},
};

}  // namespace

std::string_view document_of(std::string_view tool) {
  const auto found = std::ranges::find(kDocuments, tool, &Document::tool);
  return found == std::end(kDocuments) ? "README.md" : found->path;
}

std::string documents_folder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const std::filesystem::path folder = (program.parent_path() / HALYARD_DOCUMENTS).lexically_normal();
  return std::filesystem::is_directory(folder / "docs", error) ? folder.string() : "";
}

std::string documents_text(std::string_view tool) {
  const std::string folder = documents_folder();
  const std::string_view document = document_of(tool);
  if (folder.empty()) return fmt::format("{}; an installed Halyard has it in share/doc/halyard", document);
  return fmt::format("{}/{}; other paths that begin with docs/ are in {}, too", folder, document, folder);
}

}  // namespace halyard::tools
