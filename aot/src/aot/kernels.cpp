#include "aot/kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "aot/c_text.h"

namespace halyard::aot {

namespace {

// Of exec-vmvx.md, section 2.
constexpr std::string_view kConvention = "0rrriiiiiiiii_v";
constexpr uint32_t kPage = 4096;
constexpr std::string_view kLoads[] = {"hal_executable_create", "hal_executable_create_5", "hal_loader_load"};

bool loads_executables(const Plan& host) {
  return std::ranges::any_of(host.imports, [](const ImportPlan& each) {
    return std::ranges::find(kLoads, each.callee) != std::end(kLoads);
  });
}

bool is_entry(const vm::Export& each) { return !each.name.starts_with("__"); }

// An attribute of a kernel, a number as C writes it; 0 if it is missing.
uint32_t number(const vm::Export& kernel, std::string_view key) {
  std::string_view text = kernel.attribute(key);
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  return value;
}

Result<> check(const vm::BytecodeModule& module) {
  for (const vm::Export& each : module.exports()) {
    if (each.name == "__init" || each.name == "__set_constants")
      return fail(Code::UNIMPLEMENTED,
                  "the executable has a function '{}', which C without a runtime does not call", each.name);
    if (is_entry(each) && each.convention != kConvention)
      return fail(Code::INVALID_ARGUMENT, "kernel '{}' has the calling convention {}; expected {}", each.name,
                  each.convention, kConvention);
  }
  if (module.global_bytes() != 0 || module.global_refs() != 0)
    return fail(Code::UNIMPLEMENTED, "the executable has globals, which C without a runtime does not keep");
  return {};
}

}  // namespace

std::string Kernels::table() const {
  std::string rows;
  for (const vm::Export& each : module->exports())
    if (is_entry(each))
      rows += fmt::format("  {{{}, {}, {}, {}, {}}},\n", quoted(each.name), plan.functions[each.function],
                          number(each, "binding_count"), number(each, "constant_count"),
                          number(each, "local_memory") / kPage * kPage);
  return fmt::format("static const hal_kernel {}_kernels[] = {{\n{}}};\n\n", plan.prefix, rows);
}

Result<std::vector<Kernels>> kernels_of(const Plan& host) {
  std::vector<Kernels> all;
  if (!loads_executables(host)) return all;
  auto next = static_cast<uint32_t>(host.constants.size());
  for (const uint32_t ordinal : host.constants) {
    const std::span<const uint8_t> bytes = host.module.rodata()[ordinal]->span();
    Result<Ref<vm::BytecodeModule>> module =
        vm::BytecodeModule::load(Bytes::borrow(bytes, {}), known_types());
    if (!module || (*module)->exports().empty()) continue;
    const std::string place = fmt::format("in the executable of constant {}", ordinal);
    HALYARD_TRY(with_note(check(**module), place));
    Result<Plan> plan = with_note(Plan::of(**module, Role::kernels, fmt::format("k{}", ordinal)), place);
    if (!plan) return std::unexpected(std::move(plan).error());
    plan->first_constant = next;
    next += static_cast<uint32_t>(plan->constants.size());
    all.push_back(
        {.constant = host.constant(ordinal), .module = *std::move(module), .plan = *std::move(plan)});
  }
  if (all.empty())
    return fail(Code::UNIMPLEMENTED,
                "the program loads executables, but none of its constants is a portable one "
                "(vmvx-bytecode-fb); compile it for "
                "VMVX");
  return all;
}

}  // namespace halyard::aot
