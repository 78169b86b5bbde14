// The names of formats in compiled modules.
#include "grades.h"

#include <optional>

#include "common/files.h"

namespace halyard::tools {

namespace {

constexpr std::string_view kKnownFormats[] = {
    "vmvx-bytecode-fb",    "embedded-elf-x86_64", "embedded-elf-arm_64",  "embedded-elf-riscv_64",
    "system-elf-x86_64",   "system-elf-arm_64",   "system-elf-riscv_64",  "vulkan-spirv-fb",
    "vulkan-spirv-fb-ptr", "vulkan-spirv-bda-v1", "vulkan-spirv-bda-raw", "cuda-nvptx-fb",
    "rocm-hsaco-fb",       "metal-msl-fb",        "webgpu-wgsl-fb",
};

Result<FormatGrade> grade(const Device& device, const std::string& asked) {
  FormatGrade made;
  const size_t equals = asked.find('=');
  made.format = asked.substr(0, equals);
  if (made.format.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}' names no format; expected FORMAT or FORMAT=FILE, such as vmvx-bytecode-fb", asked);
  std::optional<FileContents> file;
  if (equals != std::string::npos) {
    made.file = asked.substr(equals + 1);
    file.emplace(TOOL_TRY(FileContents::open(made.file)));
  }
  const auto executable = file ? std::as_bytes(file->bytes()) : std::span<const std::byte>();
  const halyard_executable_fit_t fit = TOOL_TRY(device.judge(made.format, executable));
  made.fit = fit.fit;
  made.reason = fit.reason;
  return made;
}

}  // namespace

Result<std::vector<FormatGrade>> grade_formats(const Device& device, const std::vector<std::string>& asked) {
  std::vector<FormatGrade> grades;
  for (const std::string& one : asked) grades.push_back(TOOL_TRY(grade(device, one)));
  if (!asked.empty()) return grades;
  for (const std::string_view format : kKnownFormats)
    grades.push_back(TOOL_TRY(grade(device, std::string(format))));
  return grades;
}

std::string_view fit_name(uint32_t fit) {
  constexpr std::string_view kNames[] = {"no", "recompile", "loadable", "native"};
  return fit < std::size(kNames) ? kNames[fit] : "unknown";
}

}  // namespace halyard::tools
