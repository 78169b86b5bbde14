// Finds the kind of an executable, and grades it.
#include "executable_kinds.h"

#include <algorithm>
#include <iterator>

#include "native/native_executable.h"
#include "vmvx_executable.h"

namespace halyard::local {

namespace {

constexpr const ExecutableKind* kKinds[] = {&kVmvxExecutables, &kNativeExecutables};

const ExecutableKind* find_kind(std::string_view format) {
  const auto* found =
      std::ranges::find_if(kKinds, [&](const ExecutableKind* kind) { return kind->accepts(format); });
  return found == std::end(kKinds) ? nullptr : *found;
}

Status unknown_format(std::string_view format) {
  std::string known;
  for (const ExecutableKind* kind : kKinds) known += (known.empty() ? "" : ", ") + kind->formats();
  return {Code::NOT_FOUND,
          fmt::format("executable format '{}' is unknown; this device runs {}", format, known)};
}

Result<> judge(const Device& device, std::string_view format, std::span<const uint8_t> data) {
  const ExecutableKind* kind = find_kind(format);
  return kind ? kind->judge(device, format, data) : std::unexpected(unknown_format(format));
}

}  // namespace

uint32_t grade_executable(const Device& device, std::string_view format, std::span<const uint8_t> data,
                          std::string& reason) {
  const Result<> judged = judge(device, format, data);
  if (judged) return HALYARD_GRADE_NATIVE;
  reason = judged.error().message();
  const Code code = judged.error().code();
  const bool known = find_kind(format) != nullptr;
  return known && (code == Code::INCOMPATIBLE || code == Code::NOT_FOUND) ? HALYARD_GRADE_RECOMPILE
                                                                          : HALYARD_GRADE_NO;
}

Result<std::unique_ptr<halyard_driver_executable>> load_executable(const Device& device,
                                                                   const halyard_executable_args_t& args) {
  const ExecutableKind* kind = find_kind(view(args.format));
  if (!kind) return std::unexpected(unknown_format(view(args.format)));
  return Executable::create(*kind, device, args);
}

}  // namespace halyard::local
