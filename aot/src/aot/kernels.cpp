#include "aot/kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "aot/c_text.h"

namespace halyard::aot {

namespace {

// Of exec-vmvx.md, section 2.
constexpr uint32_t kPage = 4096;
constexpr std::string_view kLoads[] = {"hal_executable_create", "hal_executable_create_5", "hal_loader_load"};

bool loads_executables(const Plan& host) {
  return std::ranges::any_of(host.imports, [](const ImportPlan& each) {
    return std::ranges::find(kLoads, each.callee) != std::end(kLoads);
  });
}

bool is_entry(const vm::Export& each) { return !each.name.starts_with("__"); }

Result<> check(const vm::BytecodeModule& module) {
  for (const vm::Export& each : module.exports()) {
    if (each.name == "__init" || each.name == "__set_constants")
      return fail(Code::UNIMPLEMENTED,
                  "the executable has a function '{}', which C without a runtime does not call", each.name);
    if (is_entry(each) && each.convention != kKernelConvention)
      return fail(Code::INVALID_ARGUMENT, "kernel '{}' has the calling convention {}; expected {}", each.name,
                  each.convention, kKernelConvention);
  }
  if (module.global_bytes() != 0 || module.global_refs() != 0)
    return fail(Code::UNIMPLEMENTED, "the executable has globals, which C without a runtime does not keep");
  return {};
}

std::string_view text_of(const vm::BytecodeModule& module, uint32_t constant) {
  const std::span<const uint8_t> bytes = module.rodata()[constant]->span();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (text.ends_with('\0')) text.remove_suffix(1);
  return text;
}

// The constants that calls pass as the format and the data of an executable: what the instructions before
// them, in the order of the function, wrote to the registers.
struct Created {
  uint32_t format;
  uint32_t data;
};
Result<std::vector<Created>> created_in(const Plan& host, uint32_t ordinal) {
  const vm::Function& function = host.module.functions()[ordinal];
  std::vector<Created> found;
  std::map<uint16_t, uint32_t> constants;
  for (uint32_t pc = 0; vm::has_instruction(function.bytecode, pc);) {
    const vm::Instruction instruction = HALYARD_TRY(
        vm::read_instruction(function.bytecode, pc, host.module.bytecode_version(), function.features));
    pc = instruction.next_pc;
    if (instruction.op == vm::Op::const_ref_rodata) {
      constants[instruction.operands[1].reg & vm::kRefOrdinalMask] = instruction.operands[0].index;
      continue;
    }
    const bool is_call = instruction.op == vm::Op::call || instruction.op == vm::Op::call_variadic;
    if (!is_call) continue;
    const CallOperands operands(instruction);
    if (!operands.is_import) continue;
    const std::string& callee = host.imports[operands.callee].callee;
    if (std::ranges::find(kLoads, callee) == std::end(kLoads)) continue;
    const size_t first = callee == "hal_executable_create" ? 2 : callee == "hal_executable_create_5" ? 1 : 0;
    if (operands.arguments.size() < first + 2) continue;
    const auto of = [&](size_t i) { return constants.find(operands.arguments[i] & vm::kRefOrdinalMask); };
    if (of(first) != constants.end() && of(first + 1) != constants.end())
      found.push_back({of(first)->second, of(first + 1)->second});
  }
  return found;
}

// Adds the executables that are names of libraries in object files.
Result<> add_static(const Plan& host, std::vector<Kernels>& all) {
  for (uint32_t function = 0; function < host.functions.size(); ++function) {
    if (host.functions[function].empty()) continue;
    const std::vector<Created> created = HALYARD_TRY(created_in(host, function));
    for (const Created& each : created) {
      if (text_of(host.module, each.format) != kStaticFormat) continue;
      const uint32_t constant = host.constant(each.data);
      if (std::ranges::any_of(all, [&](const Kernels& known) { return known.constant == constant; }))
        continue;
      const std::string name(text_of(host.module, each.data));
      if (name.empty() || identifier(name) != name)
        return fail(Code::INVALID_ARGUMENT,
                    "the executable of constant {} names the library '{}' of an object file; expected an "
                    "identifier of C",
                    each.data, name);
      all.push_back({.constant = constant,
                     .library = name + "_library_query",
                     .module = {},
                     .plan = {.module = host.module,
                              .role = Role::kernels,
                              .prefix = "",
                              .functions = {},
                              .imports = {},
                              .constants = {},
                              .recursive = {}}});
    }
  }
  return {};
}

}  // namespace

uint32_t attribute_number(const vm::Export& kernel, std::string_view key) {
  std::string_view text = kernel.attribute(key);
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (is_hexadecimal) text.remove_prefix(2);
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  return value;
}

std::string static_prototype(const Kernels& kernels) {
  return fmt::format(
      "/* Of an object file that the compiler made beside the module. */\n"
      "extern const void* {}(uint32_t revision, const hal_static_environment* environment);\n",
      kernels.library);
}

bool has_static(const std::vector<Kernels>& all) {
  return std::ranges::any_of(all, [](const Kernels& each) { return !each.library.empty(); });
}

std::string Kernels::table(bool has_static) const {
  std::string rows;
  for (const vm::Export& each : module->exports())
    if (is_entry(each))
      rows += fmt::format("  {{{}, {}, {}, {}, {}{}}},\n", quoted(each.name), plan.functions[each.function],
                          attribute_number(each, "binding_count"), attribute_number(each, "constant_count"),
                          attribute_number(each, "local_memory") / kPage * kPage, has_static ? ", NULL" : "");
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
  HALYARD_TRY(add_static(host, all));
  if (all.empty())
    return fail(Code::UNIMPLEMENTED,
                "the program loads executables, but none of its constants is a portable one "
                "(vmvx-bytecode-fb) or names an object file (static); compile it for VMVX");
  return all;
}

}  // namespace halyard::aot
