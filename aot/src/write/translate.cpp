// Chooses the form of a module, and the texts that both forms have.
#include "aot/translate.h"

#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "aot/split_source.h"
#include "write/long_texts.h"
#include "write/writers.h"

namespace halyard::aot {

namespace {

Result<std::vector<File>> write_module(std::span<const uint8_t> bytes, const Options& options,
                                       Report& report) {
  const Ref<vm::BytecodeModule> module =
      HALYARD_TRY(vm::BytecodeModule::load(Bytes::borrow(bytes, {}), known_types()));
  Plan plan = HALYARD_TRY(Plan::of(*module, Role::host, identifier(options.name)));
  plan.has_checks = options.checks;
  std::vector<Kernels> kernels = HALYARD_TRY(kernels_of(plan));
  for (Kernels& each : kernels) each.plan.has_checks = options.checks;
  std::string why = "it was asked for";
  if (options.planned) {
    if (const std::unique_ptr<Program> program = Program::of(plan, kernels, options, why))
      return write_planned(*program, kernels, options, report);
  }
  report.text = fmt::format("objects    at run time, in the arena: {}\n", why);
  return write_dynamic(plan, kernels, options);
}

}  // namespace

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::string module_comment(std::string_view module, std::string_view source) {
  return fmt::format("/* Module '{}'{}, written by vm-cc. */\n", in_comment(module),
                     source.empty() ? "" : " of " + in_comment(source));
}

std::expected<std::vector<File>, Refusal> translate(std::span<const uint8_t> module, const Options& options,
                                                    Report* report) {
  Report unused;
  Result<std::vector<File>> files = write_module(module, options, report != nullptr ? *report : unused);
  if (files) {
    split_source(options.name, options.split, *files);
    for (File& each : *files)
      if (each.name.ends_with(".c")) each.text = without_long_texts(std::move(each.text));
    return *std::move(files);
  }
  const std::string text = files.error().text();
  return std::unexpected(
      Refusal{.code = static_cast<int32_t>(files.error().code()), .text = text.substr(text.find("; ") + 2)});
}

}  // namespace halyard::aot
